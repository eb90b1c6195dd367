package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

type invokeCmd struct {
	Bootstrap string   `arg:"" help:"The function: an executable that calls lambda.Start, as it is deployed."`
	Events    []string `arg:"" help:"Files with one event each, in JSON; - for standard input."`

	Environments int           `short:"n" default:"1" help:"How many execution environments (${default})."`
	Copies       int           `short:"c" default:"1" help:"Deliver each event that often, at the same moment (${default})."`
	Shuffle      bool          `help:"Deliver in random order."`
	Async        bool          `help:"Deliver as Lambda does for asynchronous sources (S3, SNS, EventBridge): a failed attempt is retried twice with the same request id, after 1 and 2 minutes."`
	Scale        float64       `default:"30" help:"Make the waits before a further delivery that many times shorter (${default})."`
	Timeout      time.Duration `default:"3s" help:"The function's timeout; an environment is killed when it is over (${default})."`
	Concurrency  int           `default:"1" help:"Invocations at once in one environment, as on Lambda Managed Instances (${default})."`
}

// Help is what --help adds.
func (c *invokeCmd) Help() string {
	return `Each delivery is a row: ran, or skipped and why (done: the event had been completed; stale: a later one had; held: another was at work), held (refused, to be delivered again), failed, failed in part (a batch), timed out, killed, crashed; succeeded where neither the lock table nor the function's log says which. The last line counts them. The status is 1 if an event was not completed, 130 after Ctrl-C.

Messages of SQS and records of Kinesis and DynamoDB streams that fail come again, up to 5 times in all, after six times the function's timeout. A partial answer (batchItemFailures) is understood as with ReportBatchItemFailures.

--scale shortens waits, but handlers and leases take their real time. A further delivery that came early because of --scale and was refused because of a lock does not count: it is repeated, each time after twice the wait, at most 5 s, until it is not refused or the real wait is over. So a lock that a real retry would not have met cannot lose an event here.

Without LOCK_TABLE_NAME the function gets an empty lock table of its own and no AWS credentials. With it, the function gets profile, Region, endpoint and credentials that create-table would use.`
}

func (c *invokeCmd) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	events, err := readEvents(c.Events, c.Async)
	if err != nil {
		return err
	}
	cfg := locallambda.Config{
		Command: []string{c.Bootstrap}, Environments: c.Environments, Concurrency: c.Concurrency, Timeout: c.Timeout,
	}
	table, err := lockTable(ctx, &cfg)
	if err != nil {
		return err
	}
	if table != nil {
		defer table.Close()
	}
	platform, err := locallambda.Start(ctx, cfg)
	if err != nil {
		return explainStart(c.Bootstrap, err)
	}
	defer func() { _ = platform.Close() }()
	d := &deliverer{invokeCmd: c, platform: platform, table: table, report: newReport(os.Stdout, events)}
	d.all(ctx, c.order(events))
	err = d.report.summary(events)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *invokeCmd) check() error {
	if c.Environments < 1 || c.Copies < 1 || c.Concurrency < 1 || !(c.Scale > 0) || c.Timeout <= 0 {
		return errors.New("-n, --copies, --concurrency, --scale and --timeout must be above zero")
	}
	if c.Timeout > 15*time.Minute {
		return fmt.Errorf("--timeout %v: Lambda allows at most 15 minutes", c.Timeout)
	}
	if err := c.checkSize(openFiles()); err != nil {
		return err
	}
	path, err := findBootstrap(c.Bootstrap)
	c.Bootstrap = path
	return err
}

// lockTable gives the function the table that the environment names, or an embedded
// one, which it returns.
func lockTable(ctx context.Context, cfg *locallambda.Config) (*localtable.Table, error) {
	name := os.Getenv(dynamostore.TableVariable)
	if name == "" {
		table, err := localtable.Start(ctx, "locks")
		if err != nil {
			return nil, err
		}
		cfg.Env = table.Env
		fmt.Fprintf(os.Stderr, "%s is not set: the function gets an empty lock table that lives as long as this command.\n", dynamostore.TableVariable)
		return table, nil
	}
	account, err := localtable.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("the table that %s names cannot be used: %w", dynamostore.TableVariable, err)
	}
	cfg.Env, cfg.Fresh = account.Env(name), account.Credentials
	return nil, nil
}

// order is the deliveries, one after the other, without all of them in memory.
func (c *invokeCmd) order(events []*event) iter.Seq[*event] {
	n := len(events) * c.Copies
	place := func(i int) int { return i }
	if c.Shuffle {
		shuffled := rand.Perm(n)
		place = func(i int) int { return shuffled[i] }
	}
	return func(yield func(*event) bool) {
		for i := range n {
			if !yield(events[place(i)/c.Copies]) {
				return
			}
		}
	}
}

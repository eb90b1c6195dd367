package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

type invokeCmd struct {
	Bootstrap string   `arg:"" help:"The function: the executable that is deployed, which calls lambda.Start."`
	Events    []string `arg:"" help:"Files that hold one event each, in JSON; - reads standard input."`

	Environments int           `short:"n" default:"1" help:"Number of execution environments (${default})."`
	Copies       int           `short:"c" default:"1" help:"Number of times to deliver each event, all at once (${default})."`
	Shuffle      bool          `help:"Deliver the events in random order."`
	Async        bool          `help:"Deliver as Lambda does for asynchronous invocations (S3, SNS, EventBridge): retry a failed attempt twice with the same request id, after 1 and 2 minutes."`
	Scale        float64       `default:"30" help:"Divide the waits before a redelivery by this (${default})."`
	Timeout      time.Duration `default:"3s" help:"The function's timeout, after which its environment is killed (${default})."`
	Concurrency  int           `default:"1" help:"Invocations at once in one environment; more than 1 stands for Lambda Managed Instances (${default})."`
}

// Help returns what --help adds.
func (c *invokeCmd) Help() string {
	return `Each delivery prints a row with its outcome: ran; skipped, and why (completed: the event was completed before; stale: a later event was; held: another invocation holds the lock); held (refused, to be delivered again); failed; failed in part (some records of a batch); timed out; killed; crashed. "succeeded" means that neither the lock table nor the function's log tells whether the handler ran. The last line counts the outcomes. The status is 1 if an event was not completed, and 130 after Ctrl-C.

SQS messages and records of Kinesis and DynamoDB streams that fail are delivered again, up to 5 times in all, after six times the function's timeout. A partial batch response (batchItemFailures) is read as with ReportBatchItemFailures.

--scale shortens waits, but handlers and leases take their real time. If a redelivery was refused because of a lock and its wait was shortened, it does not count: it is repeated, each time after twice the wait, at most 5 s, until it is not refused or the real wait is over. So a lock that a real retry would not have met cannot lose an event here.

Without LOCK_TABLE_NAME the function gets an empty lock table and no AWS credentials. With it, the function gets the Region, endpoint and credentials that create-table would use.`
}

func (c *invokeCmd) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	events, err := readEvents(c.Events, c.Async)
	if err != nil {
		return err
	}
	table, err := lockTable(ctx)
	if err != nil {
		return err
	}
	defer table.Close()
	platform, err := locallambda.Start(ctx, locallambda.Config{
		Command: []string{c.Bootstrap}, Env: table.Env, Credentials: table.Credentials,
		Environments: c.Environments, Concurrency: c.Concurrency, Timeout: c.Timeout,
	})
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

// lockTable returns the table that the environment names, or else an embedded
// one.
func lockTable(ctx context.Context) (*localtable.Table, error) {
	const variable = dynamostore.TableVariable
	name := os.Getenv(variable)
	if name == "" {
		fmt.Fprintf(os.Stderr, "%s is not set: the function gets an empty lock table that lives as long as this command.\n", variable)
		return localtable.Start(ctx, "locks")
	}
	table, err := localtable.InAccount(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("cannot use the table %s that %s names: %w", name, variable, err)
	}
	return table, nil
}

// order returns the events in the order of their deliveries.
func (c *invokeCmd) order(events []*event) []*event {
	var deliveries []*event
	for _, e := range events {
		deliveries = append(deliveries, slices.Repeat([]*event{e}, c.Copies)...)
	}
	if c.Shuffle {
		rand.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
	}
	return deliveries
}

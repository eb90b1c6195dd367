package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/locallambda"
	"github.com/lambdalock/lambdalock/internal/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

type invokeCmd struct {
	Bootstrap string   `arg:"" help:"The function: an executable that calls lambda.Start, as it is deployed."`
	Events    []string `arg:"" help:"Files with one event each, in JSON; - for standard input."`

	Environments int           `short:"n" default:"1" help:"How many execution environments (${default})."`
	Copies       int           `short:"c" default:"1" help:"Deliver each event that often, at the same moment (${default})."`
	Shuffle      bool          `help:"Deliver in random order."`
	Async        bool          `help:"Deliver as asynchronous sources do (S3, SNS, EventBridge): a failed attempt is retried twice with the same request id, after 1 and 2 minutes."`
	Scale        float64       `default:"30" help:"Make the waits of --async that many times shorter (${default})."`
	Timeout      time.Duration `default:"3s" help:"The function's timeout; an environment is killed when it is over (${default})."`
	Concurrency  int           `default:"1" help:"Invocations at once in one environment, as on Lambda Managed Instances (${default})."`
}

func (c *invokeCmd) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	deliveries, err := c.read()
	if err != nil {
		return err
	}
	var env []string
	if os.Getenv(dynamostore.TableVariable) == "" {
		table, err := localtable.Start(ctx, "locks")
		if err != nil {
			return err
		}
		defer table.Close()
		env = table.Env
		fmt.Fprintf(os.Stderr, "%s is not set: the function gets an empty lock table that lives as long as this command.\n", dynamostore.TableVariable)
	}
	platform, err := locallambda.Start(ctx, locallambda.Config{
		Command: []string{c.Bootstrap}, Env: env, Environments: c.Environments, Concurrency: c.Concurrency, Timeout: c.Timeout,
	})
	if err != nil {
		return err
	}
	defer func() { _ = platform.Close() }()
	return c.deliverAll(ctx, platform, deliveries)
}

func (c *invokeCmd) check() error {
	if c.Environments < 1 || c.Copies < 1 || c.Concurrency < 1 || c.Scale <= 0 || c.Timeout <= 0 {
		return errors.New("-n, --copies, --concurrency, --scale and --timeout must be above zero")
	}
	if c.Timeout > 15*time.Minute {
		return fmt.Errorf("--timeout %v: Lambda allows at most 15 minutes", c.Timeout)
	}
	path, err := exec.LookPath(c.Bootstrap)
	if err != nil {
		return fmt.Errorf("%s is not an executable: build the function first, for example with\n  go build -tags lambda.norpc -o bootstrap . (%w)", c.Bootstrap, err)
	}
	c.Bootstrap = path
	return nil
}

type delivery struct {
	name    string
	payload []byte
}

func (c *invokeCmd) read() ([]delivery, error) {
	var all []delivery
	for _, name := range c.Events {
		payload, err := readEvent(name)
		if err != nil {
			return nil, err
		}
		for range c.Copies {
			all = append(all, delivery{name, payload})
		}
	}
	if c.Shuffle {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all, nil
}

func readEvent(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// deliverAll sends everything at once and fails if some event never succeeded.
func (c *invokeCmd) deliverAll(ctx context.Context, p *locallambda.Platform, deliveries []delivery) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	begun := time.Now()
	succeeded := map[string]bool{}
	fmt.Println("    at  env  took     outcome    event")
	for _, d := range deliveries {
		wg.Go(func() {
			for _, r := range c.deliver(ctx, p, d.payload) {
				mu.Lock()
				succeeded[d.name] = succeeded[d.name] || r.Outcome == locallambda.Succeeded
				fmt.Printf("%5.2fs  %3d  %5.2fs  %-9s  %s  %s\n", r.Started.Sub(begun).Seconds(), r.Environment,
					r.Ended.Sub(r.Started).Seconds(), r.Outcome, d.name, answer(r))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failed []string
	for _, name := range c.Events {
		if !succeeded[name] {
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("no delivery succeeded of: %s", strings.Join(failed, ", "))
	}
	return nil
}

func (c *invokeCmd) deliver(ctx context.Context, p *locallambda.Platform, payload []byte) []locallambda.Result {
	if c.Async {
		return p.Deliver(ctx, payload, locallambda.Async{Scale: c.Scale})
	}
	r, err := p.Invoke(ctx, locallambda.Invocation{Payload: payload})
	if err != nil {
		fmt.Fprintln(os.Stderr, "lambdalock:", err)
		return nil
	}
	return []locallambda.Result{r}
}

// answer is the response or the error, short enough for a line.
func answer(r locallambda.Result) string {
	if r.Outcome != locallambda.Succeeded {
		return r.ErrorType + ": " + oneLine(r.ErrorMessage)
	}
	return oneLine(string(r.Payload))
}

func oneLine(s string) string {
	const longest = 120
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

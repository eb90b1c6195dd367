// Package invoke is Lambda on this machine: it runs a function in several
// environments, and delivers events to it as their sources do.
package invoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Command runs a function on this machine, and delivers events to it.
type Command struct {
	Bootstrap string   `arg:"" help:"The function: the executable that is deployed, which calls lambda.Start."`
	Events    []string `arg:"" help:"Files that hold one event each, in JSON; - reads standard input."`

	Environments int           `short:"n" default:"1" help:"Number of execution environments (${default})."`
	Copies       int           `short:"c" default:"1" help:"Number of times to deliver each event, all at the same time (${default})."`
	Shuffle      bool          `help:"Deliver the events in random order."`
	Async        bool          `help:"Deliver as Lambda does for asynchronous invocations (use it for SNS, EventBridge and all others that invoke asynchronously, and for a batch of Kafka, which also comes again whole; for S3, --source s3 does the same and checks the events): retry a failed attempt twice with the same request id, after 1 and 2 minutes."`
	Scale        float64       `default:"30" help:"Divide the waits before a redelivery by this (${default})."`
	Timeout      time.Duration `default:"3s" help:"The function's timeout, after which its environment is killed (${default})."`
	Concurrency  int           `default:"1" help:"Invocations at the same time in one environment; more than 1 stands for Lambda Managed Instances (${default})."`
	Tenant       string        `placeholder:"TENANT" help:"With tenant isolation: the tenant of all invocations, whose locks are its own."`

	Source         string        `enum:",sqs,sqs-fifo,kinesis,s3,custom-bus,api" default:"" placeholder:"SOURCE" help:"Deliver as this source does: sqs, sqs-fifo, kinesis, s3, custom-bus or api. By default each event is a batch or an event of its own."`
	BatchSize      int           `placeholder:"N" help:"For sqs, sqs-fifo and kinesis: records of a batch, at most (10 for a queue, 100 for a stream)."`
	Attempts       int           `placeholder:"N" help:"With --source: deliveries before a record is given up. maxReceiveCount of a queue (5); MaximumRetryAttempts + 1 of a stream (5 here) and of s3 (3); MaxRetryAttempts + 1 of a custom-bus (6); requests of an API's client (3)."`
	IgnoreFailures bool          `name:"no-report-batch-item-failures" help:"For sqs, sqs-fifo and kinesis: a mapping without ReportBatchItemFailures, which ignores partial answers."`
	Bisect         bool          `help:"For kinesis: BisectBatchOnFunctionError, which splits a batch that failed."`
	ClientTimeout  time.Duration `placeholder:"DURATION" help:"For api: how long the client waits for an answer, not scaled (29s)."`

	Table map[string]string `placeholder:"NAME=KEY" help:"Also create this table of the function's own, with that partition key, a string. Without LOCK_TABLE_NAME only."`
	Items map[string]string `placeholder:"NAME=FILE" help:"Put the items of a JSON file into a --table: an array of objects, such as [{\"account\": \"jane\", \"balance\": 100}]."`

	HTML string `placeholder:"FILE" help:"Also write the timeline as a page for a browser."`
	drawing
}

// Help returns what --help adds.
func (c *Command) Help() string {
	return `Each delivery prints a row with its outcome: ran; skipped, and why (completed: the event was completed before; stale: a later event was; held: another invocation holds the lock); held (it did not get the lock, and is delivered again); refused (answered by the function: the event gave no key, or came with another request, which is another payload or other credentials for the key of one before); ignored (acknowledged without being handled, because it holds nothing to work on: the function's log says why); failed; failed in part (some records of a batch); timed out; killed; crashed. "too early" means that a shortened wait brought the event back while the lock was still held; such a delivery does not count. "waited" means that a lock was held at first, and the function asked for it again, as OnHeld(Wait(…)) does. "succeeded" means that neither the lock table nor the function's log tells whether the handler ran: it took no lock, or has another store. "interrupted before" means that an earlier run of the event was interrupted, and OnInterrupted decided. A timeline shows them by environment.

A line at the end counts deliveries by outcome, and for batches, and other events with several records, another line counts the messages or records: ran; skipped; ignored; held; failed, which came back, is lost, or was moved to a dead-letter queue by redelivery.SQS, as its line of level INFO or its SendMessage says; not begun, which came back without being handled, such as one behind a failed one of its group; given up. In a stream, the records behind the first failed one come back as well: those that were completed nevertheless count as ran or skipped. If the function's log does not tell them apart, they are counted together. The status is 1 if an event was not completed, which one that was refused or ignored was not, nor one that was given up and stale when it came again, and 130 after Ctrl-C. With --concurrency above 1 it is unknown which invocation printed a line: an event that was refused or ignored counts as succeeded or skipped then, and so does one that was moved away if the function asks the SQS of an account.

--source delivers all events as one source does, and repeats what failed as it does:

sqs: messages of all files in batches of up to 10, as many batches at the same time as there are environments. A message that failed comes back when the visibility timeout, six times the function's timeout, has passed since it was received, and after 5 receives it is given up to the dead-letter queue. --copies are received at the same time, in different batches.
sqs-fifo: the same, but in the order of each message group, one batch of a group at a time; a failed message blocks its group. --copies come again one after the other, as after a lost deletion.
kinesis: the records of each shard in order, in batches of up to 100, one at a time. A batch is repeated from the first failed record on, and after 5 attempts given up to the on-failure destination. Lambda's own default is to repeat it until it expires, so a refusal because of a lock does not count. --copies come again, as after a lost checkpoint.
s3: an asynchronous invocation for each event, as with --async, for S3 notifications only; for SNS, EventBridge and other events use --async. One that fails is repeated with the same request id after 1 and 2 minutes, and then given up.
custom-bus: the array of a subscriber of an EventBridge Custom Event Bus, as one invocation (REQUEST_RESPONSE). One that fails is repeated as a whole, 5 times within about a minute, and then given up. A real subscriber also repeats it if there is no answer after 30 s.
api: a request, once. The client repeats it, with the same headers and a new requestId, if there is no answer, after 429 and 5xx, and after 409 with Retry-After, up to 3 requests; it waits as Retry-After says, or 1 and 2 s.

Without --source, each file is a batch or an event of its own; messages and records that fail are delivered again as above. A partial batch response (batchItemFailures) is read as with ReportBatchItemFailures. What is given up is listed at the end, and makes the status 1.

--scale shortens waits, but handlers and leases take their real time. If a redelivery was refused because of a lock and its wait was shortened, it does not count: it is repeated, each time after twice the wait, at most 5 s, until it is not refused or the real wait is over. So a lock that a real retry would not have met cannot lose an event here, unless other records of its delivery failed for another reason: such a delivery counts. Nor does a refusal count whose holder ran in the same delivery, though a real retry may meet such a holder again: what is given up because of that is seen with --scale 1.

Without LOCK_TABLE_NAME the function gets an empty lock table and no AWS credentials. Its other tables, such as those of a handler with Transact, are created with --table and --items; tell it their names with its own variables. SQS answers it, too: ChangeMessageVisibility says when a message comes back (such a wait is not shortened), DeleteMessage that it does not, and what SendMessage sends is counted; a message that it sends on with the attribute ErrorMessage is moved to a dead-letter queue (AWS_ENDPOINT_URL_SQS, if that is not set). With it, the function gets the Region, endpoint and credentials that create-table would use, and there is no SQS but that of the account. There is no --store: a function that uses another store says so in its code (middleware.Store), and its outcomes are then known from its log alone.

Examples:
  lambdalock invoke ./bootstrap event.json                                 # one event, once
  lambdalock invoke -n 4 -c 8 --async ./bootstrap event.json               # 8 copies at the same time, in 4 environments
  lambdalock invoke --source sqs --timeout 10s ./bootstrap messages.json   # as a queue delivers them`
}

// Run runs the command.
func (c *Command) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	events, err := readEvents(c.Events, c.Async || c.Source == sourceS3)
	if err != nil {
		return err
	}
	if err := c.checkEvents(events); err != nil {
		return err
	}
	page, err := c.createPage()
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	table, err := lockTable(ctx)
	if err != nil {
		return err
	}
	defer table.Close()
	if err := c.createTables(ctx, table); err != nil {
		return err
	}
	var queues *sqsAPI
	env := table.Env
	if table.URL != "" {
		if queues, err = startSQS(); err != nil {
			return err
		}
		defer queues.close(os.Stdout)
		env = append(env, queues.env()...)
	}
	platform, err := locallambda.Start(ctx, locallambda.Config{
		Command: []string{c.Bootstrap}, Env: env, Credentials: table.Credentials,
		Environments: c.Environments, Concurrency: c.Concurrency, Timeout: c.Timeout, Tenant: c.Tenant,
	})
	if err != nil {
		return console.ExplainStart(c.Bootstrap, err)
	}
	defer func() { _ = platform.Close() }()
	out, ctx := untilUnread(ctx)
	d := &deliverer{Command: c, platform: platform, table: table, report: newReport(out, events, table.URL != ""), sqs: queues}
	d.all(ctx, d.sources(events))
	if err := d.report.draw(os.Stdout, page, c); err != nil {
		return err
	}
	err = d.report.summary()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// createPage creates the file for the timeline before anything runs, so that a
// path that cannot be written is known immediately. Nil: none is asked for.
func (c *Command) createPage() (*os.File, error) {
	if c.HTML == "" {
		return nil, nil //nolint:nilnil // no page is asked for
	}
	return os.Create(c.HTML)
}

func (c *Command) check() error {
	if c.Environments < 1 || c.Copies < 1 || c.Concurrency < 1 || !(c.Scale > 0) || c.Timeout <= 0 {
		return errors.New("-n, --copies, --concurrency, --scale and --timeout must be above zero")
	}
	switch {
	case c.Timeout > invocation.LongestDeadline:
		return fmt.Errorf("--timeout %v: Lambda allows at most 90 minutes, on managed instances", c.Timeout)
	case c.Timeout > invocation.LongestOnDemand && c.Concurrency == 1:
		return fmt.Errorf("--timeout %v: Lambda allows at most 15 minutes, and 90 on managed instances (--concurrency above 1)", c.Timeout)
	}
	if err := cmp.Or(c.checkFlags(), c.checkSize(openFiles())); err != nil {
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
	client, _, err := storeurl.DynamoDB(ctx, "dynamodb://"+name)
	if err != nil {
		return nil, fmt.Errorf("cannot use the table %s that %s names: %w", name, variable, err)
	}
	return localtable.InAccount(client, name), nil
}

// order returns the events in the order of their deliveries.
func (c *Command) order(events []*event) []*event {
	var deliveries []*event
	for _, e := range events {
		deliveries = append(deliveries, slices.Repeat([]*event{e}, c.Copies)...)
	}
	if c.Shuffle {
		shuffle(deliveries)
	}
	return deliveries
}

func shuffle[T any](all []T) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Redrive empties a dead-letter queue of SQS.
type Redrive struct {
	console.StoreFlags
	confirmation
	jsonFlag
	Queue string `arg:"" help:"The dead-letter queue or failure destination: its name, URL or ARN."`

	To      string        `placeholder:"QUEUE" help:"Where to send messages to (the queue that each came from)."`
	Key     string        `placeholder:"FUNCTION" help:"Key function of package keyfuncs, as explain names it, such as SQSMessage or SQSBody(S3Object). Default: the one whose row is there."`
	Name    string        `placeholder:"TEMPLATE" help:"In place of --key: the key's Name, from the JSON of the body or event, such as '{{.customer}}'."`
	Event   string        `placeholder:"TEMPLATE" help:"With --key or --name: the key's Event, such as '{{.order.id}}' (that of the key function; with --name the message's id)."`
	Unknown bool          `help:"Also send messages, and invoke functions with events, of which the locks say nothing."`
	DryRun  bool          `help:"Only show what would be done."`
	Hide    time.Duration `default:"10m" help:"How long messages stay invisible for others (${default}). You have about half of that to answer: the rest is for reading, and for the requests afterwards."`
}

// Help returns what --help adds.
func (c *Redrive) Help() string {
	return `Looks at the messages of a dead-letter queue, and at the locks of their keys. A message whose event was completed is deleted. One that was not is sent back to the queue that it came from, or --to another, with its attributes and its group, and is then deleted. Messages that are held, stale or carry another payload stay. So do those of a row that remembers a payload where the key gives none, as with --name: compare the events, and delete the message by hand if they are the same. So do those whose run was interrupted until you decide with complete or forget: with a new id they could run twice. And so do those of which the locks say nothing: those without a row or a key. --unknown sends these, too, unless the namespace has no rows at all. It shows the messages and asks first, up to 1,000 at a time. It sends messages of a FIFO queue in the order of their groups: if one stays, those after it stay, too.

It deletes a message only after it was completed, or after SQS has acknowledged that it was sent. If the command dies in between, up to ten messages are in both queues; in a FIFO queue SQS drops their copies if the command is run again within 5 minutes. The last line counts messages that were sent and not deleted. A message that is sent back has a new id, so what follows from the id does not recognise it: docs/SOURCES.md#redriven-messages.

Events of asynchronous invocations came from no queue: the function is invoked asynchronously with the original event, byte for byte as the queue has it, and then the message is deleted. Give that --function, because its namespace has the locks. A message of a failure destination names its function, and the alias that is invoked; it stays if that is another function, or another alias than that of --function. A message of a function's dead-letter queue names none: give --function with :ALIAS if the events come through an alias. Functions that share a dead-letter queue may have the same keys: then this may delete or take events of the other. If the command dies in between, up to ten events are invoked twice, which a handler with the lock skips.

Ctrl-C ends it, and so does a service that refuses or does not answer: it says what it did until then. Run it again to go on: it keeps nothing but what is in the queue.

Key functions of your own are not known here. If yours takes the key from the JSON of the body, say so with --name and --event, in Go's text/template. --key SQSFIFOMessage --event '{{.order}}' is EventFrom(SQSFIFOMessage, SQSBody(Once(ByField(order)))). Give the --namespace of the function, too.

While it runs, others do not see the messages. In the end it makes those that stay visible again; after kill -9 that takes --hide, and until then it does not see them either.

The status is 0 if no message stays, 1 if some do, if some were in flight when it began, or after "no", 64 if a flag or the environment is wrong or nobody can be asked, and 69 if SQS or the store did not answer or refused. Times are those of this machine.

It needs sqs:GetQueueUrl, sqs:GetQueueAttributes, sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the dead-letter queue, sqs:GetQueueUrl and sqs:SendMessage on the other, with --to also sqs:GetQueueAttributes, for asynchronous events lambda:GetFunctionConfiguration and lambda:InvokeFunction on the function, and on DynamoDB dynamodb:GetItem, with --unknown also dynamodb:Scan.

Examples:
  lambdalock redrive --namespace orders --dry-run orders-dlq   # what it would do
  lambdalock redrive --namespace orders orders-dlq             # shows the messages, and asks
  lambdalock redrive --namespace orders --name '{{.order}}' --event '{{.order}}' orders-dlq
  lambdalock redrive --yes --json --unknown --to orders orders-dlq
  lambdalock redrive --function thumbnails:prod thumbnails-failed`
}

// Run runs the command.
func (c *Redrive) Run(ctx context.Context) error {
	judge, err := c.judge()
	if err != nil {
		return trouble(err)
	}
	if judge.Store, err = inspector(ctx, &c.StoreFlags); err != nil {
		return trouble(err)
	}
	judge.Namespace = c.Namespace // which may be that of --function
	if err := c.knowsRows(ctx, judge.Store); err != nil {
		return trouble(err)
	}
	cfg, err := c.AWS(ctx)
	if err != nil {
		return trouble(err)
	}
	judge.Functions.Client = lambda.NewFromConfig(cfg)
	if f := c.Deployed(); f != nil {
		judge.Functions.ARN, judge.Functions.DeadLetterQueue = f.ARN(), f.DeadLetterQueue()
	}
	q, err := deadletter.Open(ctx, sqs.NewFromConfig(cfg), c.Queue, c.To, c.Hide)
	if err != nil {
		return trouble(err)
	}
	// A pipe without a reader gives an error, and does not end the process:
	// messages that stay are made visible first.
	signal.Ignore(syscall.SIGPIPE)
	return trouble(c.redrive(ctx, q, judge, os.Stdout, os.Stderr, c.confirm))
}

// knowsRows refuses --unknown where nothing can be known: with a misspelt
// namespace, what was completed would run again, too.
func (c *Redrive) knowsRows(ctx context.Context, store driver.Inspector) error {
	if !c.Unknown {
		return nil
	}
	for _, err := range store.Rows(ctx, prefix(c.Namespace)) {
		return err
	}
	where := "the store"
	if c.Namespace != "" {
		where = "the namespace " + inspect.Safe(c.Namespace)
	}
	return no("%s has no rows, so --unknown would send what was completed, too: give the function's --namespace or --function; if all of it should run again, aws sqs start-message-move-task sends it", where)
}

// judge returns who decides, still without store and namespace.
func (c *Redrive) judge() (*deadletter.Judge, error) {
	switch {
	case c.JSON && !c.Yes && !c.DryRun:
		return nil, wrongUse("--json cannot ask: add --yes, or --dry-run to change nothing")
	case c.Hide < time.Second || c.Hide > 12*time.Hour:
		return nil, wrongUse("--hide %v: SQS takes 1s to 12h", c.Hide)
	case c.Key != "" && c.Name != "":
		return nil, wrongUse("--key and --name both give the key's Name: leave one out")
	case c.Event != "" && c.Key == "" && c.Name == "":
		return nil, wrongUse("--event needs --key or --name, which gives the key's Name")
	case c.Event != "" && !strings.Contains(c.Event, "{{"):
		return nil, wrongUse("--event %q is the same for every message, so once it is completed all of them would be deleted: take it from the body, such as '{{.order}}'", c.Event)
	}
	j := &deadletter.Judge{Function: c.Key, Unknown: c.Unknown}
	if c.Key != "" {
		if err := explain.CheckFunction(c.Key); err != nil {
			return nil, wrongUse("--key: %w", err)
		}
	}
	var err error
	if c.Name != "" {
		if j.Name, err = deadletter.Template(c.Name); err != nil {
			return nil, wrongUse("--name: %w", err)
		}
	}
	if c.Event != "" {
		if j.Event, err = deadletter.Template(c.Event); err != nil {
			return nil, wrongUse("--event: %w", err)
		}
	}
	return j, nil
}

func (c *Redrive) redrive(ctx context.Context, q *deadletter.Queue, judge *deadletter.Judge, out, notes io.Writer, ask asker) error {
	defer func() {
		if n, err := q.Release(ctx); n > 0 {
			_, _ = fmt.Fprintf(notes, "%d of the messages that stay are invisible for up to %v: %v\n", n, c.Hide, err)
		}
	}()
	inFlight := ""
	if q.InFlight > 0 {
		inFlight = fmt.Sprintf(", and %d in flight, invisible until deleted or back", q.InFlight)
	}
	_, _ = fmt.Fprintf(notes, "%s has about %d messages%s.\n", q.ARN, q.Messages, inFlight)
	r := redriven{
		Run: deadletter.NewRun(q, judge), out: out, json: c.JSON, dry: c.DryRun,
		done: map[string]int{}, both: map[string]int{}, perhaps: map[string]int{},
	}
	err := r.rounds(ctx, ask)
	r.again = q.FailedAgain()
	r.stay += r.again
	switch {
	case err != nil:
		r.early = "It ended early: there may be messages that it did not look at."
	case q.CameBack():
		r.early = "Those that stay came back before all were seen: give a longer --hide."
	case q.InFlight > 0:
		r.early = fmt.Sprintf("Run it again when the %d in flight are back.", q.InFlight)
	}
	_, _ = fmt.Fprintln(notes, r.summary())
	return cmp.Or(err, r.left(q.InFlight))
}

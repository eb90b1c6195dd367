package integration_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestRedelivery shows with SQS's API that a held message comes back when the
// lease of a holder that died has ended, and not before, with what waits behind
// it in a FIFO group; and that a message that failed for good is
// in the dead-letter queue with all that it had.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	s := servers.Moto(t)
	for name, suffix := range map[string]string{"standard": "", "FIFO": ".fifo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newSQSQueue(t, s, suffix)
			held := q.holdAndDie("customer")
			q.send("a1", "customer")
			q.send("a2", "customer")
			handler := q.wrap()
			if got, want := q.deliver(handler, 2), []string{"a1 1 returned", "a2 1 returned"}; !slices.Equal(got, want) {
				t.Errorf("first %q, want %q", got, want)
			}
			got, want := q.deliver(handler, 2), []string{"a1 2 deleted", "a2 2 deleted"}
			if now := time.Now(); now.Before(held) {
				t.Errorf("%q came back %v before the lease ended", got, held.Sub(now))
			}
			slices.Sort(got) // moto returns the messages of a group the other way round if both become visible
			if !slices.Equal(got, want) {
				t.Errorf("then %q, want %q", got, want)
			}
			q.send("b1", "permanent")
			if got, want := q.deliver(handler, 1), []string{"b1 1 deleted"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			q.wantDeadLetter("b1")
		})
	}
}

// sqsQueue is a queue with its dead-letter queue.
type sqsQueue struct {
	t            *testing.T
	client       *sqs.Client
	url, letters string
	fifo         bool
	store        *memstore.Store
}

func newSQSQueue(t *testing.T, s servers.Server, suffix string) *sqsQueue {
	t.Helper()
	q := &sqsQueue{t: t, store: memstore.New(), fifo: suffix != "", client: sqs.New(sqs.Options{
		BaseEndpoint: aws.String(s.Endpoint), Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})}
	attributes := map[string]string{"VisibilityTimeout": "600"}
	if q.fifo {
		attributes["FifoQueue"] = "true"
	}
	for name, url := range map[string]*string{"orders" + suffix: &q.url, "letters" + suffix: &q.letters} {
		out, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		*url = *out.QueueUrl
	}
	return q
}

// send sends a message about a customer, whose id is its body too.
func (q *sqsQueue) send(id, customer string) {
	q.t.Helper()
	in := &sqs.SendMessageInput{
		QueueUrl: &q.url, MessageBody: aws.String(id + " " + customer),
		MessageAttributes: map[string]types.MessageAttributeValue{"trace": {DataType: aws.String("String"), StringValue: &id}},
	}
	if q.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(id[:1]), &id
	}
	if _, err := q.client.SendMessage(q.t.Context(), in); err != nil {
		q.t.Fatal(err)
	}
}

// holdAndDie acquires a lock with a lease of a few seconds, which it returns
// the end of.
func (q *sqsQueue) holdAndDie(name string) time.Time {
	q.t.Helper()
	locker, err := lock.New(q.store, &lock.Options{Lease: lock.FixedLease(8 * time.Second), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		q.t.Fatal(err)
	}
	l, err := locker.Acquire(q.t.Context(), lock.Key{Name: name})
	if err != nil {
		q.t.Fatal(err)
	}
	return l.Lease().Until
}

func (q *sqsQueue) wrap() func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	key := keyfuncs.Func[events.SQSMessage](func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		_, customer, _ := strings.Cut(m.Body, " ")
		return lock.Key{Name: customer, Event: m.MessageId}, nil
	})
	logger := slog.New(slog.NewTextHandler(q.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return middleware.EachSQSMessage(key, func(_ context.Context, m events.SQSMessage) error {
		id, does, _ := strings.Cut(m.Body, " ")
		if does == "permanent" {
			return middleware.Permanent(fmt.Errorf("no article for %s", id))
		}
		return nil
	}, middleware.Store(q.store), middleware.Logger(slog.New(slog.DiscardHandler)), middleware.Concurrency(1),
		redelivery.SQS(q.client, &redelivery.Options{DeadLetterQueue: q.letters, Logger: logger}))
}

// deliver polls the queue until so many messages were delivered, and deletes
// those that are not returned. It returns each with the number of its receives.
func (q *sqsQueue) deliver(handler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error), messages int) (became []string) {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), time.Minute)
	defer cancel()
	for len(became) < messages {
		e := q.receive(ctx, q.url)
		if len(e.Records) == 0 {
			continue
		}
		answer, _ := handler(ctx, e)
		for _, m := range e.Records {
			id, _, _ := strings.Cut(m.Body, " ")
			does := "deleted"
			if slices.Contains(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId}) {
				does = "returned"
			} else if _, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: &m.ReceiptHandle}); err != nil {
				q.t.Fatal(err)
			}
			became = append(became, fmt.Sprint(id, " ", m.Attributes["ApproximateReceiveCount"], " ", does))
		}
	}
	return became
}

// receive returns what Lambda would deliver. It waits up to a second.
func (q *sqsQueue) receive(ctx context.Context, url string) (e events.SQSEvent) {
	q.t.Helper()
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"},
	})
	if err != nil {
		q.t.Fatal(err)
	}
	for _, m := range out.Messages {
		record := events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:" + url[strings.LastIndex(url, "/")+1:],
			MessageAttributes: map[string]events.SQSMessageAttribute{},
		}
		for name, a := range m.MessageAttributes {
			record.MessageAttributes[name] = events.SQSMessageAttribute{DataType: *a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue}
		}
		e.Records = append(e.Records, record)
	}
	return e
}

// wantDeadLetter checks the only message of the dead-letter queue.
func (q *sqsQueue) wantDeadLetter(id string) {
	q.t.Helper()
	e := q.receive(q.t.Context(), q.letters)
	if len(e.Records) != 1 {
		q.t.Fatalf("%d dead letters", len(e.Records))
	}
	m := e.Records[0]
	if m.Body != id+" permanent" || aws.ToString(m.MessageAttributes["trace"].StringValue) != id || aws.ToString(m.MessageAttributes["ErrorMessage"].StringValue) != "no article for "+id ||
		q.fifo && m.Attributes["MessageGroupId"] != id[:1] {
		q.t.Errorf("the dead letter is %+v", m)
	}
}

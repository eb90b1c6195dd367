package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	failedPart   = `{"batchItemFailures":[{"itemIdentifier":"1"}]}`
	failedRecord = `{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-0","offset":7}}]}`
	failedTask   = `{"results":[{"taskId":"t","resultCode":"Succeeded"},{"taskId":"u","resultCode":"TemporaryFailure"}]}`
)

// thrice delivers an event of type E three times to a handler with result type
// R, whose result is doc, and returns how often the handler ran.
func thrice[E, R any](t *testing.T, doc string, opts ...middleware.Option) (runs int) {
	t.Helper()
	var result R
	if err := json.Unmarshal([]byte(doc), &result); err != nil {
		t.Fatal(err)
	}
	key := func(context.Context, E) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	h := middleware.WithLock(key, func(context.Context, E) (R, error) { runs++; return result, nil }, newFixture().options(opts...)...)
	for range 3 {
		if _, err := h(patience.Context(t), *new(E)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	return runs
}

type ownAnswer struct {
	BatchItemFailures []events.SQSBatchItemFailure `json:"batchItemFailures"`
}

func (a ownAnswer) hasFailed() bool { return len(a.BatchItemFailures) > 0 }

// numbered is an answer whose identifiers are numbers.
type numbered struct {
	BatchItemFailures []struct {
		ItemIdentifier int `json:"itemIdentifier"`
	} `json:"batchItemFailures"`
}

type ownLeftOut struct {
	TreatMissingKeysAs string `json:"treatMissingKeysAs"`
}

// TestResultThatAsksForTheEventAgain shows that a result which tells the source
// that a part of the event has failed does not complete the event: it would be
// skipped when the source delivers it again.
func TestResultThatAsksForTheEventAgain(t *testing.T) { // F49
	t.Parallel()
	replay := middleware.OnCompleted(middleware.Replay)
	for name, c := range map[string]struct {
		runs func(*testing.T, string, ...middleware.Option) int
		doc  string
		opts []middleware.Option
		want int
	}{
		"queue":               {thrice[events.SQSEvent, events.SQSEventResponse], failedPart, nil, 3},
		"queue, by pointer":   {thrice[*events.SQSEvent, *events.SQSEventResponse], failedPart, nil, 3},
		"queue, own type":     {thrice[events.SQSEvent, ownAnswer], failedPart, nil, 3},
		"queue, a map":        {thrice[events.SQSEvent, map[string]any], failedPart, nil, 3},
		"queue, anything":     {thrice[events.SQSEvent, any], failedPart, nil, 3},
		"queue, raw":          {thrice[json.RawMessage, json.RawMessage], failedPart, nil, 3},
		"queue, own event":    {thrice[order, events.SQSEventResponse], failedPart, nil, 3},
		"queue, empty id":     {thrice[events.SQSEvent, any], `{"batchItemFailures":[{"itemIdentifier":""}]}`, nil, 3},
		"Kinesis":             {thrice[events.KinesisEvent, events.KinesisEventResponse], failedPart, nil, 3},
		"DynamoDB, Replay":    {thrice[events.DynamoDBEvent, events.DynamoDBEventResponse], failedPart, []middleware.Option{replay}, 3},
		"Kafka":               {thrice[events.KafkaEvent, awsevents.KafkaEventResponse], failedRecord, nil, 3},
		"own identifier":      {thrice[order, numbered], `{"batchItemFailures":[{"itemIdentifier":7}]}`, nil, 3},
		"S3 Batch":            {thrice[events.S3BatchJobEventV2, events.S3BatchJobResponse], failedTask, []middleware.Option{replay}, 3},
		"S3 Batch, anything":  {thrice[events.S3BatchJobEvent, any], failedTask, nil, 3},
		"S3 Batch, for good":  {thrice[events.S3BatchJobEvent, any], `{"results":[{"resultCode":"PermanentFailure"}]}`, nil, 1},
		"S3 Batch, left out":  {thrice[events.S3BatchJobEvent, events.S3BatchJobResponse], `{"treatMissingKeysAs":"TemporaryFailure"}`, nil, 3},
		"S3 Batch, own type":  {thrice[events.S3BatchJobEvent, ownLeftOut], `{"treatMissingKeysAs":"TemporaryFailure"}`, nil, 3},
		"S3 Batch, none left": {thrice[events.S3BatchJobEvent, any], `{"treatMissingKeysAs":"TemporaryFailure","results":[{"resultCode":"Succeeded"}]}`, nil, 1},
		"S3 Batch, as failed": {thrice[events.S3BatchJobEvent, any], `{"treatMissingKeysAs":"PermanentFailure","results":[]}`, nil, 1},
		"none failed":         {thrice[events.SQSEvent, any], `{"batchItemFailures":[]}`, nil, 1},
		"null":                {thrice[events.SQSEvent, any], `{"batchItemFailures":null,"results":null}`, nil, 1},
		"other members":       {thrice[events.SQSEvent, any], `{"BatchItemFailures":[1],"results":["TemporaryFailure"]}`, nil, 1},
		"no object":           {thrice[events.SQSEvent, any], `[` + failedPart + `]`, nil, 1},
		"over HTTP, a body":   {thrice[v2Event, any], failedPart, nil, 1},
		"as CompletedIf says": {thrice[events.SQSEvent, events.SQSEventResponse], failedPart, []middleware.Option{middleware.CompletedIf(func(events.SQSEventResponse) bool { return true })}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runs := c.runs(t, c.doc, c.opts...); runs != c.want {
				t.Errorf("%d runs of three deliveries, want %d", runs, c.want)
			}
		})
	}
	t.Run("interface with methods", func(t *testing.T) {
		t.Parallel()
		key := func(context.Context, events.SQSEvent) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
		runs := 0
		h := middleware.WithLock(key, func(context.Context, events.SQSEvent) (interface{ hasFailed() bool }, error) {
			runs++
			return ownAnswer{[]events.SQSBatchItemFailure{{ItemIdentifier: "1"}}}, nil
		}, newFixture().options()...)
		for range 2 {
			if got, err := h(t.Context(), events.SQSEvent{}); err != nil || !got.hasFailed() {
				t.Errorf("%v, %v", got, err)
			}
		}
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
	t.Run("lambda.Handler", func(t *testing.T) {
		t.Parallel()
		key := func(context.Context, json.RawMessage) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
		runs := 0
		h := middleware.WithLock(key, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { runs++; return []byte(failedPart), nil })), newFixture().options()...)
		for range 2 {
			if out, err := h.Invoke(t.Context(), gatewayEvent(t, "sqs")); string(out) != failedPart || err != nil {
				t.Errorf("%s, %v", out, err)
			}
		}
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestBatchInsideALock shows that a message which failed in a batch handler is
// handled when the event of the lock around it comes again.
func TestBatchInsideALock(t *testing.T) { // F49
	t.Parallel()
	f, failing := newFixture(), true
	ran := map[string]int{}
	each := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
		ran[m.MessageId]++
		if m.MessageId == "2" && failing {
			return errors.New("boom")
		}
		return nil
	}, f.options()...)
	key := func(context.Context, events.SQSEvent) (lock.Key, error) {
		return lock.Key{Name: "batch", Event: "e"}, nil
	}
	h := middleware.WithLock(key, each, f.options()...)
	e := events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:q"},
		{MessageId: "2", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:q"},
	}}
	for i, want := range []int{1, 0, 0} {
		got, err := h(t.Context(), e)
		if err != nil || len(got.BatchItemFailures) != want {
			t.Errorf("delivery %d: %+v, %v; want %d failures", i+1, got, err, want)
		}
		failing = false
	}
	if ran["1"] != 1 || ran["2"] != 2 {
		t.Errorf("runs: %v", ran)
	}
}

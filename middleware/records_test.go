package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func s3Record(key string) events.S3EventRecord {
	var r events.S3EventRecord
	r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.Sequencer = "b", key, "01"
	return r
}

// TestEachS3Record: without a partial answer the whole event comes again, and only what
// is left is done.
func TestEachS3Record(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		does := map[string]string{"b": "fails", "d": "panics"}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error {
			return tr.act(ctx, r.S3.Object.Key, does[r.S3.Object.Key])
		}, q.with(middleware.Concurrency(1))...)
		event := middleware.S3Event{S3Event: events.S3Event{Records: []events.S3EventRecord{s3Record("a"), s3Record("b"), s3Record("%zz"), s3Record("c"), s3Record("d")}}}
		err := h(ctx, event)
		var batch *middleware.BatchError
		if !errors.As(err, &batch) || batch.Records != 5 || len(batch.Failed) != 3 {
			t.Fatalf("%v", err)
		}
		var panicked *middleware.PanicError
		if !errors.Is(err, errRecord) || !errors.As(err, new(*lock.KeyError)) || !errors.As(err, &panicked) || panicked.Value != errRecord || !strings.Contains(string(panicked.Stack), "trace).act") {
			t.Errorf("%v does not unwrap to each record's error", err)
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(panicked.Error(), "trace).act") {
			t.Errorf("%v should leave out the stack, which %v has", err, panicked)
		}
		for _, part := range []string{"3 of 5 records failed", "Records[1]: the record is bad", "Records[2]: ", "Records[4]: panic: the record is bad"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
		clear(does)
		err = h(ctx, event)
		if !slices.Equal(tr.began, []string{"a", "b", "c", "d", "b", "d"}) || !errors.As(err, &batch) || len(batch.Failed) != 1 {
			t.Errorf("ran %q, then %v", tr.began, err)
		}
	})
}

func TestBatchErrorStaysShort(t *testing.T) {
	t.Parallel()
	e := &middleware.BatchError{Records: 1000}
	for i := range 1000 {
		e.Failed = append(e.Failed, &middleware.RecordError{Record: fmt.Sprintf("Records[%d]", i), Err: errRecord})
	}
	if s := e.Error(); len(s) > 400 || !strings.HasSuffix(s, "Records[4]: the record is bad; and 995 more") {
		t.Errorf("%s", s)
	}
}

// TestS3EventDecodesEachRecord: aws-lambda-go refuses the whole event for one malformed
// key.
func TestS3EventDecodesEachRecord(t *testing.T) { // F31
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		payload, err := os.ReadFile("../keyfuncs/testdata/s3-malformed.json")
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(payload, &events.S3Event{}) == nil {
			t.Error("aws-lambda-go takes the event: this test shows nothing")
		}
		var e middleware.S3Event
		if err := json.Unmarshal(payload, &e); err != nil {
			t.Fatal(err)
		}
		q, tr := newQuiet(), &trace{}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error {
			return tr.act(ctx, r.S3.Object.URLDecodedKey, "")
		}, q.with(middleware.Concurrency(1))...)
		err = h(ctx, e)
		if !slices.Equal(tr.began, []string{"holiday 2026/a+b&c é.jpg", "holiday 2026/two.jpg"}) || err == nil || !strings.Contains(err.Error(), "1 of 3 records failed; Records[1]: ") {
			t.Errorf("ran %q, %v", tr.began, err)
		}
		if err := json.Unmarshal([]byte(`{"Records":1}`), &e); err == nil {
			t.Error("an event that is none was decoded")
		}
	})
}

func TestEachS3RecordOfNone(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error { return tr.act(ctx, "", "") }, q.with()...)
		var e middleware.S3Event
		if err := json.Unmarshal([]byte(`{"Event":"s3:TestEvent"}`), &e); err != nil {
			t.Fatal(err)
		}
		if err := h(ctx, e); err != nil {
			t.Error(err)
		}
		q.want(t, middleware.OutcomeIgnored)
	})
}

func TestEachSNSRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(ctx context.Context, r events.SNSEventRecord) error {
			return tr.act(ctx, r.SNS.MessageID, r.SNS.Message)
		}, q.with()...)
		e := events.SNSEvent{Records: make([]events.SNSEventRecord, 2)}
		e.Records[0].SNS.MessageID, e.Records[1].SNS.MessageID, e.Records[1].SNS.Message = "a", "b", "fails"
		if err := h(ctx, e); !errors.Is(err, errRecord) {
			t.Error(err)
		}
		e.Records[1].SNS.Message = ""
		if err := h(ctx, e); err != nil || len(tr.began) != 3 {
			t.Errorf("%v after %q", err, tr.began)
		}
		if err := h(ctx, events.SNSEvent{}); err == nil {
			t.Error("an event without records was acknowledged")
		}
	})
}

// kinesisBatch holds the records a1, a2, a3, b1, b2, b3 of one shard: two partition keys.
func kinesisBatch(does map[string]string) (e events.KinesisEvent) {
	for i, id := range []string{"a1", "b1", "a2", "b2", "a3", "b3"} {
		r := events.KinesisEventRecord{EventSourceArn: "arn:aws:kinesis:us-east-2:123456789012:stream/readings"}
		r.Kinesis.SequenceNumber = fmt.Sprint(100 + i)
		r.EventID = "shardId-000000000006:" + r.Kinesis.SequenceNumber
		r.Kinesis.PartitionKey, r.Kinesis.Data = id[:1], []byte(id+" "+does[id])
		e.Records = append(e.Records, r)
	}
	return e
}

func (tr *trace) kinesis(ctx context.Context, r events.KinesisEventRecord) error {
	id, does, _ := strings.Cut(string(r.Kinesis.Data), " ")
	return tr.act(ctx, id, does)
}

func TestEachKinesisRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, tr.kinesis, q.with()...)
		r, err := h(ctx, kinesisBatch(map[string]string{"a2": "fails"}))
		answers(t, r, err, "102", "103", "104", "105")
		if !slices.Equal(tr.began, []string{"a1", "b1", "a2"}) || tr.mostAtOne != 1 {
			t.Errorf("ran %q, %d at once", tr.began, tr.mostAtOne)
		}
		r, err = h(ctx, kinesisBatch(nil))
		answers(t, r, err)
		if !slices.Equal(tr.began, []string{"a1", "b1", "a2", "a2", "b2", "a3", "b3"}) {
			t.Errorf("ran %q", tr.began)
		}
		if _, err := h(ctx, events.KinesisEvent{}); err == nil {
			t.Error("an event without records was acknowledged")
		}
	})
}

// TestOrderByName: a partition key that failed does not stop the others, and what they
// did is skipped when Lambda delivers from the failed record on.
func TestOrderByName(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, tr.kinesis, q.with(middleware.OrderByName())...)
		r, err := h(ctx, kinesisBatch(map[string]string{"a2": "fails"}))
		answers(t, r, err, "102", "104")
		if slices.Sort(tr.began); !slices.Equal(tr.began, []string{"a1", "a2", "b1", "b2", "b3"}) || tr.mostAtOne != 2 {
			t.Errorf("ran %q, %d at once", tr.began, tr.mostAtOne)
		}
		tr.began = nil
		again := kinesisBatch(nil)
		again.Records = again.Records[2:]
		r, err = h(ctx, again)
		answers(t, r, err)
		if !slices.Equal(tr.began, []string{"a2", "a3"}) {
			t.Errorf("ran %q again", tr.began)
		}
	})
}

func TestEachDynamoDBRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		batch := func(does ...string) (e events.DynamoDBEvent) {
			for i, d := range does {
				r := events.DynamoDBEventRecord{EventName: d, EventSourceArn: "arn:aws:dynamodb:us-east-2:123456789012:table/orders/stream/2026-06-10T19:26:16.525"}
				r.Change.SequenceNumber = fmt.Sprint(i)
				r.Change.Keys = map[string]events.DynamoDBAttributeValue{"id": events.NewNumberAttribute(fmt.Sprint(i % 2))}
				e.Records = append(e.Records, r)
			}
			return e
		}
		h := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, func(ctx context.Context, r events.DynamoDBEventRecord) error {
			return tr.act(ctx, r.Change.SequenceNumber, r.EventName)
		}, q.with()...)
		r, err := h(ctx, batch("", "fails", "", ""))
		answers(t, r, err, "1", "2", "3")
		r, err = h(ctx, batch("", "", "", ""))
		answers(t, r, err)
		if !slices.Equal(tr.began, []string{"0", "1", "1", "2", "3"}) {
			t.Errorf("ran %q", tr.began)
		}
	})
}

func TestEachKafkaRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		batch := func(does string) events.KafkaEvent {
			e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
			for _, id := range []string{"0/1", "1/1", "0/2", "1/2", "0/3", "1/3"} {
				var p, o int64
				_, _ = fmt.Sscanf(id, "%d/%d", &p, &o)
				r := events.KafkaRecord{Topic: "orders", Partition: p, Offset: o}
				if id == does {
					r.Value = "fails"
				}
				name := fmt.Sprintf("orders-%d", p)
				e.Records[name] = append(e.Records[name], r)
			}
			return e
		}
		h := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(ctx context.Context, r events.KafkaRecord) error {
			return tr.act(ctx, fmt.Sprintf("%d/%d", r.Partition, r.Offset), r.Value)
		}, q.with()...)
		err := h(ctx, batch("0/2"))
		if !errors.Is(err, errRecord) || !strings.Contains(err.Error(), "2 of 6 records failed; records[orders-0] offset 2: the record is bad") {
			t.Error(err)
		}
		if slices.Sort(tr.began); !slices.Equal(tr.began, []string{"0/1", "0/2", "1/1", "1/2", "1/3"}) || tr.mostAtOne != 2 {
			t.Errorf("ran %q, %d at once", tr.began, tr.mostAtOne)
		}
		tr.began = nil
		if err := h(ctx, batch("")); err != nil || !slices.Equal(tr.began, []string{"0/2", "0/3"}) {
			t.Errorf("ran %q again, %v", tr.began, err)
		}
	})
}

func TestEachDocumentDBRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		batch := func(does string) (e awsevents.DocumentDBEvent) {
			for i, id := range []string{"a1", "b1", "a2", "b2"} {
				var r awsevents.DocumentDBEventRecord
				r.Event.ID.Data, r.Event.OperationType, r.Event.DocumentKey = fmt.Sprint(i), id, json.RawMessage(`{"_id":"`+id[:1]+`"}`)
				if id == does {
					r.Event.FullDocument = json.RawMessage("fails")
				}
				e.Events = append(e.Events, r)
			}
			return e
		}
		handle := func(ctx context.Context, r awsevents.DocumentDBEventRecord) error {
			return tr.act(ctx, r.Event.OperationType, string(r.Event.FullDocument))
		}
		h := middleware.EachDocumentDBRecord(keyfuncs.DocumentDBRecord, handle, q.with()...)
		err := h(ctx, batch("b1"))
		if !errors.Is(err, errRecord) || !strings.Contains(err.Error(), "3 of 4 records failed; events[1]: the record is bad") {
			t.Error(err)
		}
		if err := h(ctx, batch("")); err != nil || !slices.Equal(tr.began, []string{"a1", "b1", "b1", "a2", "b2"}) {
			t.Errorf("ran %q, %v", tr.began, err)
		}
		tr.began = nil
		byName := middleware.EachDocumentDBRecord(keyfuncs.Prefix(keyfuncs.DocumentDBRecord, "by name"), handle, q.with(middleware.OrderByName())...)
		if err := byName(ctx, batch("b1")); err == nil || len(tr.began) != 3 {
			t.Errorf("ran %q, %v: the documents should not wait for each other", tr.began, err)
		}
		if err := h(ctx, awsevents.DocumentDBEvent{}); err == nil {
			t.Error("an event without changes was acknowledged")
		}
	})
}

// TestBatchesInTheRuntime: what Lambda gets from the runtime loop of aws-lambda-go.
func TestBatchesInTheRuntime(t *testing.T) {
	t.Parallel()
	s3, err := os.ReadFile("../keyfuncs/testdata/s3-malformed.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ function, payload, want string }{
		{"SQS batch", `{"Records":[{"messageId":"a"},{"messageId":"b"},{"messageId":"a"}]}`, `{"batchItemFailures":[]}`},
		{"SQS batch", `{"Records":[{"messageId":"a","body":"fails"},{"messageId":"b"},{"messageId":"c","body":"panics"}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`},
		{"SQS batch", `{"Records":[{"messageId":"a","body":"fails"},{"messageId":"b","body":"panics"}]}`, "BatchError: lambdalock: 2 of 2 records failed; Records[0]: the record is bad; Records[1]: panic: the record is bad"},
		{"S3 batch", string(s3), "BatchError: lambdalock: 1 of 3 records failed; Records[1]: lambdalock: no key: Records[1].s3 cannot be decoded: invalid URL escape \"%zz\""},
	} {
		r, err := platform(t, c.function, true).Invoke(t.Context(), locallambda.Invocation{Payload: []byte(c.payload)})
		if err != nil {
			t.Fatal(err)
		}
		got := string(r.Payload)
		if r.Outcome != locallambda.Succeeded {
			got = r.ErrorType + ": " + r.ErrorMessage
		}
		if got != c.want {
			t.Errorf("%s of %s:\n%s, want\n%s", c.function, c.payload, got, c.want)
		}
	}
}

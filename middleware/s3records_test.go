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
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestEachS3RecordOfAnotherSource shows that an event of another source fails,
// and that the error names the function for it.
func TestEachS3RecordOfAnotherSource(t *testing.T) { // F26
	for name, c := range map[string]struct{ event, says string }{
		"SQS":         {testdata(t, "sqs-s3.json"), "EachSQSMessage"},
		"SNS":         {testdata(t, "sns-s3.json"), "EachSNSRecord"},
		"EventBridge": {testdata(t, "eventbridge-s3.json"), "EventBridgeS3Object"},
		"Kafka":       {testdata(t, "kafka.json"), "EachKafkaRecord"},
		"HTTP":        {testdata(t, "apigateway-http.json"), "gateway"},
		"a bus":       {testdata(t, "custombus.json"), "EachEventBridgeEvent"},
		"any JSON":    {`{"order":17}`, "no S3 notification"},
		"no records":  {`{"Records":[]}`, "no S3 notification"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			h := middleware.EachS3Record(
				func(context.Context, events.S3EventRecord) (lock.Key, error) { return lock.Key{Name: "n"}, nil }, // looks at nothing
				func(context.Context, events.S3EventRecord) error { t.Error("ran"); return nil }, f.options()...)
			var e middleware.S3Records
			err := json.Unmarshal([]byte(c.event), &e)
			if err == nil {
				err = h(t.Context(), e)
			}
			if !errors.As(err, new(*lock.NoKeyError)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want a NoKeyError that says %q", err, c.says)
			}
			f.want(t, lock.OutcomeRefused)
		})
	}
}

// TestRawHandlerOfAnotherSource shows that a raw handler fails for an event of
// another source too, and acknowledges only the s3:TestEvent.
func TestRawHandlerOfAnotherSource(t *testing.T) { // F26
	for name, c := range map[string]struct{ event, says string }{
		"the test event": {testdata(t, "s3-test.json"), ""},
		"EventBridge":    {testdata(t, "eventbridge-s3.json"), "EventBridgeS3Object"},
		"SQS":            {testdata(t, "sqs-s3.json"), "SQSBody(S3Object)"},
		"any JSON":       {`{"order":17}`, "no S3 notification"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			handler := rawFunc(func([]byte) ([]byte, error) { t.Error("ran"); return nil, nil })
			out, err := middleware.WithLock(keyfuncs.S3Object, lambda.Handler(handler), f.options()...).Invoke(t.Context(), []byte(c.event))
			if c.says == "" {
				if string(out) != "null" || err != nil {
					t.Errorf("%s, %v", out, err)
				}
				f.want(t, middleware.OutcomeIgnored)
				return
			}
			if !errors.As(err, new(*lock.NoKeyError)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want a NoKeyError that says %q", err, c.says)
			}
			f.want(t, lock.OutcomeRefused)
		})
	}
}

// TestRawHandlerOfS3 shows that a raw handler runs for what S3 sends.
func TestRawHandlerOfS3(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(keyfuncs.S3Object, lambda.Handler(echo{}), f.options()...)
	if _, err := h.Invoke(t.Context(), []byte(testdata(t, "s3-put.json"))); err != nil {
		t.Error(err)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
}

// TestS3TestEventIsNamed shows that the log line of an s3:TestEvent leaves open
// what it is only where the handler takes a decoded events.S3Event, which an
// event of another source looks like.
func TestS3TestEventIsNamed(t *testing.T) {
	t.Parallel()
	event := testdata(t, "s3-test.json")
	fromTopic := string(expect.Value(json.Marshal(events.SNSEntity{MessageID: "n1", Message: event}))(t))
	toRecord := func(context.Context, events.SNSEventRecord) error { return nil }
	for name, c := range map[string]struct {
		deliver func(context.Context, *fixture) error
		open    bool
	}{
		"decoded": {func(ctx context.Context, f *fixture) error {
			return middleware.WithLock(keyfuncs.S3Object, func(context.Context, events.S3Event) error { return nil }, f.options()...)(ctx, events.S3Event{})
		}, true},
		"decoded, to a handler of any": {func(_ context.Context, f *fixture) error {
			return middleware.WithLock(keyfuncs.S3Object, func(any) error { return nil }, f.options()...)(events.S3Event{})
		}, true},
		"JSON": {func(_ context.Context, f *fixture) error {
			return middleware.WithLock(keyfuncs.S3Object, func(any) error { return nil }, f.options()...)(json.RawMessage(event))
		}, false},
		"bytes": {func(ctx context.Context, f *fixture) error {
			_, err := middleware.WithLock(keyfuncs.S3Object, lambda.Handler(echo{}), f.options()...).Invoke(ctx, []byte(event))
			return err
		}, false},
		"records": {func(ctx context.Context, f *fixture) error {
			var e middleware.S3Records
			err := json.Unmarshal([]byte(event), &e)
			return errors.Join(err, middleware.EachS3Record(keyfuncs.S3Record, func(context.Context, events.S3EventRecord) error { return nil }, f.options()...)(ctx, e))
		}, false},
		"queue": {func(ctx context.Context, f *fixture) error {
			_, err := middleware.EachSQSBody(keyfuncs.S3Object, func(context.Context, events.S3Event) error { return nil }, f.options()...)(ctx, queueBatch(event))
			return err
		}, false},
		"topic": {func(ctx context.Context, f *fixture) error {
			return middleware.EachSNSRecord(keyfuncs.SNSBody(keyfuncs.S3Object), toRecord, f.options()...)(ctx, events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "n1", Message: event}}}})
		}, false},
		"topic and queue": {func(ctx context.Context, f *fixture) error {
			_, err := middleware.EachSQSBody(keyfuncs.SNSBody(keyfuncs.S3Object), toRecord, f.options()...)(ctx, queueBatch(fromTopic))
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			expect.OK(t, c.deliver(t.Context(), f))
			ignored := f.of(middleware.OutcomeIgnored)
			if len(ignored) != 1 || !errors.Is(ignored[0].Err, keyfuncs.ErrIgnore) || !strings.Contains(ignored[0].Err.Error(), "s3:TestEvent") {
				t.Fatalf("observed %v, want an s3:TestEvent that is ignored", ignored)
			}
			if line := ignored[0].Err.Error(); strings.Contains(line, "another source") != c.open {
				t.Errorf("%q; says that it may come from another source: want %v", line, c.open)
			}
		})
	}
}

// TestS3RecordsInAMessage shows that the key of a message whose notification
// holds two records is refused with the way that handles both, and that this
// way does: after a failure, only the record that failed runs again.
func TestS3RecordsInAMessage(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, ran := newFixture(), []string{}
		two := string(expect.Value(json.Marshal(events.S3Event{Records: []events.S3EventRecord{s3Record("a"), s3Record("b")}}))(t))
		fromTopic := string(expect.Value(json.Marshal(events.SNSEntity{MessageID: "n1", Message: two}))(t))
		for name, refused := range map[string]func() error{
			"queue": func() error {
				_, err := middleware.EachSQSBody(keyfuncs.S3Object, func(context.Context, events.S3Event) error { return nil }, f.options()...)(ctx, queueBatch(two))
				return err
			},
			"topic and queue": func() error {
				_, err := middleware.EachSQSBody(keyfuncs.SNSBody(keyfuncs.S3Object), func(context.Context, events.SNSEventRecord) error { return nil }, f.options()...)(ctx, queueBatch(fromTopic))
				return err
			},
		} {
			if err := refused(); err == nil || !strings.Contains(err.Error(), "holds 2 records") || !strings.Contains(err.Error(), "docs/SOURCES.md#s3-records-in-a-message") || strings.Contains(err.Error(), "EachS3Record") {
				t.Errorf("%s: %v", name, err)
			}
		}
		fails := true
		each := middleware.EachS3Record(keyfuncs.S3Record, func(_ context.Context, r events.S3EventRecord) error {
			ran = append(ran, r.S3.Object.Key)
			if fails && r.S3.Object.Key == "b" {
				return errors.New("fails")
			}
			return nil
		}, f.options(middleware.Concurrency(1))...)
		inQueue := middleware.EachSQSBody(middleware.RecordKey[middleware.S3Records](keyfuncs.SQSMessage), each, f.options()...)
		inBoth := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			var fromTopic events.SNSEntity
			var e middleware.S3Records
			if err := errors.Join(json.Unmarshal([]byte(m.Body), &fromTopic), json.Unmarshal([]byte(fromTopic.Message), &e)); err != nil {
				return err
			}
			return each(ctx, e)
		}, f.options()...)
		if _, err := inQueue(ctx, queueBatch(two)); err == nil {
			t.Error("the message of the record that failed is acknowledged")
		}
		fails = false
		r, err := inBoth(ctx, queueBatch(fromTopic))
		wantReturned(t, r, err)
		if !slices.Equal(ran, []string{"a", "b", "b"}) {
			t.Errorf("handled %q", ran)
		}
	})
}

// TestMarkOfARecordInAMessage shows what the mark of one record says of the
// message around it: it is moved only if all records that failed did so for
// good, but nothing is known of it if nothing is known of one of them. Nobody
// is warned that nothing moves a record, because it moves with its message.
func TestMarkOfARecordInAMessage(t *testing.T) {
	const moved, returned, skipped = "moved", "returned", "skipped when it comes again"
	permanent, unknown := fmt.Errorf("an article: %w", middleware.Permanent(errRecord)), middleware.Unknown(errRecord)
	for name, c := range map[string]struct {
		fails map[string]error // by the object
		want  string
	}{
		"permanent":             {map[string]error{"b": permanent}, moved},
		"all permanent":         {map[string]error{"a": permanent, "b": permanent}, moved},
		"permanent and another": {map[string]error{"a": permanent, "b": errRecord}, returned},
		"permanent and held":    {map[string]error{"a": permanent, "b": &lock.HeldError{}}, returned},
		"unknown and another":   {map[string]error{"a": unknown, "b": errRecord}, skipped},
		"permanent and unknown": {map[string]error{"a": permanent, "b": unknown}, skipped},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				var log warnings
				f, ran, got := newFixture(), 0, returned
				each := middleware.EachS3Record(keyfuncs.S3Record, func(_ context.Context, r events.S3EventRecord) error {
					ran++
					return c.fails[r.S3.Object.Key]
				}, f.options(middleware.Concurrency(1), log.option())...)
				h := middleware.EachSQSBody(middleware.RecordKey[middleware.S3Records](keyfuncs.SQSMessage), each, f.options(middleware.OnInterrupted(middleware.Skip), middleware.OnFailed(func(_ context.Context, failed failed) {
					err := failed[0].Err
					for _, why := range c.fails {
						if !errors.Is(err, why) || !errors.As(err, new(*middleware.RecordError)) {
							t.Errorf("%v hides %v", err, why)
						}
					}
					if errors.As(err, new(*middleware.PermanentError)) {
						got = moved
					}
				}))...)
				two := string(expect.Value(json.Marshal(events.S3Event{Records: []events.S3EventRecord{s3Record("a"), s3Record("b")}}))(t))
				_, _ = h(ctx, queueBatch(two))
				if lines := strings.Join(log.lines(), "\n"); ran != 2 || strings.Contains(lines, "OnFailed") {
					t.Errorf("%d records ran, logged %s", ran, lines)
				}
				clear(c.fails)
				if _, _ = h(ctx, queueBatch(two)); ran == 2 {
					got = skipped
				}
				if got != c.want {
					t.Errorf("the message is %s, want %s", got, c.want)
				}
			})
		})
	}
}

// testdata returns a real event.
func testdata(t *testing.T, name string) string {
	t.Helper()
	b := expect.Value(os.ReadFile("../keyfuncs/testdata/" + name))(t)
	return string(b)
}

// TestNewsOfAnUpload shows that S3 events about an object after its upload are
// handled, each once, and do not change the order of uploads.
func TestNewsOfAnUpload(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, ran := newFixture(), []string{}
		h := middleware.WithLock(keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord), func(_ context.Context, e events.S3Event) error {
			ran = append(ran, e.Records[0].EventName+" "+e.Records[0].S3.Object.Sequencer)
			return nil
		}, f.options()...)
		deliver := func(kind, sequencer string) {
			r := s3Record("k")
			r.EventName, r.S3.Object.Sequencer, r.ResponseElements = kind, sequencer, map[string]string{"x-amz-request-id": kind + sequencer}
			expect.OK(t, h(ctx, events.S3Event{Records: []events.S3EventRecord{r}}))
		}
		for range 2 {
			deliver("ObjectCreated:Put", "02")
			deliver("Replication:OperationMissedThreshold", "02")
			deliver("Replication:OperationReplicatedAfterThreshold", "02")
			deliver("ObjectCreated:Put", "01")
			deliver("ObjectRestore:Post", "02")
			deliver("ObjectRestore:Completed", "02")
		}
		deliver("ObjectRemoved:DeleteMarkerCreated", "03")
		want := []string{
			"ObjectCreated:Put 02", "Replication:OperationMissedThreshold 02", "Replication:OperationReplicatedAfterThreshold 02",
			"ObjectRestore:Post 02", "ObjectRestore:Completed 02", "ObjectRemoved:DeleteMarkerCreated 03",
		}
		if !slices.Equal(ran, want) {
			t.Errorf("handled %q, want %q", ran, want)
		}
	})
}

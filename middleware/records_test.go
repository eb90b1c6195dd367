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
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// s3Record returns the record of one uploaded object.
func s3Record(key string) events.S3EventRecord { return upload(key, "01").Records[0] }

// TestEachS3Record shows that the error names the records that failed, and that
// only those run when the whole event is delivered again.
func TestEachS3Record(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		does := map[string]string{"b": "fails", "d": "panics"}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error {
			return runs.act(ctx, r.S3.Object.Key, does[r.S3.Object.Key])
		}, f.options(middleware.Concurrency(1))...)
		event := middleware.S3Records{S3Event: events.S3Event{Records: []events.S3EventRecord{s3Record("a"), s3Record("b"), s3Record("%zz"), s3Record("c"), s3Record("d")}}}
		err := h(ctx, event)
		var batch *middleware.BatchError
		if !errors.As(err, &batch) || batch.Records != 5 || len(batch.Failed) != 3 {
			t.Fatalf("%v", err)
		}
		var panicked *middleware.PanicError
		if !errors.Is(err, errRecord) || !errors.As(err, new(*lock.NoKeyError)) || !errors.As(err, &panicked) || panicked.Value != errRecord || !errors.Is(panicked, errRecord) || !strings.Contains(string(panicked.Stack), "runLog).act") {
			t.Errorf("%v does not unwrap to each record's error", err)
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(panicked.Error(), "runLog).act") {
			t.Errorf("%v should leave out the stack, which %v has", err, panicked)
		}
		for _, part := range []string{"3 of 5 records failed", "Records[1]: the record is bad", "Records[2]: ", "Records[4]: panic: the record is bad"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
		clear(does)
		err = h(ctx, event)
		if !slices.Equal(runs.began, []string{"a", "b", "c", "d", "b", "d"}) || !errors.As(err, &batch) || len(batch.Failed) != 1 {
			t.Errorf("ran %q, then %v", runs.began, err)
		}
	})
}

// TestBatchErrorStaysShort shows that the message names only the first of many
// records.
func TestBatchErrorStaysShort(t *testing.T) {
	t.Parallel()
	e := &middleware.BatchError{Records: 1000}
	for i := range 1000 {
		e.Failed = append(e.Failed, &middleware.RecordError{Record: fmt.Sprintf("Records[%d]", i), Err: errRecord})
	}
	if s := e.Error(); len(s) > 400 || !strings.HasSuffix(s, "Records[4]: the record is bad; and 995 more") {
		t.Errorf("%s", s)
	}
	e.Failed[999].Err = context.Canceled
	if !errors.Is(e, context.Canceled) {
		t.Error("the error of the last record is not found")
	}
	e.Failed = e.Failed[:5]
	if s := e.Error(); !strings.HasSuffix(s, "Records[4]: the record is bad") {
		t.Errorf("%s", s)
	}
}

// TestS3EventDecodesEachRecord shows that one malformed object key fails only
// its own record. aws-lambda-go would refuse the whole event.
func TestS3EventDecodesEachRecord(t *testing.T) { // F31
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		payload, err := os.ReadFile("../keyfuncs/testdata/s3-malformed.json")
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(payload, &events.S3Event{}) == nil {
			t.Error("aws-lambda-go accepts the event: this test shows nothing")
		}
		var e middleware.S3Records
		expect.Must(t, json.Unmarshal(payload, &e))
		f, runs := newFixture(), &runLog{}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error {
			return runs.act(ctx, r.S3.Object.URLDecodedKey, "")
		}, f.options(middleware.Concurrency(1))...)
		err = h(ctx, e)
		if !slices.Equal(runs.began, []string{"holiday 2026/a+b&c é.jpg", "holiday 2026/two.jpg"}) || err == nil || !strings.Contains(err.Error(), "1 of 3 records failed; Records[1]: ") {
			t.Errorf("ran %q, %v", runs.began, err)
		}
		runs.began = nil
		mutex := func(context.Context, events.S3EventRecord) (lock.Key, error) { return lock.Key{Name: "mutex"}, nil }
		h = middleware.EachS3Record(mutex, func(ctx context.Context, r events.S3EventRecord) error {
			return runs.act(ctx, r.S3.Object.URLDecodedKey, "")
		}, f.options()...)
		if err := h(ctx, e); err == nil || len(runs.began) != 2 {
			t.Errorf("with a key that needs nothing of the record, ran %q, %v", runs.began, err)
		}
		if err := json.Unmarshal([]byte(`{"Records":1}`), &e); err == nil {
			t.Error("a malformed event was decoded")
		}
	})
}

// TestEachS3RecordOfNone shows that the s3:TestEvent is acknowledged.
func TestEachS3RecordOfNone(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachS3Record(keyfuncs.S3Record, func(ctx context.Context, r events.S3EventRecord) error { return runs.act(ctx, "", "") }, f.options()...)
		var e middleware.S3Records
		expect.Must(t, json.Unmarshal([]byte(`{"Event":"s3:TestEvent"}`), &e))
		expect.OK(t, h(ctx, e))
		f.want(t, middleware.OutcomeIgnored)
	})
}

// TestEachSNSRecord shows that only the records that failed run again, and that
// an event without records is refused.
func TestEachSNSRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(ctx context.Context, r events.SNSEventRecord) error {
			return runs.act(ctx, r.SNS.MessageID, r.SNS.Message)
		}, f.options()...)
		e := events.SNSEvent{Records: make([]events.SNSEventRecord, 2)}
		e.Records[0].SNS.MessageID, e.Records[1].SNS.MessageID, e.Records[1].SNS.Message = "a", "b", "fails"
		if err := h(ctx, e); !errors.Is(err, errRecord) {
			t.Error(err)
		}
		e.Records[1].SNS.Message = ""
		if err := h(ctx, e); err != nil || len(runs.began) != 3 {
			t.Errorf("%v after %q", err, runs.began)
		}
		if err := h(ctx, events.SNSEvent{}); err == nil {
			t.Error("an event without records was acknowledged")
		}
	})
}

// TestEachKinesisRecord shows that the records of a shard keep their order, and
// that the rest is returned after a failure.
func TestEachKinesisRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, runs.kinesis, f.options()...)
		r, err := h(ctx, kinesisBatch(map[string]string{"a2": "fails"}))
		wantReturned(t, r, err, "102", "103", "104", "105")
		if !slices.Equal(runs.began, []string{"a1", "b1", "a2"}) || runs.mostAtOne != 1 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
		r, err = h(ctx, kinesisBatch(nil))
		wantReturned(t, r, err)
		if !slices.Equal(runs.began, []string{"a1", "b1", "a2", "a2", "b2", "a3", "b3"}) {
			t.Errorf("ran %q", runs.began)
		}
		if _, err := h(ctx, middleware.KinesisRecords{}); err == nil {
			t.Error("an event without records was acknowledged")
		}
	})
}

// TestOrderPerName shows that a failure does not stop other names, and that
// their completed records are skipped when Lambda delivers from the failed
// record on.
func TestOrderPerName(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, runs.kinesis, f.options(middleware.OrderPerName())...)
		r, err := h(ctx, kinesisBatch(map[string]string{"a2": "fails"}))
		wantReturned(t, r, err, "102", "104")
		if slices.Sort(runs.began); !slices.Equal(runs.began, []string{"a1", "a2", "b1", "b2", "b3"}) || runs.mostAtOne != 2 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
		runs.began = nil
		again := kinesisBatch(nil)
		again.Records = again.Records[2:]
		r, err = h(ctx, again)
		wantReturned(t, r, err)
		if !slices.Equal(runs.began, []string{"a2", "a3"}) {
			t.Errorf("ran %q again", runs.began)
		}
	})
}

// TestOrderPerNameWithoutAKey shows that a record which should have a key and
// has none holds back all records after it, because it may be of any name: none
// of them would be stale when it has one. It holds back nobody once it is put
// elsewhere, or if it needs no key.
func TestOrderPerNameWithoutAKey(t *testing.T) {
	rest := []string{"102", "103", "104", "105"}
	for name, c := range map[string]struct {
		key      func() (lock.Key, error) // of a2
		moves    bool
		latest   bool // only
		ran      string
		returned []string
	}{
		"the key function fails":       {key: func() (lock.Key, error) { return lock.Key{}, errRecord }, ran: "a1 b1", returned: rest},
		"it fails, but names a record": {key: func() (lock.Key, error) { return lock.Key{Name: "c"}, errRecord }, ran: "a1 b1", returned: rest},
		"it panics":                    {key: func() (lock.Key, error) { panic(errRecord) }, ran: "a1 b1", returned: rest},
		"it finds no name":             {key: func() (lock.Key, error) { return lock.Key{}, nil }, ran: "a1 b1", returned: rest},
		"it fails for good":            {key: func() (lock.Key, error) { return lock.Key{}, middleware.Permanent(errRecord) }, ran: "a1 b1", returned: rest},
		"the record is moved":          {key: func() (lock.Key, error) { return lock.Key{}, middleware.Permanent(errRecord) }, moves: true, ran: "a1 a3 b1 b2 b3"},
		"later runs serve it as well":  {key: func() (lock.Key, error) { return lock.Key{}, errRecord }, latest: true, ran: "a1 b1", returned: rest[:1]},
		"the record is ignored":        {key: func() (lock.Key, error) { return lock.Key{}, keyfuncs.ErrIgnore }, ran: "a1 a3 b1 b2 b3"},
		"it needs no lock, and fails":  {key: func() (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }, ran: "a1 a2 a3 b1 b2 b3", returned: rest[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs, mended := newFixture(), &runLog{}, false
				key := func(ctx context.Context, r events.KinesisEventRecord) (lock.Key, error) {
					if r.Kinesis.SequenceNumber == "102" && !mended {
						return c.key()
					}
					return keyfuncs.KinesisRecord(ctx, r)
				}
				opts := f.options(middleware.OrderPerName())
				if c.latest {
					opts = append(opts, middleware.OnlyLatest())
				}
				h := middleware.EachKinesisRecord(key, runs.kinesis, append(opts, middleware.OnFailed(func(_ context.Context, failed []*middleware.Failed[events.KinesisEventRecord]) {
					if c.moves {
						failed[0].Err = nil
					}
				}))...)
				r, err := h(ctx, kinesisBatch(nil))
				wantReturned(t, r, err, c.returned...)
				if slices.Sort(runs.began); strings.Join(runs.began, " ") != c.ran {
					t.Errorf("ran %q, want %q", runs.began, c.ran)
				}
				if len(c.returned) < len(rest) {
					return
				}
				if n := f.of(middleware.OutcomeNotBegun); len(n) != 1 || n[0].Records != 3 {
					t.Errorf("not begun: %v", n)
				}
				mended = true
				r, err = h(ctx, kinesisBatch(nil))
				wantReturned(t, r, err)
				if slices.Sort(runs.began); strings.Join(runs.began, " ") != "a1 a2 a3 b1 b2 b3" {
					t.Errorf("ran %q in all", runs.began)
				}
			})
		})
	}
}

// TestEachDynamoDBRecord shows that the records of a shard keep their order,
// and that the rest is returned after a failure.
func TestEachDynamoDBRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, runs.dynamoDB, f.options()...)
		r, err := h(ctx, dynamoDBBatch("", "fails", "", ""))
		wantReturned(t, r, err, "1", "2", "3")
		r, err = h(ctx, dynamoDBBatch("", "", "", ""))
		wantReturned(t, r, err)
		if !slices.Equal(runs.began, []string{"0", "1", "1", "2", "3"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestEachDocumentDBRecord shows that the changes of a stream keep their order,
// or with OrderPerName those of a document.
func TestEachDocumentDBRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
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
			return runs.act(ctx, r.Event.OperationType, string(r.Event.FullDocument))
		}
		h := middleware.EachDocumentDBRecord(keyfuncs.DocumentDBRecord, handle, f.options()...)
		err := h(ctx, batch("b1"))
		if !errors.Is(err, errRecord) || !strings.Contains(err.Error(), "3 of 4 records failed; events[1]: the record is bad") {
			t.Error(err)
		}
		if err := h(ctx, batch("")); err != nil || !slices.Equal(runs.began, []string{"a1", "b1", "b1", "a2", "b2"}) {
			t.Errorf("ran %q, %v", runs.began, err)
		}
		runs.began = nil
		byName := middleware.EachDocumentDBRecord(keyfuncs.Prefix(keyfuncs.DocumentDBRecord, "by name"), handle, f.options(middleware.OrderPerName())...)
		if err := byName(ctx, batch("b1")); err == nil || len(runs.began) != 3 {
			t.Errorf("ran %q, %v: the documents should not wait for each other", runs.began, err)
		}
		if err := h(ctx, awsevents.DocumentDBEvent{}); err == nil {
			t.Error("an event without changes was acknowledged")
		}
	})
}

// TestBatchesInTheRuntime shows what Lambda gets from the runtime loop of
// aws-lambda-go.
func TestBatchesInTheRuntime(t *testing.T) {
	t.Parallel()
	s3 := expect.Value(os.ReadFile("../keyfuncs/testdata/s3-malformed.json"))(t)
	for name, c := range map[string]struct{ function, payload, want string }{
		"duplicate":         {"SQS batch", `{"Records":[{"messageId":"a"},{"messageId":"b"},{"messageId":"a"}]}`, `{"batchItemFailures":[]}`},
		"some fail":         {"SQS batch", `{"Records":[{"messageId":"a","body":"fails"},{"messageId":"b"},{"messageId":"c","body":"panics"}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`},
		"all fail":          {"SQS batch", `{"Records":[{"messageId":"a","body":"fails"},{"messageId":"b","body":"panics"}]}`, "BatchError: lambdalock: 2 of 2 records failed; Records[0]: the record is bad; Records[1]: panic: the record is bad"},
		"unreadable record": {"S3 batch", string(s3), "BatchError: lambdalock: 1 of 3 records failed; Records[1]: lambdalock: no key: Records[1].s3 cannot be decoded: invalid URL escape \"%zz\""},
	} {
		t.Run(name, func(t *testing.T) {
			r := expect.Value(platform(t, c.function, true).Invoke(t.Context(), locallambda.Invocation{Payload: []byte(c.payload)}))(t)
			got := string(r.Payload)
			if r.Outcome != locallambda.Succeeded {
				got = r.ErrorType + ": " + r.ErrorMessage
			}
			if got != c.want {
				t.Errorf("%s of %s:\n%s, want\n%s", c.function, c.payload, got, c.want)
			}
		})
	}
}

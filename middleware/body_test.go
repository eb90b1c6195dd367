package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// snsBatch returns an event with these messages, whose ids are m0, m1, ….
func snsBatch(messages ...string) (e events.SNSEvent) {
	for i, m := range messages {
		e.Records = append(e.Records, events.SNSEventRecord{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: fmt.Sprint("m", i), Message: m}})
	}
	return e
}

// streamBatch returns an event with these records of one shard, whose sequence
// numbers are 100, 101, ….
func streamBatch(data ...string) (e middleware.KinesisRecords) {
	for i, d := range data {
		r := events.KinesisEventRecord{EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:us-east-2:123456789012:stream/readings"}
		r.Kinesis.SequenceNumber = fmt.Sprint(100 + i)
		r.EventID = "shardId-000000000006:" + r.Kinesis.SequenceNumber
		r.Kinesis.PartitionKey, r.Kinesis.Data = "any", []byte(d)
		e.Records = append(e.Records, r)
	}
	return e
}

// queueBatch returns an event with these messages, whose ids are m0, m1, ….
func queueBatch(bodies ...string) (e events.SQSEvent) {
	for i, b := range bodies {
		e.Records = append(e.Records, message(fmt.Sprint("m", i), b))
	}
	return e
}

// bodies delivers texts as what the records of each source carry, and returns
// the records that come back.
func bodies[B any](key keyfuncs.Func[B], handler func(context.Context, B) error, opts ...middleware.Option) map[string]struct {
	field   string // of the text in its record
	deliver func(ctx context.Context, texts ...string) (returned []string, err error)
} {
	sqs, sns := middleware.EachSQSBody(key, handler, opts...), middleware.EachSNSBody(key, handler, opts...)
	kinesis := middleware.EachKinesisBody(key, handler, append(opts, middleware.OrderPerName())...)
	return map[string]struct {
		field   string
		deliver func(ctx context.Context, texts ...string) (returned []string, err error)
	}{
		"SQS": {"body", func(ctx context.Context, texts ...string) (returned []string, err error) {
			answer, err := sqs(ctx, queueBatch(texts...))
			for _, f := range answer.BatchItemFailures {
				returned = append(returned, strings.TrimPrefix(f.ItemIdentifier, "m"))
			}
			return returned, err
		}},
		"SNS": {"Sns.Message", func(ctx context.Context, texts ...string) (returned []string, err error) {
			err = sns(ctx, snsBatch(texts...))
			var batch *middleware.BatchError
			if errors.As(err, &batch) {
				for _, f := range batch.Failed {
					returned = append(returned, strings.Trim(f.Record, "Records[]"))
				}
				if len(returned) < batch.Records {
					err = nil
				}
			}
			return returned, err
		}},
		"Kinesis": {"kinesis.data", func(ctx context.Context, texts ...string) (returned []string, err error) {
			answer, err := kinesis(ctx, streamBatch(texts...))
			for _, f := range answer.BatchItemFailures {
				returned = append(returned, strings.TrimPrefix(f.ItemIdentifier, "10")) // of 10 records at most
			}
			return returned, err
		}},
	}
}

// refusedFields returns the fields that the refused keys name, sorted.
func (r *fixture) refusedFields() []string {
	var fields []string
	for _, s := range r.of(lock.OutcomeRefused) {
		fields = append(fields, s.Err.(*lock.NoKeyError).Field)
	}
	slices.Sort(fields)
	return fields
}

// TestMalformedBodyFailsAlone shows that a record whose body cannot be decoded
// fails alone, wherever it is in the batch, and that the error names the field.
// In a stream it has no name, and so it holds back what follows it.
func TestMalformedBodyFailsAlone(t *testing.T) { // F31
	t.Parallel()
	for what, malformed := range map[string]string{
		"no JSON": "order=7", "empty": "", "null": "null", "an array": "[]", "a number": "12345678901234567890", "a string": `"7"`,
		"another shape": `{"id":7}`, "two values": `{"id":"7"}{"id":"8"}`, "not UTF-8": "{\"id\":\"\xff\"}", "not ended": `{"id":"7"`,
	} {
		for position := range 3 {
			for source := range bodies(lockPerOrder, func(context.Context, order) error { return nil }, newFixture().options()...) {
				t.Run(fmt.Sprintf("%s, %s at %d", source, what, position), func(t *testing.T) {
					underDeadline(t, func(t *testing.T, ctx context.Context) {
						f, runs := newFixture(), &runLog{}
						each := bodies(lockPerOrder, func(ctx context.Context, o order) error { return runs.act(ctx, o.ID, "") }, f.options()...)[source]
						texts := []string{`{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`}
						want := []string{"a", "b", "c"}
						texts[position] = malformed
						failed := 1
						if source == "Kinesis" {
							failed = len(texts) - position
						}
						want = slices.Delete(want, position, position+failed)
						returned, err := each.deliver(ctx, texts...)
						slices.Sort(runs.began)
						if errors.As(err, new(*middleware.BatchError)) != (failed == len(texts)) || !slices.Equal(returned, []string{"0", "1", "2"}[position:position+failed]) || !slices.Equal(runs.began, want) {
							t.Errorf("returned %q, %v; ran %q, want %q", returned, err, runs.began, want)
						}
						if field := fmt.Sprintf("Records[%d].%s", position, each.field); !slices.Equal(f.refusedFields(), []string{field}) {
							t.Errorf("refused %q, want %q", f.refusedFields(), field)
						}
					})
				})
			}
		}
	}
}

// TestAllBodiesMalformed shows that a batch of nothing but malformed bodies is
// an error, and that an empty one is too.
func TestAllBodiesMalformed(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		handle := func(context.Context, order) error { t.Error("the handler ran"); return nil }
		h := middleware.EachSQSBody(lockPerOrder, handle, newFixture().options()...)
		r, err := h(ctx, queueBatch("{", "null", ""))
		wantAllReturned(t, r, err, "m0", "m1", "m2")
		for source, each := range bodies(lockPerOrder, handle, newFixture().options()...) {
			for _, texts := range [][]string{{"{", "null", ""}, nil} {
				if returned, err := each.deliver(ctx, texts...); !errors.As(err, new(*middleware.BatchError)) || len(returned) != len(texts) {
					t.Errorf("%s: %q gives %q, %v", source, texts, returned, err)
				}
			}
		}
	})
}

// counted counts how often it was decoded, and each copy has a number.
type counted struct {
	number int64
	order
}

var decodings atomic.Int64

func (c *counted) UnmarshalJSON(b []byte) error {
	c.number = decodings.Add(1)
	return json.Unmarshal(b, &c.order)
}

// TestBodyIsDecodedOnce shows that key and handler get the same value.
func TestBodyIsDecodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ofKey, ofHandler := map[string]int64{}, map[string]int64{}
		key := func(_ context.Context, c counted) (lock.Key, error) {
			ofKey[c.ID] = c.number
			return lock.Key{Name: c.ID}, nil
		}
		handle := func(_ context.Context, c counted) error {
			mu.Lock()
			defer mu.Unlock()
			ofHandler[c.ID] = c.number
			return nil
		}
		for source := range bodies(key, handle, newFixture().options()...) {
			decodings.Store(0)
			clear(ofHandler)
			each := bodies(key, handle, newFixture().options()...)[source]
			returned, err := each.deliver(t.Context(), `{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`)
			if err != nil || returned != nil || decodings.Load() != 3 || len(ofHandler) != 3 || !maps.Equal(ofKey, ofHandler) {
				t.Errorf("%s: %q, %v; %d decodings; the keys got %v, the handlers %v", source, returned, err, decodings.Load(), ofKey, ofHandler)
			}
		}
		decodings.Store(0)
		h := middleware.WithEventBridgeDetail(key, handle, newFixture().options()...)
		if err := h(t.Context(), events.EventBridgeEvent{ID: "1", Detail: []byte(`{"id":"d"}`)}); err != nil || decodings.Load() != 1 || ofKey["d"] != ofHandler["d"] {
			t.Errorf("EventBridge: %v; %d decodings", err, decodings.Load())
		}
	})
}

// show returns a value as text, and raw JSON unchanged.
func show(v any) string {
	if raw, ok := v.(json.RawMessage); ok {
		return string(raw)
	}
	return fmt.Sprint(v)
}

// bodyShape handles a message of one shape, and returns what the handler got.
func bodyShape[B any](body string) (got string, err error) {
	key := func(_ context.Context, b B) (lock.Key, error) { return lock.Key{Name: fmt.Sprintf("%v", b)}, nil }
	h := middleware.EachSQSBody(key, func(_ context.Context, b B) error { got = fmt.Sprintf("%T ", b) + show(b); return nil }, newFixture().options()...)
	_, err = h(context.Background(), queueBatch(body))
	return got, err
}

// TestBodyShapes shows which types a body can have, and that numbers without a
// type keep their digits.
func TestBodyShapes(t *testing.T) {
	t.Parallel()
	type parcel struct {
		To   string
		Rest json.RawMessage
		Any  any
	}
	for name, c := range map[string]struct {
		handle func(string) (string, error)
		body   string
		want   string
	}{
		"raw":             {bodyShape[json.RawMessage], `{"a": 12345678901234567890}`, `json.RawMessage {"a": 12345678901234567890}`},
		"any object":      {bodyShape[any], `{"a":12345678901234567890}`, "map[string]interface {} map[a:12345678901234567890]"},
		"any number":      {bodyShape[any], "12345678901234567890", "json.Number 12345678901234567890"},
		"any array":       {bodyShape[any], `["x"]`, "[]interface {} [x]"},
		"map":             {bodyShape[map[string]json.Number], `{"a":1}`, "map[string]json.Number map[a:1]"},
		"slice":           {bodyShape[[]string], `["x","y"]`, "[]string [x y]"},
		"string":          {bodyShape[string], `"x"`, "string x"},
		"number":          {bodyShape[uint64], "12345678901234567890", "uint64 12345678901234567890"},
		"raw in a struct": {bodyShape[parcel], `{"To":"jane","Rest":{"b":[1.50]},"Any":20000000000000000001}`, "middleware_test.parcel {jane [123 34 98 34 58 91 49 46 53 48 93 125] 20000000000000000001}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := c.handle(c.body); got != c.want || err != nil {
				t.Errorf("the handler got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestHandlerThatMutatesItsBody shows that no record sees what the handler of
// another one does to its body, and that the record keeps its own text.
func TestHandlerThatMutatesItsBody(t *testing.T) { // F25
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		type cart struct{ Items map[string]json.RawMessage }
		key := func(context.Context, cart) (lock.Key, error) { return lock.Key{Name: "carts"}, nil }
		runs := 0
		h := middleware.EachSQSBody(key, func(ctx context.Context, c cart) error {
			runs++
			m, _ := middleware.RecordFromContext[events.SQSMessage](ctx)
			if string(c.Items["a"]) != "1" || len(c.Items) != 1 || m.Body != `{"Items":{"a":1}}` {
				t.Errorf("the handler got %v of %q", c, m.Body)
			}
			c.Items["a"][0] = 'x'
			c.Items["b"] = nil
			return nil
		}, newFixture().options()...)
		body := `{"Items":{"a":1}}`
		r, err := h(ctx, queueBatch(body, body, body))
		wantReturned(t, r, err)
		if runs != 3 {
			t.Errorf("ran %d times", runs)
		}
	})
}

// TestBodyHasTheKeyOfItsLifter shows that a handler of bodies recognises what a
// handler of records with SQSBody and its siblings completed.
func TestBodyHasTheKeyOfItsLifter(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		noEvent := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: o.ID}, nil }
		ran := 0
		handle := func(context.Context, order) error { ran++; return nil }
		queue, topic, stream := queueBatch(`{"id":"q"}`), snsBatch(`{"id":"t"}`), streamBatch(`{"id":"s"}`)
		bridged := events.EventBridgeEvent{ID: "e1", Detail: []byte(`{"id":"b"}`)}
		for name, c := range map[string]struct{ lifted, typed func() error }{
			"SQS": {func() error {
				_, err := middleware.EachSQSMessage(keyfuncs.SQSBody(noEvent), func(context.Context, events.SQSMessage) error { return nil }, f.options()...)(ctx, queue)
				return err
			}, func() error {
				_, err := middleware.EachSQSBody(noEvent, handle, f.options()...)(ctx, queue)
				return err
			}},
			"SNS": {func() error {
				return middleware.EachSNSRecord(keyfuncs.SNSBody(noEvent), func(context.Context, events.SNSEventRecord) error { return nil }, f.options()...)(ctx, topic)
			}, func() error { return middleware.EachSNSBody(noEvent, handle, f.options()...)(ctx, topic) }},
			"Kinesis": {func() error {
				_, err := middleware.EachKinesisRecord(keyfuncs.KinesisBody(noEvent), func(context.Context, events.KinesisEventRecord) error { return nil }, f.options()...)(ctx, stream)
				return err
			}, func() error {
				_, err := middleware.EachKinesisBody(noEvent, handle, f.options()...)(ctx, stream)
				return err
			}},
			"EventBridge": {func() error {
				return middleware.WithLock(keyfuncs.EventBridgeDetail(noEvent), func(context.Context, events.EventBridgeEvent) error { return nil }, f.options()...)(ctx, bridged)
			}, func() error { return middleware.WithEventBridgeDetail(noEvent, handle, f.options()...)(ctx, bridged) }},
		} {
			f.forget()
			if err := errors.Join(c.lifted(), c.typed()); err != nil || ran != 0 || f.count(lock.OutcomeAlreadyCompleted) != 1 {
				t.Errorf("%s: %v; ran %d times, observed %q", name, err, ran, f.outcomes())
			}
		}
	})
}

// TestBodyOfAnAWSEvent shows that a body that should hold an AWS event is
// checked as by the key functions of envelopes.
func TestBodyOfAnAWSEvent(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		var objects []string
		h := middleware.EachSQSBody(keyfuncs.S3Object, func(_ context.Context, e events.S3Event) error {
			objects = append(objects, e.Records[0].S3.Object.URLDecodedKey)
			return nil
		}, f.options(middleware.Concurrency(1))...)
		r, err := h(ctx, queueBatch(
			`{"Event":"s3:TestEvent","Service":"Amazon S3"}`, `{"id":"1","source":"aws.s3","detail-type":"Object Created","detail":{}}`, `{"order":17}`, `{"Records":[]}`, "null",
			`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"a+b.png","sequencer":"01"}}}]}`,
		))
		wantReturned(t, r, err, "m1", "m2", "m3", "m4")
		if !slices.Equal(objects, []string{"a b.png"}) || f.count(middleware.OutcomeIgnored) != 1 {
			t.Errorf("handled %q, observed %q", objects, f.outcomes())
		}
		var notices []string
		fromTopic := middleware.EachSQSBody(keyfuncs.SNSRecord, func(_ context.Context, r events.SNSEventRecord) error {
			notices = append(notices, r.SNS.MessageID+" "+r.SNS.Message)
			return nil
		}, f.options()...)
		r, err = fromTopic(ctx, queueBatch(`{"Type":"Notification","MessageId":"n1","Message":"hello"}`, `{"order":17}`))
		wantReturned(t, r, err, "m1")
		if !slices.Equal(notices, []string{"n1 hello"}) {
			t.Errorf("handled %q", notices)
		}
	})
}

// TestBodiesInOrder shows that handlers of bodies keep the order of FIFO groups
// and shards, and that RecordKey skips what is stale.
func TestBodiesInOrder(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSBody(middleware.RecordKey[order](keyfuncs.SQSFIFOMessage), func(ctx context.Context, o order) error {
			return runs.act(ctx, o.ID, map[bool]string{true: "fails"}[o.Item == 13])
		}, f.options()...)
		first := inGroup("x", message("x1", `{"id":"x1"}`))
		r, err := h(ctx, sqsBatch(first, inGroup("x", message("x2", `{"id":"x2","item":13}`)), inGroup("x", message("x3", `{"id":"x3"}`)), inGroup("y", message("y1", `{"id":"y1"}`))))
		wantReturned(t, r, err, "x2", "x3")
		r, err = h(ctx, sqsBatch(inGroup("x", message("x2", `{"id":"x2"}`)), inGroup("x", message("x3", `{"id":"x3"}`))))
		wantReturned(t, r, err)
		f.forget()
		first.MessageId = "x1 in a late copy"
		r, err = h(ctx, sqsBatch(first))
		wantReturned(t, r, err)
		slices.Sort(runs.began)
		if !slices.Equal(runs.began, []string{"x1", "x2", "x2", "x3", "y1"}) || len(f.outcomes()) != 1 || f.count(lock.OutcomeAlreadyCompleted)+f.count(lock.OutcomeStale) != 1 {
			t.Errorf("ran %q, then observed %q", runs.began, f.outcomes())
		}

		runs = &runLog{}
		bySensor := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: o.ID}, nil }
		stream := middleware.EachKinesisBody(keyfuncs.OrderFrom(bySensor, middleware.RecordKey[order](keyfuncs.KinesisRecord)), func(ctx context.Context, o order) error {
			return runs.act(ctx, fmt.Sprint(o.ID, o.Item), map[bool]string{true: "fails"}[o.Item == 13])
		}, f.options()...)
		e := streamBatch(`{"id":"a","item":1}`, `{"id":"b","item":2}`, `{"id":"a","item":13}`, `{"id":"b","item":4}`)
		answer, err := stream(ctx, e)
		wantReturned(t, answer, err, "102", "103")
		if want := []string{"a1", "b2", "a13"}; !slices.Equal(runs.began, want) || runs.mostAtOne != 1 {
			t.Errorf("ran %q, want %q", runs.began, want)
		}
		f.forget()
		late := e.Records[0]
		late.EventID = "shardId-000000000006:copy"
		e.Records = e.Records[3:]
		answer, err = stream(ctx, e)
		wantReturned(t, answer, err)
		if answer, err = stream(ctx, middleware.KinesisRecords{KinesisEvent: events.KinesisEvent{Records: []events.KinesisEventRecord{late}}}); err != nil || len(answer.BatchItemFailures) != 0 || len(runs.began) != 4 {
			t.Errorf("%v, %v; ran %q", answer, err, runs.began)
		}
	})
}

// TestRecordKeyErrors shows that an error of a key from the record names the
// field there, and that a key for other records is refused.
func TestRecordKeyErrors(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		handle := func(context.Context, order) error { t.Error("the handler ran"); return nil }
		ignoring := func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrIgnore }
		wrapping := func(ctx context.Context, o order) (lock.Key, error) {
			k, err := middleware.RecordKey[order](keyfuncs.SQSFIFOMessage)(ctx, o)
			return k, fmt.Errorf("by group: %w", err)
		}
		for name, c := range map[string]struct {
			key   keyfuncs.Func[order]
			field string
		}{
			"no group":      {middleware.RecordKey[order](keyfuncs.SQSFIFOMessage), "Records[0].attributes.MessageGroupId"},
			"wrapped":       {wrapping, "Records[0].attributes.MessageGroupId"},
			"joined":        {keyfuncs.Join(lockPerOrder, middleware.RecordKey[order](keyfuncs.SQSFIFOMessage)), "Records[0].attributes.MessageGroupId"},
			"other records": {middleware.RecordKey[order](keyfuncs.KinesisRecord), "Records[0].record"},
			"ignored":       {middleware.RecordKey[order](ignoring), ""},
		} {
			f := newFixture()
			r, err := middleware.EachSQSBody(c.key, handle, f.options()...)(ctx, queueBatch(`{"id":"a"}`))
			if c.field == "" {
				wantReturned(t, r, err)
				f.want(t, middleware.OutcomeIgnored)
			} else if wantAllReturned(t, r, err, "m0"); !slices.Equal(f.refusedFields(), []string{c.field}) {
				t.Errorf("%s: refused %q, want %q", name, f.refusedFields(), c.field)
			}
		}
		_, err := middleware.RecordKey[order](keyfuncs.SQSMessage)(ctx, order{})
		if err == nil || !strings.Contains(err.Error(), "is not of type events.SQSMessage") {
			t.Errorf("outside a wrapper: %v", err)
		}
	})
}

// TestTenThousandBodies shows that a large batch with duplicates and malformed
// bodies needs no more goroutines than a small one.
func TestTenThousandBodies(t *testing.T) { // F32
	synctest.Test(t, func(t *testing.T) {
		f, runs := newFixture(), &runLog{}
		var surrounded atomic.Int64
		h := middleware.EachSQSBody(lockPerOrder, func(ctx context.Context, o order) error { return runs.act(ctx, o.ID, "") },
			f.options(middleware.Around(func(ctx context.Context, _ events.SQSMessage, next func(context.Context) error) error {
				surrounded.Add(1)
				return next(ctx)
			}))...)
		var batch events.SQSEvent
		var want []string
		distinct := map[string]bool{}
		for i := range 10_000 {
			id := fmt.Sprint(i % 8000) // the last 2000 are duplicates
			m := message(fmt.Sprint("m", i), `{"id":"`+id+`"}`)
			if i%100 == 7 {
				m.Body = `{"id":`
				want = append(want, m.MessageId)
			} else {
				distinct[id] = true
			}
			batch.Records = append(batch.Records, m)
		}
		r, err := h(t.Context(), batch)
		wantReturned(t, r, err, want...)
		slices.Sort(runs.began)
		if once := slices.Compact(slices.Clone(runs.began)); len(once) != len(runs.began) || len(once) != len(distinct) || f.count(lock.OutcomeHeld) != 0 {
			t.Errorf("%d ran, of %d distinct orders; %d times held", len(runs.began), len(distinct), f.count(lock.OutcomeHeld))
		}
		if runs.mostAtOne != middleware.DefaultConcurrency || surrounded.Load() != 10_000 {
			t.Errorf("%d at the same time, %d surrounded", runs.mostAtOne, surrounded.Load())
		}
	})
}

// TestRecordFromContext shows that the record is in the context of key
// function, handler and observer, and no other.
func TestRecordFromContext(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var seen []string
		see := func(ctx context.Context, what string) {
			m, ok := middleware.RecordFromContext[events.SQSMessage](ctx)
			seen = append(seen, fmt.Sprint(what, " ", m.MessageId, " ", ok))
		}
		key := func(ctx context.Context, o order) (lock.Key, error) {
			see(ctx, "key")
			return lock.Key{Name: o.ID}, nil
		}
		h := middleware.EachSQSBody(key, func(ctx context.Context, o order) error {
			see(ctx, "handler")
			if r, ok := middleware.RecordFromContext[events.SNSEventRecord](ctx); ok || r.EventSource != "" {
				t.Errorf("the message is also the record %v", r)
			}
			inner := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(ctx context.Context, r events.SNSEventRecord) error {
				see(ctx, "nested")
				if mine, ok := middleware.RecordFromContext[events.SNSEventRecord](ctx); !ok || mine.SNS.MessageID != r.SNS.MessageID {
					t.Errorf("the record of %s is %v, %v", r.SNS.MessageID, mine, ok)
				}
				return nil
			}, newFixture().options()...)
			return inner(ctx, snsBatch("a"))
		}, newFixture().options(middleware.Observe(func(ctx context.Context, o lock.Observation) { see(ctx, string(o.Outcome)) }))...)
		r, err := h(ctx, queueBatch(`{"id":"a"}`))
		wantReturned(t, r, err)
		see(ctx, "outside")
		want := []string{"key m0 true", "acquired m0 true", "handler m0 true", "nested m0 true", "released m0 true", "outside  false"}
		if !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
	})
}

// TestEventBridgeDetail shows that an event is handled once, with its detail
// and itself at hand, and that a malformed detail is an error.
func TestEventBridgeDetail(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		var handled []string
		fails := true
		h := middleware.WithEventBridgeDetail(lockPerOrder, func(ctx context.Context, o order) error {
			e, ok := middleware.RecordFromContext[events.EventBridgeEvent](ctx)
			_, leased := lock.FromContext(ctx)
			handled = append(handled, fmt.Sprint(o.ID, " ", e.DetailType, " ", ok, leased))
			if fails {
				return errRecord
			}
			return nil
		}, f.options()...)
		event := events.EventBridgeEvent{ID: "e1", DetailType: "Order Placed", Detail: []byte(`{"id":"17"}`)}
		if err := h(ctx, event); err != errRecord {
			t.Errorf("%v, want the handler's own error", err)
		}
		fails = false
		for range 2 {
			expect.OK(t, h(ctx, event))
		}
		if want := []string{"17 Order Placed true true", "17 Order Placed true true"}; !slices.Equal(handled, want) || f.count(lock.OutcomeAlreadyCompleted) != 1 {
			t.Errorf("handled %q, want %q; observed %q", handled, want, f.outcomes())
		}
		for _, detail := range []string{"", "null", "[]", `{"id":17}`, "{"} {
			var refused *lock.NoKeyError
			if err := h(ctx, events.EventBridgeEvent{ID: "e2", DetailType: "Order Placed", Detail: []byte(detail)}); !errors.As(err, &refused) || refused.Field != "detail" {
				t.Errorf("detail %q: %v", detail, err)
			}
		}
		s3 := middleware.WithEventBridgeDetail(keyfuncs.S3Object, func(context.Context, events.S3Event) error { return nil }, f.options()...)
		if err := s3(ctx, events.EventBridgeEvent{ID: "e3", Detail: []byte(`{"bucket":{"name":"b"}}`)}); err == nil || !strings.Contains(err.Error(), "EventBridgeS3Object") {
			t.Errorf("%v, want the name of the right key function", err)
		}
		if len(handled) != 2 {
			t.Errorf("handled %q", handled)
		}
	})
}

// TestWrongBody shows that a type that no body can have, and an option that
// does not fit, panic when the handler is wrapped.
func TestWrongBody(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, order) error { return nil }
	opts := newFixture().options
	around := middleware.Around(func(ctx context.Context, _ events.EventBridgeEvent, next next) error { return next(ctx) })
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"pointer": {func() {
			middleware.EachSQSBody(keyfuncs.ByField(func(o *order) string { return o.ID }), func(context.Context, *order) error { return nil }, opts()...)
		}, "take middleware_test.order"},
		"interface": {func() {
			middleware.EachSNSBody(keyfuncs.ByField(func(s fmt.Stringer) string { return s.String() }), func(context.Context, fmt.Stringer) error { return nil }, opts()...)
		}, "fmt.Stringer"},
		"the record": {func() {
			middleware.EachKinesisBody(keyfuncs.KinesisRecord, func(context.Context, events.KinesisEventRecord) error { return nil }, opts()...)
		}, "the record itself"},
		"the event": {func() {
			middleware.WithEventBridgeDetail(keyfuncs.EventBridgeEvent, func(context.Context, events.EventBridgeEvent) error { return nil }, opts()...)
		}, "WithLock for an EventBridge event"},
		"nil key":            {func() { middleware.EachSQSBody(keyfuncs.Func[order](nil), handle, opts()...) }, "key function is nil"},
		"nil handler":        {func() { middleware.EachSQSBody[order](lockPerOrder, nil, opts()...) }, "handler is nil"},
		"nil key of records": {func() { middleware.RecordKey[order, events.SQSMessage](nil) }, "key function is nil"},
		"Respond": {func() {
			middleware.EachSQSBody(lockPerOrder, handle, opts(middleware.OnHeld(middleware.Respond(1)))...)
		}, "needs a handler with a result"},
		"Replay": {func() {
			middleware.WithEventBridgeDetail(lockPerOrder, handle, opts(middleware.OnCompleted(middleware.Replay))...)
		}, "needs a handler with a result"},
		"Concurrency, detail": {func() { middleware.WithEventBridgeDetail(lockPerOrder, handle, opts(middleware.Concurrency(2))...) }, "handlers of single records"},
		"Around, detail":      {func() { middleware.WithEventBridgeDetail(lockPerOrder, handle, opts(around)...) }, "handlers of single records"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
}

// TestBodyIsRememberedBySource shows that a handler of bodies remembers
// messages of a queue for as long as one of messages does.
func TestBodyIsRememberedBySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := middleware.EachSQSBody(lockPerOrder, func(context.Context, order) error { ran++; return nil }, newFixture().options()...)
		for _, want := range []int{1, 1, 2} {
			r, err := h(t.Context(), queueBatch(`{"id":"a"}`))
			if wantReturned(t, r, err); ran != want {
				t.Errorf("ran %d times, want %d", ran, want)
			}
			time.Sleep(4*24*time.Hour - time.Minute)
		}
	})
}

// TestBodyWithHalfOfAPair shows that the handler gets the body that was sent,
// although the key was compared with that of another one.
func TestBodyWithHalfOfAPair(t *testing.T) { // F28
	t.Parallel()
	type noted struct{ ID, Note string }
	var got noted
	key := keyfuncs.ByField(func(n noted) string { return n.ID })
	h := middleware.EachSQSBody(key, func(_ context.Context, n noted) error { got = n; return nil }, newFixture().options()...)
	r, err := h(t.Context(), queueBatch(`{"id":"1","note":"\ud800"}`))
	wantReturned(t, r, err)
	if want := (noted{"1", "\ufffd"}); got != want {
		t.Errorf("%+q, want %+q", got, want)
	}
}

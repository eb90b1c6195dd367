package redelivery_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestPermanent shows that a message which failed for good is in the
// dead-letter queue immediately, with its body, and was received once.
func TestPermanent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		began := time.Now()
		q.send(message("ok", "a", "1ms"))
		q.send(message("bad", "b", "permanent"))
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters}))
		if took := time.Since(began); len(q.dead) != 1 || *q.dead[0].MessageBody != "permanent b" || *q.dead[0].QueueUrl != letters || len(q.received["bad"]) != 1 || took > time.Second {
			t.Errorf("%d copies after %v and %d receives", len(q.dead), took, len(q.received["bad"]))
		}
		if got := *q.dead[0].MessageAttributes["ErrorMessage"].StringValue; got != "no article 7" || q.requests != 1 || len(q.warnings()) > 0 || !strings.Contains(q.log.String(), "[bad]") {
			t.Errorf("the reason is %q, after %d requests; logged %s", got, q.requests, &q.log)
		}
	})
}

// TestInterruptedMessage shows that a message whose run was interrupted is in
// the dead-letter queue immediately, with what there is to decide, and does not
// run again.
func TestInterruptedMessage(t *testing.T) { // F19
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		dead := expect.Value(lock.New(q.store, &lock.Options{
			Namespace: namespace, Lease: lock.FixedLease(timeout), Logger: discard, OnInterrupted: lock.FailInterrupted, Holder: func(context.Context) string { return "f request 1" },
		}))(t)
		expect.Value(dead.Acquire(t.Context(), lock.Key{Name: "b", Event: "m"}))(t)
		time.Sleep(timeout + time.Second)
		q.send(message("m", "b", "1ms"))
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters}, middleware.OnInterrupted(middleware.Fail)))
		if len(q.dead) != 1 || len(q.received["m"]) != 1 || q.runs != 0 || len(q.warnings()) > 0 {
			t.Fatalf("%d copies after %d receives and %d runs; logged %s", len(q.dead), len(q.received["m"]), q.runs, &q.log)
		}
		if got := *q.dead[0].MessageAttributes["ErrorMessage"].StringValue; !strings.Contains(got, `in "f request 1"`) || !strings.Contains(got, "complete the event or forget it") {
			t.Errorf("the reason is %q", got)
		}
	})
}

// TestNothingIsLost shows what becomes of messages if a request to SQS fails in
// any way: every message is handled or in the dead-letter queue, in the worst
// case twice, and one warning says what failed.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request, fault string
		copies         int           // of the message that failed for good
		late           time.Duration // until the held message is handled, at most
	}{
		"change denied":     {"change", "denied", 1, 6*timeout + time.Second},
		"change lost":       {"change", "lost", 1, 22 * time.Second},
		"change hangs":      {"change", "hangs", 1, 6*timeout + time.Second},
		"client panics":     {"change", "panics", 1, 6*timeout + time.Second},
		"client exits":      {"change", "exits", 1, 6*timeout + time.Second},
		"send denied":       {"send", "denied", 1, 22 * time.Second},
		"send lost":         {"send", "lost", 2, 22 * time.Second},
		"send hangs":        {"send", "hangs", 1, 22 * time.Second},
		"sending panics":    {"send", "panics", 1, 22 * time.Second},
		"sender exits":      {"send", "exits", 1, 22 * time.Second},
		"everything denied": {"", "denied", 1, 6*timeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				met := map[string]bool{} // the first request of each kind has a fault
				q.fault = func(request string) string {
					if met[request] || c.request != "" && request != c.request {
						return ""
					}
					met[request] = true
					return c.fault
				}
				p := q.process(&redelivery.Options{DeadLetterQueue: letters, HoldTime: 20 * time.Second})
				free := q.hold("customer", 20*time.Second)
				began := free.Add(-20 * time.Second)
				q.send(message("held", "customer", "1ms"))
				q.send(message("bad", "b", "permanent"))
				q.send(message("ok", "c", "1ms"))
				q.poll(10, p)
				if late := q.handled["held"].Sub(began); late < 20*time.Second || late > c.late || q.handled["ok"].IsZero() {
					t.Errorf("handled after %v, want at most %v", late, c.late)
				}
				if len(q.dead) != c.copies {
					t.Errorf("%d copies in the dead-letter queue, want %d", len(q.dead), c.copies)
				}
				if w := q.warnings(); len(w) == 0 || len(w) > 2 || !strings.Contains(w[0], "sqs:") {
					t.Errorf("logged %q", w)
				}
			})
		})
	}
}

// TestAnswerIsLost shows that a message of which the function's answer was lost
// is moved again, and not lost.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := q.process(&redelivery.Options{DeadLetterQueue: letters})
		m := message("bad", "b", "permanent")
		q.send(m)
		if r, err := p.handler(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil || len(r.BatchItemFailures) != 0 {
			t.Errorf("%v, %v", r, err)
		}
		q.poll(10, p)
		if len(q.dead) != 2 {
			t.Errorf("%d copies", len(q.dead))
		}
	})
}

// TestNoDeadLetterQueue shows that a permanent failure without a destination is
// one like any other, and that one warning says what is missing.
func TestNoDeadLetterQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.send(message("bad", "b", "permanent"))
		q.poll(10, q.process(nil))
		if w := q.warnings(); len(q.received["bad"]) != 5 || q.requests != 0 || len(w) != 1 || !strings.Contains(w[0], "DeadLetterQueue") {
			t.Errorf("received %d times, %d requests, logged %q", len(q.received["bad"]), q.requests, w)
		}
	})
}

// TestDeadLetterQueueIsTheQueueItself shows that a message is not sent to where
// it came from, again and again.
func TestDeadLetterQueueIsTheQueueItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.send(message("bad", "b", "permanent"))
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: "https://eu-central-1.queue.amazonaws.com/123456789012/orders"}))
		if w := q.warnings(); len(q.received["bad"]) != 5 || q.requests != 0 || len(w) != 5 || !strings.Contains(w[0], "came from") {
			t.Errorf("received %d times, %d requests, logged %q", len(q.received["bad"]), q.requests, w)
		}
	})
}

// hanging is a dead-letter queue that does not answer.
type hanging struct{ changer }

func (h *hanging) SendMessage(ctx context.Context, _ *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (h *hanging) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.changer.ChangeMessageVisibilityBatch(ctx, in, o...)
}

// TestDeadLetterQueueThatHangs shows that held messages come back soon although
// no other message of their batch could be moved.
func TestDeadLetterQueueThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &hanging{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
			if m.MessageId == "bad" {
				return middleware.Permanent(errors.New("no such customer"))
			}
			return &lock.HeldError{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Minute)}
		}, middleware.Store(memstore.New()), middleware.Logger(discard), redelivery.SQS(client, &redelivery.Options{DeadLetterQueue: url + "-dead", Logger: discard}))
		bad, held := message("bad", "b", ""), message("held", "c", "")
		bad.ReceiptHandle, held.ReceiptHandle = "bad", "held"
		_, _ = h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{bad, held}})
		if len(client.timeouts) != 1 || !strings.Contains(client.timeouts[0], " held ") {
			t.Errorf("asked for %q", client.timeouts)
		}
	})
}

// sender keeps what is sent to a dead-letter queue.
type sender struct {
	most     int   // bytes that the queue takes; zero: as SQS
	answer   error // to what it takes
	sent     []*sqs.SendMessageInput
	requests int
}

func (s *sender) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	s.requests++
	if err := cmp.Or(refusesSend(in, cmp.Or(s.most, sqslimits.Largest)), s.answer); err != nil {
		return nil, err
	}
	copied := *in // the caller may go on with it
	s.sent = append(s.sent, &copied)
	return &sqs.SendMessageOutput{}, nil
}

func (s *sender) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return nil, errors.New("not expected")
}

// TestCopy shows what the copy in the dead-letter queue keeps of a message, and
// that its reason is one that SQS accepts.
func TestCopy(t *testing.T) {
	t.Parallel()
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{DataType: "String", StringValue: &s}
	}
	ten := map[string]events.SQSMessageAttribute{}
	for i := range 10 {
		ten[fmt.Sprint("n", i)] = text("v")
	}
	again := maps.Clone(ten)
	delete(again, "n0")
	again["ErrorMessage"] = text("earlier")
	for name, c := range map[string]struct {
		says       string
		attributes map[string]events.SQSMessageAttribute
		system     map[string]string
		queue      string
		reason     string // "": none
		group      string
		dedup      string
	}{
		"plain":            {says: "no article", reason: "no article"},
		"attributes":       {says: "x", attributes: map[string]events.SQSMessageAttribute{"a": text("1"), "b": {DataType: "Binary.gif", BinaryValue: []byte{0, 1}}}, reason: "x"},
		"too many":         {says: "x", attributes: ten},
		"moved before":     {says: "x", attributes: again, reason: "x"},
		"long":             {says: strings.Repeat("é", 600), reason: strings.Repeat("é", 512)},
		"cut in a rune":    {says: "x" + strings.Repeat("é", 600), reason: "x" + strings.Repeat("é", 511)},
		"no text":          {reason: "permanent"},
		"control":          {says: "a\x00b\x1bc\td\xff\ufffe", reason: "a\ufffdb\ufffdc\td\ufffd\ufffd"},
		"fair queue":       {says: "x", system: map[string]string{"MessageGroupId": "g"}, reason: "x", group: "g"},
		"FIFO":             {says: "x", system: map[string]string{"MessageGroupId": "g", "SequenceNumber": "1"}, queue: letters + ".fifo", reason: "x", group: "g", dedup: "m"},
		"standard to FIFO": {says: "x", queue: letters + ".fifo", reason: "x", group: "m", dedup: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sender{}
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
				return fmt.Errorf("outside: %w", middleware.Permanent(errors.New(c.says)))
			}, middleware.Store(memstore.New()), middleware.Logger(discard), redelivery.SQS(s, &redelivery.Options{DeadLetterQueue: cmp.Or(c.queue, letters), Logger: discard}))
			m := message("m", "name", "")
			m.MessageAttributes, m.Attributes = c.attributes, c.system
			if r, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil || len(r.BatchItemFailures) != 0 || len(s.sent) != 1 {
				t.Fatalf("%v, %v, %d sent", r, err, len(s.sent))
			}
			in := s.sent[0]
			got := aws.ToString(in.MessageAttributes["ErrorMessage"].StringValue)
			if got != c.reason || aws.ToString(in.MessageGroupId) != c.group || aws.ToString(in.MessageDeduplicationId) != c.dedup || *in.MessageBody != m.Body {
				t.Errorf("the reason is %q, group %q, deduplication id %q", got, aws.ToString(in.MessageGroupId), aws.ToString(in.MessageDeduplicationId))
			}
			for name, a := range c.attributes {
				if got := in.MessageAttributes[name]; name != "ErrorMessage" && (*got.DataType != a.DataType || got.StringValue != a.StringValue || !slices.Equal(got.BinaryValue, a.BinaryValue)) {
					t.Errorf("attribute %s is %+v", name, got)
				}
			}
		})
	}
}

// TestLargeMessage shows what becomes of a message that is near the largest
// size, so that its copy has no room for the reason.
func TestLargeMessage(t *testing.T) {
	t.Parallel()
	const said = "no article 7"
	const reason = len("ErrorMessage") + len("String") + len(said)
	own := map[string]events.SQSMessageAttribute{"ErrorMessage": {DataType: "String", StringValue: aws.String("earlier")}}
	ten := map[string]events.SQSMessageAttribute{}
	for i := range 10 {
		ten[fmt.Sprint("attribute", i)] = events.SQSMessageAttribute{DataType: "String", StringValue: aws.String("own")}
	}
	for name, c := range map[string]struct {
		bytes      int // of the body
		attributes map[string]events.SQSMessageAttribute
		client     sender
		reason     string // of the copy
		requests   int
		stays      string // what the warning says; "": it is moved
	}{
		"just fits":                {bytes: sqslimits.Largest - reason, reason: said, requests: 1},
		"one byte more":            {bytes: sqslimits.Largest - reason + 1, requests: 2},
		"largest":                  {bytes: sqslimits.Largest, requests: 2},
		"keeps its own attribute":  {bytes: sqslimits.Largest - 25, attributes: own, reason: "earlier", requests: 2},
		"ten of its own":           {bytes: 7, attributes: ten, requests: 1},
		"larger than the queue's":  {bytes: 300_000, client: sender{most: 262_144}, requests: 2, stays: "a message of 300000 bytes: "},
		"denied":                   {bytes: 7, client: sender{answer: errDenied}, requests: 1, stays: "a message of 37 bytes: "},
		"no answer":                {bytes: 7, client: sender{answer: errors.New("connection reset")}, requests: 1, stays: "connection reset"},
		"the server's own mistake": {bytes: 7, client: sender{answer: answered(503, errors.New("unavailable"))}, requests: 1, stays: "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
				return middleware.Permanent(errors.New(said))
			}, middleware.Store(memstore.New()), middleware.Logger(discard), redelivery.SQS(&c.client, &redelivery.Options{DeadLetterQueue: letters, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			m := message("m", "name", "")
			m.Body, m.MessageAttributes = strings.Repeat("x", c.bytes), c.attributes
			r, _ := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
			if stays := len(r.BatchItemFailures) == 1; stays != (c.stays != "") || len(c.client.sent) == 1 == stays || c.client.requests != c.requests {
				t.Fatalf("%v, after %d requests %d are sent", r, c.client.requests, len(c.client.sent))
			}
			if !strings.Contains(log.String(), c.stays) {
				t.Errorf("logged %s, want %s", &log, c.stays)
			}
			if c.stays == "" {
				if got := aws.ToString(c.client.sent[0].MessageAttributes["ErrorMessage"].StringValue); got != c.reason {
					t.Errorf("the reason is %q, want %q", got, c.reason)
				}
			}
		})
	}
}

// TestWrongOptions shows that options that make no sense panic at once.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	redelivery.SQS(&sender{}, &redelivery.Options{HoldTime: time.Millisecond}) // the least that makes sense
	var none *sqs.Client
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"no client":      {func() { redelivery.SQS(nil, nil) }, "*sqs.Client"},
		"nil client":     {func() { redelivery.SQS(none, nil) }, "*sqs.Client"},
		"HoldTime of 20": {func() { redelivery.SQS(&sender{}, &redelivery.Options{HoldTime: 20}) }, "write 20*time.Second"},
		"an ARN": {func() {
			redelivery.SQS(&sender{}, &redelivery.Options{DeadLetterQueue: "arn:aws:sqs:eu-central-1:123456789012:letters"})
		}, "URL"},
		"negative": {func() { redelivery.SQS(&sender{}, &redelivery.Options{HoldTime: -1}) }, "negative"},
		"whole events": {func() {
			middleware.WithLock(keyfuncs.Static("x"), func(context.Context) error { return nil }, redelivery.SQS(&sender{}, nil))
		}, "single records"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "lambdalock: ") || !strings.Contains(p, c.within) {
					t.Errorf("panicked with %v", p)
				}
			}()
			c.use()
		})
	}
}

package redelivery_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/keyfuncs"
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

// sendGroup sends messages to a FIFO queue, each of the group that its id
// begins with. Its handler does what the id ends with: P fails for good.
func (q *queue) sendGroup(ids ...string) {
	q.messages.FIFO = true
	for _, id := range ids {
		does := "1ms"
		if strings.HasSuffix(id, "P") {
			does = "permanent"
		}
		m := message(id, id, does)
		m.EventSourceARN += ".fifo"
		m.Attributes["MessageGroupId"] = id[:1]
		q.send(m)
	}
}

// TestPermanentOfAGroup shows that a FIFO group goes on in the same batch after
// messages that failed for good, each of which is in the dead-letter queue
// before the next of its group begins: otherwise each would cost those behind
// it a receive, and the fifth would take them all with it.
func TestPermanentOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.sendGroup("a1P", "a2P", "b1", "a3P", "a4P", "a5P", "a6", "b2P", "b3", "a7")
		copies := map[string]int{} // when a message begins
		q.begins = func(id string) { copies[id] = len(q.copiesOf(id[:1])) }
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters + ".fifo"}))
		for id, times := range q.received {
			if len(times) != 1 {
				t.Errorf("%s was received %d times", id, len(times))
			}
		}
		for id, want := range map[string]int{"a1P": 0, "a2P": 1, "a5P": 4, "a6": 5, "a7": 5, "b1": 0, "b2P": 0, "b3": 1} {
			if copies[id] != want {
				t.Errorf("when %s began, %d of its group were in the dead-letter queue, want %d", id, copies[id], want)
			}
		}
		if got := strings.Join(q.copiesOf("a"), " "); got != "a1P a2P a3P a4P a5P" || len(q.dead) != 6 || len(q.warnings()) > 0 {
			t.Errorf("%d copies, of a %s; logged %q", len(q.dead), got, q.warnings())
		}
	})
}

// copiesOf returns which messages of a group were moved, in this order.
func (q *queue) copiesOf(group string) []string {
	var ids []string
	for _, in := range q.dead {
		if aws.ToString(in.MessageGroupId) == group {
			ids = append(ids, aws.ToString(in.MessageDeduplicationId))
		}
	}
	return ids
}

// TestPermanentOfAGroupStays shows that a group waits behind a message that
// could not be moved, and goes on as soon as it is.
func TestPermanentOfAGroupStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int // of requests that send
		late     time.Duration
		received int // the last message of the group
	}{
		"moved with the batch":  {1, 2 * time.Second, 2},
		"moved the next time":   {2, 6*timeout + 2*time.Second, 2},
		"moved the second time": {3, 6*timeout + 3*time.Second, 3},
		"moved the third time":  {4, 2*6*timeout + 3*time.Second, 3},
		"never moved":           {100, 5*6*timeout + time.Second, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				sent := 0
				q.fault = func(request string) string {
					if request == "send" {
						if sent++; sent <= c.failures {
							return "denied"
						}
					}
					return ""
				}
				began := time.Now()
				q.sendGroup("a1P", "a2", "a3")
				q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters + ".fifo"}))
				if c.failures < 100 && (!slices.Equal(q.order, []string{"a1P", "a2", "a3"}) || q.handled["a3"].Sub(began) > c.late) || len(q.received["a3"]) != c.received {
					t.Errorf("handled %q after %v, received a3 %d times", q.order, q.handled["a3"].Sub(began), len(q.received["a3"]))
				}
				if w := q.warnings(); len(w) == 0 {
					t.Error("nothing is logged")
				}
			})
		})
	}
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

// sender keeps what is sent to a dead-letter queue.
type sender struct{ sent []*sqs.SendMessageInput }

func (s *sender) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	s.sent = append(s.sent, in)
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

// TestWrongOptions shows that options that make no sense panic at once.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
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

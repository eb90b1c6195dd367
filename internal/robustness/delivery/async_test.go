package delivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// bucket sends notifications to a function, which takes them as JSON text.
type bucket struct {
	*function[[]byte, struct{}]
	notifications []notification
}

type notification struct {
	who   string // whose turn it is
	event *event
	text  []byte
	at    time.Time
}

// The ways to wrap the handler.
const (
	eachRecord   = iota // EachS3Record
	wholeEvent          // WithLock
	latestOnly          // WithLock, stale events are skipped
	severalLocks        // WithLocks, on the object and on what it belongs to
	nestedLocks         // WithLock, and in the handler another lock without an event
)

// newBucket returns notifications of n uploads of n/8 objects, one per second.
// Notifications come up to three minutes late, and so out of order.
func newBucket(w *world, n, way int, with ...middleware.Option) *bucket {
	b := &bucket{function: s3Function(w, way, with)}
	w.orders, w.single, w.batches = way == latestOnly, way != severalLocks, way == eachRecord
	sequencers := map[string]int{}
	for i := range n {
		object := fmt.Sprint("photo+", w.random.IntN(n/8), "%2B.jpg")
		at := 1000*i + w.random.IntN(180_000)
		sequencers[object]++
		sequencer := fmt.Sprintf("0055AED6DCD9%06X", 256*i+sequencers[object])
		e := w.event(fmt.Sprint(object, " ", sequencer), object, "")
		e.place = i // uploads of one object in the order of their sequencers
		text := fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put",
			"responseElements":{"x-amz-request-id":"C3D%d"},
			"s3":{"s3SchemaVersion":"1.0","bucket":{"name":"pictures-example"},"object":{"key":%q,"size":1024,"sequencer":%q}}}]}`,
			i, object+badEscape(e), sequencer)
		b.notifications = append(b.notifications, notification{fmt.Sprint("notification ", i), e, []byte(text), w.began.Add(time.Duration(at) * time.Millisecond)})
	}
	return b
}

// badEscape returns what makes the object key of a poison event undecodable.
func badEscape(e *event) string {
	if e.undecodable() {
		return "%zz"
	}
	return ""
}

func s3Function(w *world, way int, with []middleware.Option) *function[[]byte, struct{}] {
	id := func(r events.S3EventRecord) string { return r.S3.Object.Key + " " + r.S3.Object.Sequencer }
	handle := func(ctx context.Context, r events.S3EventRecord) error { return w.work(ctx, id(r), "{}") }
	whole := func(ctx context.Context, e events.S3Event) error { return handle(ctx, e.Records[0]) }
	first := func(e events.S3Event) string { return id(e.Records[0]) }
	owner := func(e events.S3Event) string { return "owner " + ownerOf(e.Records[0].S3.Object.Key) }
	f := &function[[]byte, struct{}]{w: w, with: with}
	f.wrap = func(o ...middleware.Option) func(context.Context, []byte) (struct{}, error) {
		switch way {
		case eachRecord:
			return decoding(middleware.EachS3Record(keyed(w, keyfuncs.S3Record, id), handle, append(o, inTurn(id))...))
		case wholeEvent:
			return decoding(middleware.WithLock(keyed(w, keyfuncs.S3Object, first), whole, o...))
		case severalLocks:
			object := keyed(w, keyfuncs.S3Object, first)
			both := keyfuncs.All(object, keyed(w, keyfuncs.EventFrom(keyfuncs.ByField(owner), keyfuncs.S3Object), first))
			// If one row is not completed, the other must not have forgotten the event.
			return decoding(middleware.WithLocks(both, whole, append(o, rememberEvents(100))...))
		case nestedLocks:
			inner := middleware.WithLock(keyfuncs.ByField(owner), whole, o...)
			return decoding(middleware.WithLock(keyed(w, keyfuncs.S3Object, first), inner, o...))
		}
		return decoding(middleware.WithLock(keyed(w, keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord), first), whole, o...))
	}
	return f
}

// ownerOf returns to whom an object belongs, which is also the owner of up to
// nine others: all but the last digit of its number.
func ownerOf(object string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(object, "photo+"), "%")
	return number[:len(number)-1]
}

// decoding decodes the text of an event, as the runtime does.
func decoding[E any](handler func(context.Context, E) error) func(context.Context, []byte) (struct{}, error) {
	return func(ctx context.Context, text []byte) (struct{}, error) {
		var e E
		if err := json.Unmarshal(text, &e); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, handler(ctx, e)
	}
}

// drain delivers every notification, and 5 % of them twice, at about the same
// time or later. Each delivery has its own retries.
func (b *bucket) drain() {
	var wg sync.WaitGroup
	copies := 0
	for _, n := range b.notifications {
		wg.Go(func() { b.deliver(n) })
		if b.w.roll(20) > 0 {
			continue
		}
		copies++
		late := 2000
		if b.w.roll(2) == 0 {
			late = 600_000
		}
		again := n
		again.who += " again"
		again.at = n.at.Add(time.Duration(b.w.roll(late)) * time.Millisecond)
		wg.Go(func() { b.deliver(again) })
	}
	wg.Wait()
	b.w.copies = copies
}

func (b *bucket) deliver(n notification) {
	time.Sleep(time.Until(n.at))
	attempts := eventsource.NewAsync(n.event)
	attempts.GiveUp = b.w.giveUp
	_ = attempts.Run(context.Background(), func(events []*event, _ *eventsource.Wait) (int, bool, error) {
		b.w.turn(n.who)
		out := b.invoke(events, n.text, func(inv *invocation, _ struct{}, err error) {
			b.w.answered(inv, map[*event]bool{n.event: err != nil})
		})
		if out == answered {
			return 1, true, nil
		}
		return 0, true, nil
	})
}

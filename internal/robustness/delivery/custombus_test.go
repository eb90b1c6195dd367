package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	busArray = 8 // MaxBatchSize
	busLanes = 4 // arrays at the same time
)

// bus is a Custom Event Bus with a subscriber, whose transformer is
// WITH_METADATA. The array of a failed call is sent again as a whole, and given
// up as a whole.
//
// FIFO, with REQUEST_RESPONSE: each lane has groups of its own, of which no
// event is sent before the array of an earlier one succeeded or is given up.
// Unordered, with EVENT: Lambda's queue repeats an array, and 5 % come twice.
//
// In the end a subscriber with a MaxBatchSize of 1 replays, once, what was
// given up, after later events of its group. Among that are completed events,
// which shared an array with others.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html
type bus struct {
	*function[[]byte, struct{}]
	fifo    bool
	bodies  map[*event]string
	numbers map[*event]int
	lanes   [busLanes][]*event

	mu      sync.Mutex
	letters []*event
}

// newBus returns a bus with n events, for a FIFO subscriber in n/40 groups.
func newBus(w *world, n int, fifo bool, with ...middleware.Option) *bus {
	id := func(e awsevents.CustomBusEvent) string { return e.SystemMetadata.EventID }
	key := keyfuncs.Func[awsevents.CustomBusEvent](keyfuncs.CustomBusEvent)
	if fifo {
		key = keyfuncs.CustomBusGroup
	}
	key = keyed(w, key, id)
	handler := func(ctx context.Context, e awsevents.CustomBusEvent) error {
		var body string
		if err := json.Unmarshal(e.Data, &body); err != nil {
			return err
		}
		return w.work(ctx, id(e), body)
	}
	b := &bus{function: &function[[]byte, struct{}]{w: w, with: with}, fifo: fifo, bodies: map[*event]string{}, numbers: map[*event]int{}}
	w.batches = true
	b.wrap = func(o ...middleware.Option) func(context.Context, []byte) (struct{}, error) {
		return decoding(middleware.EachEventBridgeEvent(key, handler, append(o, inTurn(id))...))
	}
	for i := range n {
		lane := w.random.IntN(busLanes)
		id, group, resource := fmt.Sprintf("7d5a3c7e-8f3d-4d0a-b1c1-%012d", i), "", ""
		if resource = id; fifo {
			group = fmt.Sprint("group ", busLanes*w.random.IntN(max(1, n/40/busLanes))+lane)
			resource = group
		}
		e := w.event(id, resource, group)
		if !fifo {
			e.place = i
		}
		b.bodies[e], b.numbers[e] = w.body(e, group), i
		b.lanes[lane] = append(b.lanes[lane], e)
	}
	return b
}

func (b *bus) drain() {
	var wg sync.WaitGroup
	for i, lane := range b.lanes {
		wg.Go(func() {
			var sent sync.WaitGroup
			for len(lane) > 0 {
				b.w.turn(fmt.Sprint("publisher ", i)) // before chance is asked, for it is one for all
				array := lane[:min(len(lane), 1+b.w.roll(busArray))]
				lane = lane[len(array):]
				if b.fifo {
					b.send(fmt.Sprint("lane ", i), array, "LIVE")
					continue
				}
				for copy := range b.copies() {
					sent.Go(func() { b.send(fmt.Sprint("lane ", i, " ", array[0].id, " ", copy), array, "LIVE") })
				}
				time.Sleep(time.Duration(b.w.roll(2000)) * time.Millisecond)
			}
			sent.Wait()
		})
	}
	wg.Wait()
	b.redrive()
}

// copies returns how often an array is delivered.
func (b *bus) copies() int {
	if b.w.roll(20) > 0 {
		return 1
	}
	return 2
}

// send sends an array until the call succeeds or it is given up.
func (b *bus) send(who string, array []*event, delivery string) {
	attempts := eventsource.NewAsync(array)
	if b.fifo {
		attempts = eventsource.NewBus(array)
	}
	attempts.GiveUp = func(arrays [][]*event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.w.giveUp(arrays[0])
		b.letters = append(b.letters, arrays[0]...)
	}
	_ = attempts.Run(context.Background(), func(arrays [][]*event, _ *eventsource.Wait) (int, bool, error) {
		b.w.turn(who)
		out := b.invoke(arrays[0], b.payload(arrays[0], delivery), func(inv *invocation, _ struct{}, err error) {
			b.w.answered(inv, b.failed(inv, err))
		})
		if out == answered {
			return 1, true, nil
		}
		return 0, true, nil
	})
}

func (b *bus) payload(array []*event, delivery string) []byte {
	var all awsevents.CustomBusEvents
	for _, e := range array {
		data, _ := json.Marshal(b.bodies[e]) // a string
		sent := awsevents.CustomBusEvent{Data: data}
		sent.SystemMetadata = awsevents.CustomBusSystemMetadata{
			EventID: e.id, EventGroupID: "only " + e.id, DeliveryType: delivery, SequenceNumber: fmt.Sprintf("1%015d000", b.numbers[e]),
		}
		if e.group != nil {
			sent.SystemMetadata.EventGroupID = e.group.name
		}
		all = append(all, sent)
	}
	if delivery == "REPLAY" { // with a MaxBatchSize of 1
		text, _ := json.Marshal(all[0])
		return text
	}
	text, _ := json.Marshal(all)
	return text
}

// failed returns the events that an error names.
func (b *bus) failed(inv *invocation, err error) map[*event]bool {
	var batch *middleware.BatchError
	failed := map[*event]bool{}
	switch {
	case err == nil:
	case errors.As(err, &batch):
		for _, f := range batch.Failed {
			i := -1
			_, _ = fmt.Sscanf(f.Record, "[%d]", &i)
			failed[inv.events[i]] = true
		}
	default:
		b.w.complain("an error that names no event: %v", err)
	}
	return failed
}

// redrive replays what was given up, each group in its order.
func (b *bus) redrive() {
	b.w.mu.Lock()
	letters := b.letters
	for _, e := range letters {
		e.dead = false
	}
	b.w.redriven += len(letters)
	b.w.mu.Unlock()
	b.letters = nil
	for _, e := range letters {
		b.send("replay", []*event{e}, "REPLAY")
	}
}

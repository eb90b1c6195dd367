package redelivery_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
)

// histories is how many TestRedeliveryHistories plays, unless LAMBDALOCK_SEEDS
// says otherwise.
const histories = 200

// history is a queue and its function, drawn by chance.
type history struct {
	*queue
	t         *testing.T
	fifo      bool
	faulty    bool // requests to SQS fail
	batch     int
	processes int
	least     time.Duration // HoldAtLeast
	names     int
	good      int
	permanent int

	last map[string]time.Time // by name: when its last run began
	next map[string]int       // by group: the number of the message to begin next
}

func (h *history) String() string {
	return fmt.Sprintf("FIFO %t, faults %t, batches of %d, %d processes, HoldAtLeast(%v), %d names, %d messages and %d that fail for good",
		h.fifo, h.faulty, h.batch, h.processes, h.least, h.names, h.good, h.permanent)
}

// TestRedeliveryHistories draws a queue, its messages and the options of its
// function, and checks that each message is handled or fails for good, that
// none that never failed is a dead letter within the capacity that the package
// states, that a FIFO group keeps its order and goes on, and that the runs of a
// name are as far apart as HoldAtLeast says.
func TestRedeliveryHistories(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	simulation.Play(t, simulation.Config{Histories: histories}, func(t *testing.T, seed uint64, note func(string)) {
		h := drawHistory(t, seed)
		if note != nil {
			note(h.String())
		}
		h.play()
		h.check()
		total["messages"] += h.good + h.permanent
		total["copies"] += len(h.dead)
		total["requests"] += h.requests
		if t.Failed() {
			t.Log(h)
		}
	})
	t.Log(total)
}

func drawHistory(t *testing.T, seed uint64) *history {
	random := rand.New(rand.NewPCG(seed, 1))
	h := &history{
		queue: newQueue(t), t: t,
		fifo: random.IntN(2) == 0, faulty: random.IntN(4) == 0,
		batch: []int{1, 2, 5, 10}[random.IntN(4)], processes: 1 + random.IntN(5),
		least: []time.Duration{0, 0, 10 * time.Second, time.Minute}[random.IntN(4)], names: 1 + random.IntN(4),
		last: map[string]time.Time{}, next: map[string]int{},
	}
	h.timeout, h.visibility = 30*time.Second, 180*time.Second
	h.chance.source = rand.NewPCG(seed, 2)
	h.messages.FIFO = h.fifo
	h.begins = h.begin
	if h.fifo && h.least > 0 { // each cooldown costs the whole batch a receive
		h.messages.MaxReceiveCount = max(eventsource.MaxReceiveCount, h.batch+2)
	}
	if h.faulty {
		faults := rand.New(rand.NewPCG(seed, 3))
		h.fault = func(string) string {
			h.mu.Lock()
			defer h.mu.Unlock()
			return append(make([]string, 16), "denied", "lost", "hangs", "panics")[faults.IntN(20)]
		}
	}
	perName := 6 // of a burst whose locks are held for a moment
	if h.least > 0 || h.fifo {
		perName = 20
	}
	sent := map[string]int{}
	for i := range h.names + random.IntN(h.names*perName) {
		name := fmt.Sprint("n", i%h.names)
		does := "100ms"
		if random.IntN(4) == 0 {
			does = "permanent"
		}
		h.sendOne(name, sent[name], does)
		sent[name]++
	}
	return h
}

// sendOne sends a message of a name, which is also its group. Its id tells its
// place in the group.
func (h *history) sendOne(name string, place int, does string) {
	m := message(fmt.Sprint(name, "-", place, "-", does), name, does)
	if h.fifo {
		m.EventSourceARN += ".fifo"
		m.Attributes["MessageGroupId"] = name
	}
	if does == "permanent" {
		h.permanent++
	} else {
		h.good++
	}
	h.send(m)
}

func (h *history) play() {
	o := &redelivery.Options{DeadLetterQueue: letters}
	if h.fifo {
		o.DeadLetterQueue += ".fifo"
	}
	var all []*process
	for range h.processes {
		all = append(all, h.process(o, middleware.HoldAtLeast(h.least)))
	}
	h.poll(h.batch, all...)
}

// begin is called when the handler of a message begins, under the mutex.
func (h *history) begin(id string) {
	name, rest, _ := strings.Cut(id, "-")
	var place int
	_, _ = fmt.Sscan(rest, &place)
	if last, ran := h.last[name]; ran && time.Since(last) < h.least {
		h.t.Errorf("%s began %v after another run of its name", id, time.Since(last))
	}
	h.last[name] = time.Now()
	if !h.fifo || h.faulty { // what has moved may come again, and one that could not may use up its receives
		return
	}
	if place != h.next[name] {
		h.t.Errorf("%s began, but message %d of its group is next", id, h.next[name])
	}
	h.next[name] = place + 1
	if moved := h.copies(name); moved != h.before(name, place) {
		h.t.Errorf("%s began when %d messages of its group had moved, but %d before it fail for good", id, moved, h.before(name, place))
	}
}

// before returns how many messages of a group fail for good before a place.
func (h *history) before(name string, place int) int {
	n := 0
	for i := range place {
		if _, ok := h.received[fmt.Sprint(name, "-", i, "-permanent")]; ok {
			n++
		}
	}
	return n
}

// copies returns how many messages of a name have moved.
func (h *history) copies(name string) int {
	n := 0
	for _, in := range h.dead {
		if *in.MessageBody == "permanent "+name {
			n++
		}
	}
	return n
}

// check checks a queue that is empty.
func (h *history) check() {
	moved, dead := 0, 0
	for _, in := range h.dead {
		if strings.HasPrefix(*in.MessageBody, "permanent ") {
			moved++
		} else {
			dead++
		}
	}
	handled := 0
	for id, times := range h.received {
		if !h.handled[id].IsZero() && !strings.HasSuffix(id, "permanent") {
			handled++
		}
		if h.fifo && h.least == 0 && !h.faulty && len(times) != 1 {
			h.t.Errorf("%s was received %d times, though nothing held its group", id, len(times))
		}
	}
	switch {
	case moved < h.permanent || handled+dead < h.good:
		h.t.Errorf("%d of %d messages that fail for good are dead letters, %d of %d others are handled and %d dead letters", moved, h.permanent, handled, h.good, dead)
	case !h.faulty && (dead > 0 || moved > h.permanent || len(h.warnings()) > 0):
		h.t.Errorf("%d messages that never failed are dead letters, %d of %d copies are too many; logged %q", dead, moved-h.permanent, moved, h.warnings())
	}
}

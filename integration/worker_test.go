package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// The leases of workers are short, so that many of them end in a test.
const (
	workerLease = 2 * time.Second
	workerGrace = time.Second
	workerSlots = 2 // deliveries that a worker handles at a time
	// rememberedEvents is more than may be completed while one of them is still
	// delivered again.
	rememberedEvents = 64
)

// delivery is an event that a worker shall handle.
type delivery struct {
	ID    int
	Name  string
	Event string
	Work  time.Duration
	// Heeds reports whether the handler stops when its context ends. One that does
	// not writes to the resource all the same.
	Heeds bool
}

// toWorker is a line of the parent: one of these.
type toWorker struct {
	Deliver *delivery `json:",omitempty"`
	Wrote   *wrote    `json:",omitempty"`
}

// wrote answers a write to the resource.
type wrote struct {
	Run      string
	Accepted bool
}

// fromWorker is a line of a worker: one of these. A run is named by the holder
// of its claim.
type fromWorker struct {
	Begin    *began    `json:",omitempty"` // the handler has the lock, and says so to the resource
	Renewed  *renewed  `json:",omitempty"`
	Write    string    `json:",omitempty"` // the run that writes to the resource
	Settling *settling `json:",omitempty"`
	Done     *done     `json:",omitempty"`
}

type began struct {
	Run, Name, Event string
	Fence            int64
	Until            time.Time
	Asked, At        time.Time   // when it asked for the name, and got it
	Unanswered       bool        // a claim had no answer, or was rejected
	Refused          []time.Time // the dates of the claims that were refused before
	RefusedBy        int64       // the fence of the row that refused the last of them
	Heeds            bool
}

type renewed struct {
	Name  string
	Fence int64
	Until time.Time
}

// settling says that the handler has returned.
type settling struct {
	Run       string
	At        time.Time
	Completes bool
}

// done says how a delivery ended. Only with one of the first two outcomes is it
// acknowledged.
type done struct {
	ID      int
	Outcome string
	End     turnEnd
}

const (
	outcomeCompleted = "completed"
	outcomeBefore    = "completed before"
	outcomeHeld      = "held"
	outcomeLost      = "lost"
	outcomeStale     = "refused by the resource"
	outcomeStopped   = "stopped by its context"
	outcomeStore     = "no answer from the store"
)

var errStale = errors.New("the resource has seen a higher fence")

// worker is a process that handles deliveries until its input ends.
type worker struct {
	who     string
	store   *witness
	locker  *lock.Locker
	turns   atomic.Int64
	mu      sync.Mutex
	out     *json.Encoder
	waiting map[string]chan bool // by run: for the answer of the resource
}

// work is the part of a child that handles deliveries.
func work(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	w := &worker{who: t.Who, out: json.NewEncoder(os.Stdout), waiting: map[string]chan bool{}}
	w.store = newWitness(store, func(line) {})
	w.store.proxied = true
	w.locker, err = lock.New(tokens{w.store}, &lock.Options{
		Lease: lock.Heartbeat(workerLease), Grace: workerGrace, MaxWait: 5 * time.Second, RememberEvents: rememberedEvents, Logger: discard,
		Holder: func(ctx context.Context) string { return ctx.Value(turnKey{}).(*turn).holder },
		Observe: func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				w.say(fromWorker{Renewed: &renewed{o.Key.Name, o.Fence, o.Until}})
			}
		},
	})
	if err != nil {
		return err
	}
	var under sync.WaitGroup
	defer under.Wait()
	for in := json.NewDecoder(os.Stdin); ; {
		var l toWorker
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if l.Wrote != nil {
			w.mu.Lock()
			w.waiting[l.Wrote.Run] <- l.Wrote.Accepted
			w.mu.Unlock()
			continue
		}
		under.Go(func() { w.handle(*l.Deliver) })
	}
}

func (w *worker) say(l fromWorker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(l) // the parent may have gone
}

func (w *worker) handle(d delivery) {
	tn := &turn{holder: fmt.Sprintf("%s/%d", w.who, w.turns.Add(1))}
	err := w.try(context.WithValue(context.Background(), turnKey{}, tn), tn.holder, d)
	outcome := outcomeStore
	switch {
	case err == nil:
		outcome = outcomeCompleted
	case errors.Is(err, lock.ErrCompleted):
		outcome = outcomeBefore
	case errors.Is(err, lock.ErrHeld):
		outcome = outcomeHeld
	case errors.Is(err, errStale):
		outcome = outcomeStale
	case errors.Is(err, context.Canceled):
		outcome = outcomeStopped
	case errors.Is(err, lock.ErrLost):
		outcome = outcomeLost
	}
	w.say(fromWorker{Done: &done{d.ID, outcome, turnEnd{Holder: tn.holder, At: time.Now(), Left: w.store.left(tn.token)}}})
}

func (w *worker) try(ctx context.Context, run string, d delivery) error {
	asked := time.Now()
	lk, err := w.locker.Acquire(ctx, lock.Key{Name: d.Name, Event: d.Event})
	if err != nil {
		return err
	}
	lease, tn := lk.Lease(), ctx.Value(turnKey{}).(*turn)
	w.say(fromWorker{Begin: &began{
		Run: run, Name: d.Name, Event: d.Event, Fence: lease.Fence, Until: lease.Until,
		Asked: asked, At: time.Now(), Unanswered: tn.unanswered, Refused: tn.refused, RefusedBy: tn.refusedBy, Heeds: d.Heeds,
	}})
	err = w.effect(lk.Context(), run, d)
	w.say(fromWorker{Settling: &settling{run, time.Now(), err == nil}})
	if err != nil {
		_ = lk.Release() // without an answer, the name is free when the lease has ended
		return err
	}
	return lk.Complete()
}

// effect is the handler: it works, and then writes to the resource.
func (w *worker) effect(ctx context.Context, run string, d delivery) error {
	if !d.Heeds {
		ctx = context.WithoutCancel(ctx)
	}
	if err := delayFor(ctx, d.Work); err != nil {
		return err
	}
	answer := make(chan bool, 1)
	w.mu.Lock()
	w.waiting[run] = answer
	w.mu.Unlock()
	w.say(fromWorker{Write: run})
	accepted := <-answer
	w.mu.Lock()
	delete(w.waiting, run)
	w.mu.Unlock()
	if !accepted {
		return errStale
	}
	return nil
}

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// heldLine is what a holder writes when it acquires its lock, and at each
// renewal.
type heldLine struct {
	Fence  int64
	Until  time.Time
	Holder string
}

// endLine is what a holder writes when its context has ended.
type endLine struct {
	Ended        bool
	CauseLost    bool // the context's cause is ErrLost
	CompleteLost bool // Complete returned ErrLost
	Cause        string
	Complete     string
}

// hold is the part of a child that works until its context ends, and then
// completes.
func hold(t task) error {
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(v) // the parent may have gone
	}
	const self = "the first holder"
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	locker, err := lock.New(store, &lock.Options{
		Lease: t.Options.lease(), Logger: discard,
		Holder: func(context.Context) string { return self },
		Observe: func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				say(heldLine{Fence: o.Fence, Until: o.Until, Holder: self})
			}
		},
	})
	if err != nil {
		return err
	}
	lk, err := locker.Acquire(context.Background(), t.Key)
	if err != nil {
		return err
	}
	say(heldLine{Fence: lk.Lease().Fence, Until: lk.Lease().Until, Holder: self})
	go func() {
		// The parent never writes: the end of the input is the parent's end.
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	<-lk.Context().Done()
	cause := context.Cause(lk.Context())
	err = lk.Complete()
	end := endLine{Ended: true, CauseLost: errors.Is(cause, lock.ErrLost), CompleteLost: errors.Is(err, lock.ErrLost), Cause: cause.Error()}
	if err != nil {
		end.Complete = err.Error()
	}
	say(end)
	return nil
}

// observed keeps what a locker reported.
type observed struct {
	mu  sync.Mutex
	all []lock.Observation
}

func (o *observed) add(_ context.Context, seen lock.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, seen)
}

// last returns the latest observation of an outcome, or the zero one.
func (o *observed) last(outcome lock.Outcome) lock.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.all) - 1; i >= 0; i-- {
		if o.all[i].Outcome == outcome {
			return o.all[i]
		}
	}
	return lock.Observation{}
}

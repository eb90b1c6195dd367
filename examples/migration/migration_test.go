package migration

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

type handler = func(context.Context, payment) error

// bank notes what the handlers of all versions do.
type bank struct {
	t        *testing.T
	mu       sync.Mutex
	busy     map[string]bool // payments at work
	overlaps int
	paid     map[string]int
	fences   []int64
	err      error // of each payment
}

func newBank(t *testing.T) *bank { return &bank{t: t, busy: map[string]bool{}, paid: map[string]int{}} }

func (b *bank) pay(ctx context.Context, p payment) error {
	b.mu.Lock()
	if lease, ok := lock.FromContext(ctx); ok {
		b.fences = append(b.fences, lease.Fence)
	}
	if b.busy[p.ID] {
		b.overlaps++
	}
	b.busy[p.ID] = true
	b.mu.Unlock()
	time.Sleep(3 * time.Second) // the work
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[p.ID] = false
	if b.err == nil {
		b.paid[p.ID]++
	}
	return b.err
}

func payments(from, to int) []payment {
	var all []payment
	for i := from; i < to; i++ {
		all = append(all, payment{fmt.Sprint(i)})
	}
	return all
}

// deliver delivers each payment until it is acknowledged.
func (b *bank) deliver(handle handler, all []payment) {
	for _, p := range all {
		for tries := 0; b.invoke(handle, p) != nil; tries++ {
			if tries == 100 {
				b.t.Errorf("payment %s is still refused", p.ID)
				return
			}
			time.Sleep(time.Second)
		}
	}
}

func (b *bank) invoke(handle handler, p payment) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	return handle(ctx, p)
}

// deliverToAll delivers the payments to two environments of each version at the
// same time.
func (b *bank) deliverToAll(all []payment, versions ...handler) {
	var source sync.WaitGroup
	for range 2 {
		for _, handle := range versions {
			source.Go(func() { b.deliver(handle, all) })
		}
	}
	source.Wait()
}

// check checks that each payment was made once, or that more than one was made
// twice, at the same time.
func (b *bank) check(all []payment, safe bool) {
	b.t.Helper()
	twice := 0
	for _, p := range all {
		if b.paid[p.ID] == 0 {
			b.t.Errorf("payment %s was lost", p.ID)
		} else if b.paid[p.ID] > 1 {
			twice++
		}
	}
	if safe && (b.overlaps > 0 || twice > 0) || !safe && (b.overlaps == 0 || twice == 0) {
		b.t.Errorf("%d overlaps and %d payments made twice, want none: %v", b.overlaps, twice, safe)
	}
}

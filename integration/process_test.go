//go:build unix

package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestKilledHolder shows that the lock of a process that was killed is free at
// the end of its lease, and not before (F19). BenchmarkTakeover measures how
// soon after.
func TestKilledHolder(t *testing.T) {
	t.Parallel() // it waits most of the time
	inEach(t, func(t *testing.T, _ backend, p place) {
		store := p.store(t, nil)
		key := lock.Key{Name: "killed/" + rand.Text(), Event: "e1"}
		holder := startChild(t, "hold", task{Place: p, Who: "holder", Key: key, Options: childOptions{FixedLease: 12 * time.Second}}) // Grace leaves ten for its first request: a server in Java may be slow at first
		var held heldLine
		holder.read(&held)
		expect.Must(t, holder.cmd.Process.Kill())
		_ = holder.cmd.Wait() // it was killed

		seen := &observed{}
		locker := newLocker(t, store, lock.Options{Lease: lock.FixedLease(10 * time.Second), MaxWait: time.Minute, Observe: seen.add})
		lk := expect.Value(locker.Acquire(t.Context(), key))(t)
		defer func() { _ = lk.Release() }()
		late := time.Since(held.Until)
		t.Logf("taken over %v after lease end, %d requests", late.Round(time.Millisecond), seen.last(lock.OutcomeTakenOver).Requests)
		if late <= 0 {
			t.Errorf("taken over %v before lease end", -late)
		}
		if got := lk.Lease().Fence; got <= held.Fence {
			t.Errorf("fence %d after %d", got, held.Fence)
		}
		if o := seen.last(lock.OutcomeTakenOver); o.Holder != held.Holder {
			t.Errorf("took over from %q, want %q", o.Holder, held.Holder)
		}
	})
}

// TestStoppedHolder shows that a process that was stopped for longer than its
// lease loses the lease, learns that, and does not change its successor's row
// (F15, F20, F21).
func TestStoppedHolder(t *testing.T) {
	t.Parallel() // it waits most of the time
	inEach(t, func(t *testing.T, b backend, p place) {
		store := p.store(t, nil)
		key := lock.Key{Name: "stopped/" + rand.Text(), Event: "e1"}
		// Grace leaves seven seconds: the first claim on a server of objects, which is
		// checked first, and a renewal fit in also on a busy machine.
		holder := startChild(t, "hold", task{Place: p, Who: "holder", Key: key, Options: childOptions{Heartbeat: 9 * time.Second}})
		var held, renewed heldLine
		holder.read(&held)
		holder.read(&renewed) // it is alive, and its heartbeat works
		expect.Must(t, holder.cmd.Process.Signal(syscall.SIGSTOP))

		locker := newLocker(t, store, lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute})
		lk := expect.Value(locker.Acquire(t.Context(), key))(t)
		if early := time.Until(renewed.Until); early > 0 {
			t.Errorf("taken over %v before the end of the renewed lease", early)
		}
		before := readRow(t, store, key)
		expect.Must(t, holder.cmd.Process.Signal(syscall.SIGCONT))
		var end endLine
		for !end.Ended {
			holder.read(&end) // renewals that were under way come first
		}
		if !end.CauseLost || !end.CompleteLost {
			t.Errorf("context ended with ErrLost: %v; Complete returned ErrLost: %v; want both: %+v", end.CauseLost, end.CompleteLost, end)
		}
		expect.OK(t, holder.cmd.Wait())
		b.wantSame(t, before, readRow(t, store, key))
		if err := lk.Complete(); err != nil {
			t.Errorf("successor's Complete: %v", err)
		}
	})
}

// TestShortLease shows that the context of work that outlasts a fixed lease
// ends before the lease does, and that the work cannot complete its event after
// a takeover (F20, F21).
func TestShortLease(t *testing.T) {
	t.Parallel() // it waits most of the time
	inEach(t, func(t *testing.T, b backend, p place) {
		store := p.store(t, nil)
		key := lock.Key{Name: "short/" + rand.Text(), Event: "e1"}
		first := expect.Value(newLocker(t, store, lock.Options{Lease: lock.FixedLease(5 * time.Second)}).Acquire(t.Context(), key))(t)
		<-first.Context().Done()
		if left := time.Until(first.Lease().Until); left <= 0 {
			t.Errorf("the context ended %v after the lease", -left)
		}
		if cause := context.Cause(first.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the context ended with %v, want ErrLost", cause)
		}
		second := expect.Value(newLocker(t, store, lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute}).Acquire(t.Context(), key))(t)
		before := readRow(t, store, key)
		if err := first.Complete(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("late Complete: %v, want ErrLost", err)
		}
		b.wantSame(t, before, readRow(t, store, key))
		expect.OK(t, second.Release())
	})
}

// readRow returns a row, by a claim that the row refuses.
func readRow(t *testing.T, store driver.Store, key lock.Key) driver.Row {
	t.Helper()
	now := time.Now()
	row, ok, err := store.Acquire(t.Context(), &driver.Claim{
		Name: "/" + key.Name, Token: rand.Text(), Holder: "stranger", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour),
	})
	if ok || err != nil {
		t.Fatalf("a stranger's claim: granted %v, error %v, want it refused", ok, err)
	}
	return row
}

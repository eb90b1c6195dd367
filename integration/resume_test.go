package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// resumedLine is what a child writes when it has resumed a lock, and what it
// reads when it shall complete it.
type resumedLine struct{ Fence int64 }

// resume is the part of a child that continues a lock and completes it once its
// parent says so.
func resume(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	locker, err := lock.New(store, &lock.Options{Lease: t.Options.lease(), Logger: discard})
	if err != nil {
		return err
	}
	lk, err := locker.Resume(context.Background(), t.Handle)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(resumedLine{lk.Lease().Fence}); err != nil {
		return err
	}
	if err := json.NewDecoder(os.Stdin).Decode(&resumedLine{}); err != nil {
		return err // the parent has gone
	}
	return lk.CompleteWith([]byte(`"done"`))
}

// TestHandOverToAnotherProcess hands a lock to a process, which is killed, and
// with the same handle to a second one, which completes the event (F19). In
// between nobody else gets the name, and afterwards the handle is worth
// nothing.
func TestHandOverToAnotherProcess(t *testing.T) {
	inEach(t, func(t *testing.T, _ backend, p place) {
		store := p.store(t, nil)
		key := lock.Key{Name: "handed/" + rand.Text(), Event: "e1"}
		locker := newLocker(t, store, lock.Options{Lease: lock.FixedLease(time.Minute)})
		stranger := newLocker(t, store, lock.Options{Lease: lock.FixedLease(time.Minute)})
		wantHeld := func(when string) {
			t.Helper()
			if _, err := stranger.Acquire(t.Context(), key); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("a duplicate %s: %v, want ErrHeld", when, err)
			}
		}
		var fence int64
		var handle lock.Ticket
		expect.Must(t, locker.Do(t.Context(), key, func(ctx context.Context) (err error) {
			handle, err = lock.HandOver(ctx, 10*time.Minute)
			fence = handle.Fence
			return err
		}))
		wantHeld("after the hand-over")

		var line resumedLine
		do := task{Place: p, Who: "the one that is killed", Handle: handle, Options: childOptions{Heartbeat: 10 * time.Second}}
		first := startChild(t, "resume", do)
		first.read(&line)
		expect.Must(t, first.cmd.Process.Kill())
		_ = first.cmd.Wait() // it was killed
		wantHeld("after the kill")

		do.Who = "the one that completes"
		second := startChild(t, "resume", do)
		second.read(&line)
		if line.Fence < fence { // a quorum without one of its servers may have to raise it
			t.Errorf("resumed with fence %d, want that of the hand-over, %d, or more", line.Fence, fence)
		}
		wantHeld("while it is resumed")
		expect.Must(t, json.NewEncoder(second.stdin).Encode(line))
		expect.Must(t, second.cmd.Wait())
		var completed *lock.CompletedError
		if _, err := stranger.Acquire(t.Context(), key); !errors.As(err, &completed) || string(completed.Result) != `"done"` {
			t.Errorf("a duplicate afterwards: %v, want a *lock.CompletedError with the result", err)
		}
		if _, err := locker.Resume(t.Context(), handle); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("the handle afterwards: %v, want ErrCompleted", err)
		}
	})
}

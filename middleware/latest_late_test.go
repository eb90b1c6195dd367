package middleware_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestLateClaimOfAServedRecord lets an earlier delivery of a record send a
// claim, on a clock that is ahead, whose copy arrives after another record of
// its batch has served it: it must not own the name, because nobody delivers
// the record again, and what others coalesce into it would be lost.
func TestLateClaimOfAServedRecord(t *testing.T) { // F3, F14
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		deliver := func(ahead time.Duration, records ...string) []int {
			ctx, cancel := context.WithTimeout(clock.With(t.Context(), simclock.New(ahead, 0)), 10*time.Second)
			defer cancel()
			var batch []itemChange
			for _, r := range records {
				batch = append(batch, parse(r))
			}
			return sqsChanges(false)(ctx, t, batch, func(c itemChange) lock.Key {
				return lock.Key{Name: c.name, Event: c.event}
			}, func(context.Context, itemChange) error { return nil }, f.options(middleware.OnlyLatest())...)
		}
		f.faulty.Always(fault.Acquire, fault.HangThenApply)
		f.faulty.Always(fault.Release, fault.DropBefore)
		if again := deliver(1900*time.Millisecond, "n e2 ok"); len(again) != 1 {
			t.Fatalf("%v come again", again)
		}
		f.faulty.Always(fault.Acquire, fault.None)
		f.faulty.Always(fault.Release, fault.None)
		if again := deliver(0, "n e1 ok", "n e2 ok"); len(again) != 0 {
			t.Fatalf("%v come again", again)
		}
		f.faulty.Apply()
		row := expect.Value(f.faulty.Store.(*memstore.Store).Read(t.Context(), "/n"))(t)
		if row.Token != "" {
			t.Errorf("the late claim owns the name: %+v", row)
		}
	})
}

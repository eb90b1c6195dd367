package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// id returns an event as long as a UUID.
func id(i int) string { return fmt.Sprintf("%036d", i) }

func complete(t *testing.T, l *lock.Locker, events ...string) {
	t.Helper()
	for _, e := range events {
		if err := l.Do(t.Context(), event(e), nothing); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
}

// remembered returns those of events that a duplicate finds completed.
func remembered(t *testing.T, l *lock.Locker, events ...string) (known []string) {
	t.Helper()
	for _, e := range events {
		lk, err := l.Acquire(t.Context(), event(e))
		switch {
		case isCompleted(err):
			known = append(known, e)
		case err != nil:
			t.Fatal(err)
		default:
			_ = lk.Release()
		}
	}
	return known
}

func ids(from, to int) (events []string) {
	for i := from; i < to; i++ {
		events = append(events, id(i))
	}
	return events
}

// TestLastEventsAreRemembered shows that a name remembers at least its last
// eight events, however long they are, forgets them in the order of completion,
// and reports those that it forgets.
func TestLastEventsAreRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		event func(int) string
		name  string
		least int
		want  int // at least
	}{
		"long events and a long name": {func(i int) string { return fmt.Sprintf("%050d", i) }, strings.Repeat("n", 2000), 0, 8},
		"long events":                 {func(i int) string { return fmt.Sprintf("%050d", i) }, "resource", 0, 9},
		"short events":                {func(i int) string { return fmt.Sprint(i) }, "resource", 0, 30},
		"as many as asked for":        {id, "resource", 40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{RememberEvents: c.least, Lease: lock.FixedLease(time.Minute)})
				for i := range 60 {
					expect.Must(t, l.Do(t.Context(), lock.Key{Name: c.name, Event: c.event(i)}, nothing))
				}
				forgotten := 0
				for _, o := range f.observed {
					if o.Outcome == lock.OutcomeForgotten {
						forgotten += o.Forgotten
					}
				}
				known := 0
				for i := range 60 {
					_, err := l.Acquire(t.Context(), lock.Key{Name: c.name, Event: c.event(59 - i)})
					if !isCompleted(err) {
						break
					}
					known++
				}
				if known < c.want || known == 60 || c.least > 0 && known != c.least || forgotten != 60-known {
					t.Errorf("the last %d are remembered and %d were reported as forgotten, want at least %d, and all others", known, forgotten, c.want)
				}
			})
		})
	}
}

// TestForgottenInOrderOfCompletion shows that events are not forgotten in the
// order in which they expire: users of a name may remember them for different
// times.
func TestForgottenInOrderOfCompletion(t *testing.T) { // F47
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		long := f.locker(lock.Options{Remember: 14 * 24 * time.Hour})
		complete(t, long, ids(0, 30)...)
		short := f.locker(lock.Options{Remember: time.Hour})
		complete(t, short, ids(100, 104)...)
		if known := remembered(t, short, ids(100, 104)...); len(known) != 4 {
			t.Errorf("of the four events that were completed last, %q are remembered", known)
		}
		if known := remembered(t, long, ids(0, 30)...); len(known) == 0 || known[len(known)-1] != id(29) {
			t.Errorf("of the events before, %q are remembered, want the last ones", known)
		}
	})
}

// TestExpiredEventsMakeRoom shows that expired events are dropped first, and
// that they are not reported as forgotten.
func TestExpiredEventsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		hour := f.locker(lock.Options{Remember: time.Hour})
		day := f.locker(lock.Options{Remember: 24 * time.Hour})
		complete(t, day, ids(0, 4)...)
		complete(t, hour, ids(100, 108)...)
		time.Sleep(2 * time.Hour)
		f.outcomes()
		complete(t, day, ids(4, 12)...)
		if known := remembered(t, day, ids(0, 12)...); len(known) != 12 {
			t.Errorf("%d of 12 are remembered, although all others have expired", len(known))
		}
		if slices.Contains(f.outcomes(), lock.OutcomeForgotten) {
			t.Error("an expired event is reported as forgotten")
		}
		if n := len(f.row().Memory.Completed); n != 12 {
			t.Errorf("the row has %d events, want 12", n)
		}
	})
}

// TestDeliveryIsRemembered shows that the events that a delivery completed are
// recognised when it arrives again, and that the next delivery shrinks the row.
func TestDeliveryIsRemembered(t *testing.T) { // F46
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		deliver := func(from, to int) context.Context {
			b := &invocation.Batch{}
			for _, e := range ids(from, to) {
				b.Add(event(e).Name, e)
			}
			return invocation.WithBatch(t.Context(), b)
		}
		complete(t, l, ids(1000, 1100)...) // by other deliveries, before
		ctx := deliver(0, 400)
		for i := range 399 {
			expect.Must(t, l.Do(ctx, event(id(i)), nothing))
		}
		if known := remembered(t, l, ids(0, 400)...); len(known) != 399 {
			t.Fatalf("%d events of the delivery are remembered, want all but the last", len(known))
		}
		ctx = deliver(0, 400) // again
		expect.Must(t, l.Do(ctx, event(id(399)), nothing))
		if known := remembered(t, l, ids(0, 400)...); len(known) != 400 {
			t.Fatalf("%d events of the delivery are remembered, want all of them", len(known))
		}
		expect.Must(t, l.Do(deliver(500, 510), event(id(500)), nothing))
		if known := remembered(t, l, ids(0, 400)...); len(known) > 20 {
			t.Errorf("the row still has %d events of an earlier delivery", len(known))
		}
	})
}

// TestLargeDeliveryIsBounded shows that the writes of a large delivery cost no
// more than one partition of DynamoDB provides in a few minutes. Otherwise the
// delivery would never be completed. Ordered events need no memory.
func TestLargeDeliveryIsBounded(t *testing.T) { // F32, F46
	for _, c := range []struct {
		records int
		ordered bool
		least   int // how many of them are remembered
		most    int
	}{
		{1000, false, 1000, 1000},
		{2000, false, 2000, 2000},
		{6000, false, 500, 2500},
		{1000, true, 8, 30},
	} {
		t.Run(fmt.Sprintf("%d records, ordered %v", c.records, c.ordered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.UntilDeadline()})
				keys := make([]lock.Key, c.records)
				batch := &invocation.Batch{}
				for i := range keys {
					keys[i] = event(id(i))
					if c.ordered {
						keys[i].Order = id(i) // which tells that it was completed
					} else {
						batch.Add(keys[i].Name, keys[i].Event)
					}
				}
				ctx, cancel := context.WithTimeout(invocation.WithBatch(t.Context(), batch), 10*time.Minute)
				defer cancel()
				units := 0
				for _, k := range keys {
					lk := expect.Value(l.Acquire(ctx, k))(t)
					expect.Must(t, lk.Complete())
					units += 1 + len(f.row().Memory.Completed)*(36+12)/1024
				}
				if units > 300_000 {
					t.Errorf("the writes cost %d units", units)
				}
				if n := len(f.row().Memory.Completed); n < c.least || n > c.most {
					t.Errorf("%d events are remembered, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}

// TestRowStaysBelowSizeLimit shows that a row with more events than fit drops
// some of them, and the result, to stay below DynamoDB's limit of 400 KB.
func TestRowStaysBelowSizeLimit(t *testing.T) { // F32, F35, F46
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{RememberEvents: 100_000})
		memory := driver.Memory{}
		for i := range 8000 {
			memory.Completed = append(memory.Completed, driver.CompletedEvent{Event: fmt.Sprintf("%050d", i), Until: time.Now().Add(time.Hour)})
		}
		c := &driver.Claim{Name: "/resource", Token: "t", Now: time.Now(), Stamp: time.Now(), Until: time.Now().Add(time.Minute)}
		expect.Granted(f.faulty.Acquire(t.Context(), c))(t)
		expect.Granted(f.faulty.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: &memory}))(t)
		expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Result: make([]byte, 10<<10)}))
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeResultDropped, lock.OutcomeForgotten)
		row := f.row()
		size := len(row.Memory.Result.Body)
		for _, d := range row.Memory.Completed {
			size += len(d.Event) + 12
		}
		if size > 350<<10 || size < 340<<10 {
			t.Errorf("the row has about %d bytes", size)
		}
	})
}

// TestRowOutlivesItsMemory shows that a row is kept for as long as it remembers
// an event, even if a later user of the name remembers for a shorter time or
// not at all, fails, or dies.
func TestRowOutlivesItsMemory(t *testing.T) { // F23, F47
	week := 7 * 24 * time.Hour
	for name, use := range map[string]func(*fixture) error{
		"remembers less": func(f *fixture) error { return f.locker(lock.Options{}).Do(f.t.Context(), event("e2"), nothing) },
		"mutex":          func(f *fixture) error { return f.locker(lock.Options{}).Do(f.t.Context(), resource, nothing) },
		"fails": func(f *fixture) error {
			boom := errors.New("boom")
			if err := f.locker(lock.Options{}).Do(f.t.Context(), event("e2"), func(context.Context) error { return boom }); err != boom {
				return err
			}
			return nil
		},
		"dies": func(f *fixture) error {
			f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e2"))
			return nil
		},
		"is not answered": func(f *fixture) error {
			f.faulty.Always(fault.Acquire, fault.DropBefore)
			_, err := f.locker(lock.Options{}).Acquire(f.t.Context(), event("e2"))
			f.faulty.Always(fault.Acquire, fault.None)
			if !isStoreError(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
		"renews": func(f *fixture) error {
			return f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}).Do(f.t.Context(), event("e2"), func(context.Context) error {
				time.Sleep(time.Minute)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				complete(t, f.locker(lock.Options{Remember: 2 * time.Hour}), "e0")
				expect.Must(t, f.locker(lock.Options{Remember: week}).Do(t.Context(), event("e1"), nothing))
				time.Sleep(time.Hour)
				expect.Must(t, use(f))
				time.Sleep(week - 2*time.Hour) // the store deletes rows as soon as it may
				l := f.locker(lock.Options{})
				if err := l.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
					t.Errorf("a duplicate within the week: %v", err)
				}
			})
		})
	}
}

// TestRememberOfNested shows that a lock remembers as long as the one around it
// unless it says otherwise: the source of both may deliver the event again.
func TestRememberOfNested(t *testing.T) { // P5
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ outer, between, inner, want time.Duration }{
		"as around it":            {outer: 4 * day, want: 4 * day},
		"as it says":              {outer: 4 * day, inner: time.Hour, want: time.Hour},
		"longer than it":          {outer: time.Hour, want: day},
		"as usual":                {want: day},
		"as the outermost":        {outer: 7 * day, between: 2 * day, want: 7 * day},
		"as the one between them": {outer: 2 * day, between: 7 * day, want: 7 * day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				inner := f.locker(lock.Options{Remember: c.inner})
				work := func(ctx context.Context) error {
					return f.locker(lock.Options{Remember: c.between}).Do(ctx, lock.Key{Name: "between"}, func(ctx context.Context) error {
						ordered := lock.Key{Name: "ordered", Order: "1"}
						expect.Must(t, inner.Do(ctx, ordered, nothing))
						if kept := time.Until(readRow(t, f.faulty.Store, "/ordered").DeleteAfter); kept < c.want {
							t.Errorf("an order is kept for %v", kept)
						}
						return inner.Do(ctx, event("e1"), nothing)
					})
				}
				expect.Must(t, f.locker(lock.Options{Remember: c.outer}).Do(t.Context(), lock.Key{Name: "around"}, work))
				time.Sleep(c.want)
				if err := inner.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
					t.Errorf("after %v: %v", c.want, err)
				}
				time.Sleep(time.Millisecond)
				if err := inner.Do(t.Context(), event("e1"), nothing); err != nil {
					t.Errorf("later: %v", err)
				}
			})
		})
	}
}

// TestRememberOfCompletion completes events that are remembered for other times
// than Options.Remember says.
func TestRememberOfCompletion(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ remember, want time.Duration }{
		"shorter":         {time.Minute, time.Minute},
		"longer":          {10 * day, 10 * day},
		"longer than any": {1000 * day, 366 * day},
		"as usual":        {0, day},
		"negative":        {-time.Minute, day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{})
				expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Remember: c.remember}))
				time.Sleep(c.want)
				if err := l.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
					t.Errorf("after %v: %v", c.want, err)
				}
				time.Sleep(time.Millisecond)
				if err := l.Do(t.Context(), event("e1"), nothing); err != nil {
					t.Errorf("later: %v", err)
				}
			})
		})
	}
}

// TestRowOutlivesItsOrder shows that an order without an event is remembered
// too, after the last use of the name, however that ended.
func TestRowOutlivesItsOrder(t *testing.T) { // F23, F47
	week := 7 * 24 * time.Hour
	ordered := func(n string) lock.Key { return lock.Key{Name: "resource", Order: n} }
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Remember: week})
		expect.Must(t, l.Do(t.Context(), ordered("2"), nothing))
		boom := errors.New("boom")
		for _, k := range []lock.Key{ordered("3"), event("e1"), resource} {
			time.Sleep(week - time.Hour)
			if err := l.Do(t.Context(), ordered("1"), nothing); !isCompleted(err) {
				t.Errorf("a stale event before %+v: %v", k, err)
			}
			if err := l.Do(t.Context(), k, func(context.Context) error { return boom }); err != boom {
				t.Error(err)
			}
		}
		time.Sleep(week - time.Hour)
		if err := l.Do(t.Context(), ordered("2"), nothing); !isCompleted(err) {
			t.Errorf("a duplicate at the end: %v", err)
		}
	})
}

// TestRowExpiry shows how long a row is kept after each step.
func TestRowExpiry(t *testing.T) { // F23
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		kept := func() time.Duration { return time.Until(f.row().DeleteAfter) }
		week := f.locker(lock.Options{Remember: 7 * 24 * time.Hour, Namespace: "week"})
		complete(t, week, "e1")
		if got := time.Until(readRow(t, f.faulty.Store, "week/resource").DeleteAfter); got != 7*24*time.Hour {
			t.Errorf("a row with an event of a week is kept for %v", got)
		}
		mutex := f.locker(lock.Options{Namespace: "mutex"})
		expect.Must(t, f.mustAcquire(mutex, resource).Release())
		if got := time.Until(readRow(t, f.faulty.Store, "mutex/resource").DeleteAfter); got != 24*time.Hour {
			t.Errorf("a row that remembers nothing is kept for %v, want 24h, because of its fence", got)
		}
		complete(t, l, "e1")
		if got := kept(); got != 24*time.Hour {
			t.Errorf("after a completion the row is kept for %v, want 24h", got)
		}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
		if got := kept(); got < 366*24*time.Hour || got > 367*24*time.Hour {
			t.Errorf("while it is held the row is kept for %v, want the longest time that Remember allows", got)
		}
		_ = lk.Release()
		if got := kept(); got != 24*time.Hour {
			t.Errorf("after a release the row is kept for %v, want 24h", got)
		}
	})
}

// TestUnorderedEventKeepsOrder shows that the completion of an event without
// Order does not make stale events run.
func TestUnorderedEventKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		for _, k := range []lock.Key{{Name: "resource", Event: "e2", Order: "2"}, event("e3")} {
			expect.Must(t, l.Do(t.Context(), k, nothing))
		}
		if _, err := l.Acquire(t.Context(), lock.Key{Name: "resource", Event: "e1", Order: "1"}); !isCompleted(err) {
			t.Errorf("got %v, although a later event is completed", err)
		}
	})
}

// TestEventIsRememberedOnce shows that an event that runs again, because a
// clock that was ahead took it for expired, has one place in the memory.
func TestEventIsRememberedOnce(t *testing.T) { // F15
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Remember: time.Hour, Lease: lock.FixedLease(time.Minute)})
		complete(t, l, "e1")
		ahead := skewed(l, 2*time.Hour)
		lk := f.mustAcquire(ahead, event("e1"))
		ahead.clock.Step(-2 * time.Hour)
		expect.Must(t, lk.Complete())
		if events := f.row().Memory.Completed; len(events) != 1 {
			t.Errorf("the row has %+v, want the event once", events)
		}
	})
}

// TestForgottenEventHasNoResult shows that the result of an event is dropped
// with the event, also if it is forgotten for lack of room.
func TestForgottenEventHasNoResult(t *testing.T) { // F35
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{RememberEvents: 1})
		expect.Must(t, f.mustAcquire(l, event(id(0))).CompleteWith(lock.Completion{Result: []byte("secret")}))
		for i, has := 1, true; has || i < 40; i++ {
			complete(t, l, id(i))
			m := f.row().Memory
			if has = m.Has(id(0), time.Now()); has != (m.Result.Body != nil) {
				t.Errorf("after %d events: remembered %v, and the row has the result %q", i, has, m.Result.Body)
			}
		}
	})
}

// TestOldResultMakesRoom shows that the result of an earlier event is dropped
// if the row becomes too large, and that this is not reported as a loss of the
// completed event's result, which has none.
func TestOldResultMakesRoom(t *testing.T) { // F32, F35
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Result: make([]byte, 350<<10-450)}))
		if f.row().Memory.Result.Body == nil {
			t.Fatal("the result was not kept, so nothing is shown")
		}
		complete(t, l, ids(0, 4)...)
		if f.row().Memory.Result.Body != nil {
			t.Error("the old result is still there")
		}
		if slices.Contains(f.outcomes(), lock.OutcomeResultDropped) {
			t.Error("a result is reported as dropped")
		}
	})
}

// TestLongEventsOfBatchAreRemembered shows that the events of a batch are
// recognised in the row, where long ones are hashed.
func TestLongEventsOfBatchAreRemembered(t *testing.T) { // F46
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{RememberEvents: 1})
		var events []string
		batch := &invocation.Batch{}
		for i := range 50 {
			e := strings.Repeat("long", 30) + id(i)
			events = append(events, e)
			batch.Add("resource", e)
		}
		ctx := invocation.WithBatch(t.Context(), batch)
		for _, e := range events {
			expect.Must(t, l.Do(ctx, event(e), nothing))
		}
		if known := remembered(t, l, events...); len(known) != len(events) {
			t.Errorf("%d of %d events of the batch are remembered", len(known), len(events))
		}
	})
}

// TestRoomOfARow shows how many events a row remembers for one write unit: as
// many as fit into 1,024 bytes to the byte, while the next owner holds the row.
// The store's own test shows that DynamoDB counts the same.
func TestRoomOfARow(t *testing.T) { // F46
	t.Parallel()
	for name, c := range map[string]struct {
		length  int // of each event
		order   string
		payload string
		want    int

		interrupted bool // another one was
	}{
		"events":                    {length: 34, want: 14},                    // 337 + 9 + 14·(34+12) + 34
		"with an order":             {length: 50, order: "%08d", want: 10},     // 337 + 9 + 8 + 10·(50+12) + 50
		"with payloads":             {length: 17, payload: "1 €", want: 9},     // 337 + 9 + 18 + 9·(17+12 + 17+1+22) + 17+22
		"beside an interrupted one": {length: 34, want: 11, interrupted: true}, // 337 + 9 + 20 + 75+1+22+20 + 11·(34+12) + 34
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for resource, want := range map[string]int{"resource": c.want, "resource1": c.want - 1} {
				f := newFixture(t)
				o := lock.Options{RememberEvents: 1, Holder: func(context.Context) string { return strings.Repeat("h", 20) }}
				if c.interrupted {
					o.OnInterrupted = lock.FailInterrupted
				}
				l := f.locker(o)
				if c.interrupted {
					expect.OK(t, f.mustAcquire(l, lock.Key{Name: resource, Event: "i", Payload: "one"}).Fail(lock.ErrUnknown))
				}
				for i := range 20 {
					key := lock.Key{Name: resource, Event: fmt.Sprintf("%0*d", c.length, i), Payload: c.payload}
					if c.order != "" {
						key.Order = fmt.Sprintf(c.order, i)
					}
					expect.Must(t, l.Do(t.Context(), key, nothing))
				}
				if got := len(readRow(t, f.faulty.Store, "/"+resource).Memory.Completed); got != want {
					t.Errorf("%s remembers %d events, want %d", resource, got, want)
				}
			}
		})
	}
}

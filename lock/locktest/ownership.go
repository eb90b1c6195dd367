package locktest

import (
	"sync"
	"sync/atomic"
	"time"
)

func acquire(b *bench) {
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	if row.Token != c.Token || row.Holder != "first" || row.Event != "e1" || row.Previous != "" {
		b.Errorf("acquired row %+v does not describe the claim", row)
	}
	if !b.NoFence && row.Fence <= 0 {
		b.Errorf("fence is %d, want above zero", row.Fence)
	}
	if b.Advance == nil && (!row.Stamp.Equal(c.Stamp) || !row.Until.Equal(c.Until)) {
		b.Errorf("acquired since %v until %v, want %v and %v", row.Stamp, row.Until, c.Stamp, c.Until)
	}
	if row.Stamp.IsZero() {
		b.Error("a row that was acquired must have Stamp: a zero one reads as unknown")
	}
}

func held(b *bench) {
	first := b.eventClaim("first", "e1")
	b.mustAcquire(first)
	row := b.mustRefuse(b.eventClaim("second", "e1"))
	if b.NoDetail {
		return
	}
	if row.Token != first.Token || row.Holder != "first" || row.Event != "e1" || row.Until.IsZero() {
		b.Errorf("refusing row %+v does not describe the holder", row)
	}
}

func takeover(b *bench) { // F19
	first := b.claim("first")
	before := b.mustAcquire(first)
	b.advance(lease + time.Second)
	second := b.claim("second")
	row := b.mustAcquire(second)
	if row.Previous != "first" || row.Holder != "second" {
		b.Errorf("row after takeover %+v, want previous holder first", row)
	}
	if !b.NoFence && row.Fence <= before.Fence {
		b.Errorf("fence went from %d to %d", before.Fence, row.Fence)
	}
	b.mustRelease(second, nil)
	if row := b.mustAcquire(b.claim("third")); row.Previous != "" {
		b.Errorf("after a clean release previous is %q, want none", row.Previous)
	}
}

func takeoverNotBeforeEnd(b *bench) { // F14
	first := b.claim("first")
	b.mustAcquire(first)
	b.advance(lease - 2*time.Second)
	b.mustRefuse(b.claim("early"))
	if b.Advance != nil {
		return
	}
	at := b.claim("at the end")
	at.Now = first.Until
	b.mustRefuse(at)
	after := b.claim("after the end")
	after.Now = first.Until.Add(time.Microsecond)
	b.mustAcquire(after)
}

// takeoverForgetsEvent: the next one that finds the name held must not be told that it
// is held by the dead holder's event.
func takeoverForgetsEvent(b *bench) {
	b.mustAcquire(b.eventClaim("dead", "e1"))
	b.advance(lease + time.Second)
	if row := b.mustAcquire(b.claim("mutex")); row.Event != "" {
		b.Errorf("row after takeover %+v, want no event", row)
	}
	if row := b.mustRefuse(b.eventClaim("contender", "e1")); row.Event != "" {
		b.Errorf("refusing row %+v, want no event", row)
	}
}

func oneOfMany(b *bench) {
	var wg sync.WaitGroup
	var granted atomic.Int32
	for range 16 {
		c := b.claim("one of many")
		wg.Go(func() {
			_, ok, err := b.store.Acquire(b.Context(), c)
			if err != nil {
				b.Errorf("concurrent acquire: %v", err)
			}
			if ok {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		b.Errorf("%d of 16 concurrent claims were granted, want 1", n)
	}
}

func fenceRises(b *bench) { // F24
	if b.NoFence {
		b.Skip("the store declares that it has no fencing token")
	}
	var last int64
	for i := range 6 {
		c := b.claim("holder")
		row := b.mustAcquire(c)
		if row.Fence <= last {
			b.Fatalf("acquisition %d has fence %d after %d", i, row.Fence, last)
		}
		last = row.Fence
		if i%2 == 0 {
			b.mustRelease(c, nil)
		} else {
			b.advance(lease + time.Second)
		}
	}
}

func repeatedAcquire(b *bench) { // F1
	c := b.claim("first")
	first := b.mustAcquire(c)
	row, ok := b.acquire(c)
	if !ok && row.Token != c.Token {
		b.Fatalf("a repeated claim does not recognise its own row: %+v", row)
	}
	if row.Fence < first.Fence || row.Until.After(first.Until) {
		b.Errorf("repeated claim: fence %d until %v, first had %d until %v", row.Fence, row.Until, first.Fence, first.Until)
	}
	b.mustRelease(c, nil)
}

func repeatedRelease(b *bench) { // F5
	c := b.claim("first")
	b.mustAcquire(c)
	b.mustRelease(c, nil)
	if row, ok := b.release(c, nil); ok || row.Token != "" {
		b.Errorf("second release: applied %v on %+v", ok, row)
	}
	b.mustAcquire(b.claim("second"))
}

func lateHolder(b *bench) { // F21
	first := b.eventClaim("late", "e1")
	row := b.mustAcquire(first)
	b.advance(lease + time.Second)
	second := b.eventClaim("successor", "e1")
	b.mustAcquire(second)
	if _, ok := b.release(first, nil); ok {
		b.Error("the late holder's release was applied")
	}
	if _, ok := b.release(first, completes(row, "e1", b.now.Add(time.Hour))); ok {
		b.Error("the late holder's completion was applied")
	}
	if _, ok := b.renew(first, b.now.Add(lease)); ok {
		b.Error("the late holder's renewal was applied")
	}
	if row := b.mustRefuse(b.claim("third")); !b.NoDetail && (row.Token != second.Token || len(row.Memory.Completed) != 0) {
		b.Errorf("the successor's row was changed: %+v", row)
	}
	b.mustRelease(second, nil)
}

func renew(b *bench) { // F4
	c := b.claim("holder")
	b.mustAcquire(c)
	b.advance(lease - time.Second)
	until := b.now.Add(lease)
	for range 2 { // the second is a repetition after a lost acknowledgement
		if row, ok := b.renew(c, until); !ok && row.Token != c.Token {
			b.Fatalf("renewal refused by %+v", row)
		}
	}
	if b.Advance == nil {
		b.renew(c, until.Add(-5*time.Second)) // a delayed earlier one
	}
	b.advance(lease - time.Second)
	b.mustRefuse(b.claim("contender"))
	b.advance(2 * time.Second)
	b.mustAcquire(b.claim("successor"))
}

func renewNeverRevives(b *bench) { // F4, F23
	c := b.claim("holder")
	if _, ok := b.renew(c, c.Until); ok {
		b.Error("a renewal created a row")
	}
	b.mustAcquire(c)
	b.mustRelease(c, nil)
	if _, ok := b.renew(c, c.Until.Add(time.Second)); ok {
		b.Error("a renewal revived a released lock")
	}
	b.mustAcquire(b.claim("other"))
}

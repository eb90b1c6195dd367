package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

func completedEvent(b *bench) { // F6
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	until := b.now.Add(time.Minute).Truncate(time.Millisecond)
	b.mustRelease(c, completes(row, "e1", until))

	row = b.mustRefuse(b.eventClaim("duplicate", "e1"))
	if !b.NoDetail && !slices.ContainsFunc(row.Memory.Completed, func(d driver.CompletedEvent) bool { return d.Event == "e1" && d.Until.Equal(until) }) {
		b.Errorf("refusing row does not remember the event: %+v", row)
	}
	other := b.eventClaim("another event", "e2")
	b.mustAcquire(other)
	row = b.mustRefuse(b.eventClaim("duplicate while another holds", "e1"))
	if c := b.eventClaim("", "e1"); !b.NoDetail && row.Judge(c) != driver.Completed {
		b.Errorf("verdict %v, want Done although another event holds the name", row.Judge(c))
	}
	b.mustRelease(other, nil)

	b.advance(time.Minute + 2*time.Second)
	b.mustAcquire(b.eventClaim("after it was forgotten", "e1"))
}

// memoryAsGiven: what is remembered, and in which order it was completed, is the
// engine's to decide. The order is not that of the expiry times.
func memoryAsGiven(b *bench) { // F46, F47
	var want []driver.CompletedEvent
	for i := range 40 {
		e := fmt.Sprintf("%050d", (i*17)%40)
		want = append(want, driver.CompletedEvent{Event: e, Until: b.now.Add(time.Hour - time.Duration(i%7)*time.Minute).Truncate(time.Millisecond)})
	}
	c := b.eventClaim("holder", want[39].Event)
	b.mustAcquire(c)
	b.mustRelease(c, &driver.Memory{Completed: want, HighestOrder: "t"})
	for _, e := range want {
		b.mustRefuse(b.eventClaim("duplicate", e.Event))
	}
	for _, got := range []driver.Row{b.mustAcquire(b.eventClaim("next", "another")), b.mustRefuse(b.eventClaim("duplicate", want[0].Event))} {
		if got.Token == "" && b.NoDetail {
			continue
		}
		same := slices.EqualFunc(got.Memory.Completed, want, func(a, b driver.CompletedEvent) bool { return a.Event == b.Event && a.Until.Equal(b.Until) })
		if !same || got.Memory.HighestOrder != "t" {
			b.Errorf("the memory became %+v, want %+v", got.Memory, want)
		}
	}
}

// keepAfterEveryStep: each request that is applied sets until when the row is kept.
func keepAfterEveryStep(b *bench) { // F47
	keep := b.now.Add(24 * time.Hour).Truncate(time.Second).Add(500 * time.Millisecond) // a store of whole seconds rounds up
	kept := func(step string) {
		b.Helper()
		stale := b.claim("looks")
		stale.Stamp = stale.Stamp.Add(-time.Hour) // refused by any row
		row := b.mustRefuse(stale)
		if got := row.DeleteAfter; !b.NoDetail && (got.Before(keep) || got.After(keep.Add(time.Second))) {
			b.Errorf("after %s the row is kept until %v, want %v", step, got, keep)
		}
		keep = keep.Add(time.Hour)
	}
	c := b.claim("holder")
	c.DeleteAfter = keep
	b.mustAcquire(c)
	kept("acquire")
	c.DeleteAfter = keep
	if _, ok := b.renew(c, c.Until.Add(time.Second)); !ok {
		b.Fatal("renewal refused")
	}
	kept("renew")
	c.DeleteAfter = keep
	b.mustRelease(c, nil)
	kept("release")
	c = b.eventClaim("holder", "e1")
	b.mustAcquire(c)
	c.DeleteAfter = keep
	b.mustRelease(c, completes(driver.Row{}, "e1", b.now.Add(time.Hour)))
	kept("complete")
	c = b.claim("given up")
	c.DeleteAfter = keep
	b.mustAbandon(c)
	kept("abandon")
	c = b.claim("holder")
	b.mustAcquire(c)
	c.DeleteAfter = keep
	b.mustAbandon(c)
	kept("abandon by the owner")
}

func releaseKeepsMemory(b *bench) { // F36
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	b.mustRelease(c, completes(row, "e1", b.now.Add(time.Hour)))
	failed := b.eventClaim("fails", "e2")
	b.mustAcquire(failed)
	b.mustRelease(failed, nil)
	b.mustRefuse(b.eventClaim("duplicate", "e1"))
	b.mustAcquire(b.eventClaim("retry", "e2"))
}

func staleOrder(b *bench) {
	c := b.claim("newer")
	c.Event, c.Order = "e5", "05"
	row := b.mustAcquire(c)
	m := completes(row, "e5", b.now.Add(time.Hour))
	m.HighestOrder = "05"
	b.mustRelease(c, m)
	older := b.claim("older")
	older.Event, older.Order = "e4", "04"
	if row := b.mustRefuse(older); !b.NoDetail && row.Judge(older) != driver.Stale {
		b.Errorf("verdict %v on %+v, want Stale", row.Judge(older), row)
	}
	same := b.claim("same order, another event")
	same.Event, same.Order = "e5b", "05"
	b.mustRefuse(same)
	unordered := b.claim("unordered")
	b.mustAcquire(unordered)
	b.mustRelease(unordered, nil)
	newest := b.claim("newest")
	newest.Event, newest.Order = "e05\x7f", "05\x7f"
	if row := b.mustAcquire(newest); row.Memory.HighestOrder != "05" {
		b.Errorf("highest order is %q, want 05", row.Memory.HighestOrder)
	}
}

// orderWithoutEvent: the order alone tells what was overtaken.
func orderWithoutEvent(b *bench) {
	ordered := func(holder, order string) *driver.Claim {
		c := b.claim(holder)
		c.Order = order
		return c
	}
	c := ordered("newer", "05")
	row := b.mustAcquire(c)
	m := row.Memory
	m.HighestOrder = "05"
	b.mustRelease(c, &m)
	for _, order := range []string{"04", "05"} {
		late := ordered("overtaken", order)
		if row := b.mustRefuse(late); !b.NoDetail && (row.Judge(late) != driver.Stale || row.Memory.HighestOrder != "05") {
			b.Errorf("verdict %v on %+v, want Stale", row.Judge(late), row)
		}
	}
	newest := ordered("newest", "06")
	b.mustAcquire(newest)
	b.mustRelease(newest, nil)
	b.mustRefuse(ordered("overtaken by what was completed", "05"))
	b.mustAcquire(ordered("not completed, so again", "06"))
}

func result(b *bench) { // F35
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	m := completes(row, "e1", b.now.Add(time.Hour))
	m.Result = driver.Result{Event: "e1", Body: []byte("\x00{\"n\":9007199254740993}\xff")}
	b.mustRelease(c, m)
	if row := b.mustRefuse(b.eventClaim("duplicate", "e1")); !b.NoDetail && (row.Memory.Result.Event != "e1" || string(row.Memory.Result.Body) != string(m.Result.Body)) {
		b.Errorf("recorded result is %+v", row.Memory.Result)
	}
}

func strangeNames(b *bench) { // F27, F28
	base := b.name
	fill := strings.Repeat("é", (2048-len(base)-1)/2)
	for _, name := range []string{
		base, base + " ", base + "\x00", base + "\n", base + "/", base + "//", base + "'\"`", base + "%2F", base + "+", base + "\u00e9", base + "e\u0301",
		base + "日本語 🔒", base + "\u2028", base + fill, base + fill[:len(fill)-2] + "e", base + "#done", base + ".", strings.ToUpper(base),
	} {
		b.name = name
		c := b.claim("holder of " + name[:min(len(name), 60)])
		b.mustAcquire(c)
		b.mustRefuse(b.claim("contender"))
	}
}

func strangeEvents(b *bench) {
	for _, event := range []string{"a.b", "a b", "a\"b'", "#e", ":e", "done", "a[0]", "日本語", "\u0001", strings.Repeat("x", 50)} {
		c := b.eventClaim("holder", event)
		row := b.mustAcquire(c)
		row = b.mustRelease(c, completes(row, event, b.now.Add(time.Hour)))
		if len(row.Memory.Completed) == 0 {
			b.Errorf("event %q was not recorded: %+v", event, row)
		}
		b.mustRefuse(b.eventClaim("duplicate", event))
	}
}

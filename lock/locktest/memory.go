package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

func completedEvent(b *bench) { // F6
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	until := b.now.Add(time.Minute).Truncate(time.Millisecond)
	b.mustRelease(c, completes(row, "e1", until))

	row = b.mustRefuse(b.eventClaim("duplicate", "e1"))
	if !b.h.NoDetail && !slices.ContainsFunc(row.Memory.Done, func(d lock.Completed) bool { return d.Event == "e1" && d.Until.Equal(until) }) {
		b.Errorf("refusing row does not remember the event: %+v", row)
	}
	other := b.eventClaim("another event", "e2")
	b.mustAcquire(other)
	row = b.mustRefuse(b.eventClaim("duplicate while another holds", "e1"))
	if c := b.eventClaim("", "e1"); !b.h.NoDetail && row.Judge(c) != lock.Done {
		b.Errorf("verdict %v, want Done although another event holds the name", row.Judge(c))
	}
	b.mustRelease(other, nil)

	b.advance(time.Minute + 2*time.Second)
	b.mustAcquire(b.eventClaim("after it was forgotten", "e1"))
}

func remembersEight(b *bench) {
	for i := range 12 {
		c := b.eventClaim("holder", fmt.Sprintf("%050d", i))
		row := b.mustAcquire(c)
		b.mustRelease(c, completes(row, c.Event, b.now.Add(time.Hour+time.Duration(i)*time.Second)))
	}
	for i := 4; i < 12; i++ {
		b.mustRefuse(b.eventClaim("duplicate", fmt.Sprintf("%050d", i)))
	}
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
	m.Top = "05"
	b.mustRelease(c, m)
	older := b.claim("older")
	older.Event, older.Order = "e4", "04"
	if row := b.mustRefuse(older); !b.h.NoDetail && row.Judge(older) != lock.Stale {
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
	if row := b.mustAcquire(newest); row.Memory.Top != "05" {
		b.Errorf("highest order is %q, want 05", row.Memory.Top)
	}
}

func result(b *bench) { // F35
	c := b.eventClaim("first", "e1")
	row := b.mustAcquire(c)
	m := completes(row, "e1", b.now.Add(time.Hour))
	m.Result = lock.Result{Event: "e1", Body: []byte("\x00{\"n\":9007199254740993}\xff")}
	b.mustRelease(c, m)
	if row := b.mustRefuse(b.eventClaim("duplicate", "e1")); !b.h.NoDetail && (row.Memory.Result.Event != "e1" || string(row.Memory.Result.Body) != string(m.Result.Body)) {
		b.Errorf("recorded result is %+v", row.Memory.Result)
	}

	large := b.eventClaim("large", "e2")
	row = b.mustAcquire(large)
	m = completes(row, "e2", b.now.Add(time.Hour))
	m.Result = lock.Result{Event: "e2", Body: []byte(strings.Repeat("x", 6<<20))}
	kept := b.mustRelease(large, m).Memory.Result
	if kept.Event != "" && len(kept.Body) != 6<<20 {
		b.Errorf("a large result was cut to %d bytes", len(kept.Body))
	}
	b.mustRefuse(b.eventClaim("duplicate", "e2"))
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
		if len(row.Memory.Done) == 0 {
			b.Errorf("event %q was not recorded: %+v", event, row)
		}
		b.mustRefuse(b.eventClaim("duplicate", event))
	}
}

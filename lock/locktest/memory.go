package locktest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

func completedEvent(f *fixture) { // F6
	c := f.eventClaim("first", "e1")
	row := f.mustAcquire(c)
	until := f.now.Add(time.Minute).Truncate(time.Millisecond)
	f.mustRelease(c, completing(row, "e1", until))

	row = f.mustRefuse(f.eventClaim("duplicate", "e1"))
	if !f.NoDetail && !slices.ContainsFunc(row.Memory.Completed, func(d driver.CompletedEvent) bool { return d.Event == "e1" && d.Until.Equal(until) }) {
		f.Errorf("the refusing row does not remember the event: %+v", row)
	}
	other := f.eventClaim("another event", "e2")
	f.mustAcquire(other)
	row = f.mustRefuse(f.eventClaim("duplicate while another holds", "e1"))
	if c := f.eventClaim("", "e1"); !f.NoDetail && row.Judge(c) != driver.Completed {
		f.Errorf("verdict %v, want Completed although another event holds the name", row.Judge(c))
	}
	f.mustRelease(other, nil)

	last := f.eventClaim("duplicate in the last millisecond", "e1")
	last.Now = until.Add(999 * time.Microsecond)
	last.Stamp, last.Until = last.Now, last.Now.Add(lease)
	f.mustRefuse(last)
	f.advance(time.Minute + 2*time.Second)
	f.mustAcquire(f.eventClaim("after it was forgotten", "e1"))
}

// Package lock decides what a name remembers, and in which order. That order is
// not the order in which the events expire.
func memoryIsStoredUnchanged(f *fixture) { // F46, F47
	var want []driver.CompletedEvent
	for i := range 40 {
		e := fmt.Sprintf("%050d", (i*17)%40)
		completed := driver.CompletedEvent{Event: e, Until: f.now.Add(time.Hour - time.Duration(i%7)*time.Minute).Truncate(time.Millisecond)}
		if i%3 > 0 { // of the others it is not known
			completed.At = f.now.Add(-time.Duration(i) * 10 * 24 * time.Hour).Truncate(time.Second) // up to a year ago
		}
		want = append(want, completed)
	}
	c := f.eventClaim("holder", want[39].Event)
	f.mustAcquire(c)
	f.mustRelease(c, &driver.Memory{Completed: want, HighestOrder: "t"})
	for _, e := range want {
		f.mustRefuse(f.eventClaim("duplicate", e.Event))
	}
	for _, got := range []driver.Row{f.mustAcquire(f.eventClaim("next", "another")), f.mustRefuse(f.eventClaim("duplicate", want[0].Event))} {
		if got.Token == "" && f.NoDetail {
			continue
		}
		same := slices.EqualFunc(got.Memory.Completed, want, func(a, b driver.CompletedEvent) bool {
			return a.Event == b.Event && a.Until.Equal(b.Until) && a.At.Equal(b.At)
		})
		if !same || got.Memory.HighestOrder != "t" {
			f.Errorf("the memory is %+v, want %+v", got.Memory, want)
		}
	}
}

// A memory may lose events as well: a tool makes an event run again.
func memoryCanShrink(f *fixture) {
	c := f.eventClaim("first", "e1")
	m := completing(f.mustAcquire(c), "e1", f.now.Add(time.Hour))
	m.Completed[0].Payload, m.HighestOrder = "cXV4", "05"
	m.Result = driver.Result{Event: "e1", Body: []byte("result")}
	f.mustRelease(c, m)

	tool := f.claim("tool")
	f.mustAcquire(tool)
	f.mustRelease(tool, &driver.Memory{})
	again := f.eventClaim("again", "e1")
	again.Order = "05"
	row := f.mustAcquire(again)
	if got := row.Memory; len(got.Completed) != 0 || got.HighestOrder != "" || got.Result.Event != "" || len(got.Result.Body) != 0 {
		f.Errorf("the memory is %+v, want an empty one", got)
	}
}

// Each request that is applied sets the row's DeleteAfter.
func deleteAfterEveryStep(f *fixture) { // F47
	keep := f.now.Add(24 * time.Hour).Truncate(time.Second).Add(500 * time.Millisecond) // a store of whole seconds rounds up
	wantKept := func(step string) {
		f.Helper()
		reader := f.claim("reader")
		reader.Stamp = reader.Stamp.Add(-time.Hour) // every row refuses it
		row := f.mustRefuse(reader)
		if got := row.DeleteAfter; !f.NoDetail && (got.Before(keep) || got.After(keep.Add(time.Second))) {
			f.Errorf("DeleteAfter is %[2]v after %[1]s, want %[3]v", step, got, keep)
		}
		keep = keep.Add(time.Hour)
	}
	c := f.claim("holder")
	c.DeleteAfter = keep
	f.mustAcquire(c)
	wantKept("acquire")
	c.DeleteAfter = keep
	if _, ok := f.renew(c, c.Until.Add(time.Second)); !ok {
		f.Fatal("renewal refused")
	}
	wantKept("renew")
	c.DeleteAfter = keep
	f.mustRelease(c, nil)
	wantKept("release")
	c = f.eventClaim("holder", "e1")
	f.mustAcquire(c)
	c.DeleteAfter = keep
	f.mustRelease(c, completing(driver.Row{}, "e1", f.now.Add(time.Hour)))
	wantKept("complete")
	c = f.claim("given up")
	c.DeleteAfter = keep
	f.mustAbandon(c)
	wantKept("abandon")
	c = f.claim("holder")
	f.mustAcquire(c)
	c.DeleteAfter = keep
	f.mustAbandon(c)
	wantKept("abandon by the owner")
}

func releaseKeepsMemory(f *fixture) { // F36
	c := f.eventClaim("first", "e1")
	row := f.mustAcquire(c)
	f.mustRelease(c, completing(row, "e1", f.now.Add(time.Hour)))
	failed := f.eventClaim("fails", "e2")
	f.mustAcquire(failed)
	f.mustRelease(failed, nil)
	f.mustRefuse(f.eventClaim("duplicate", "e1"))
	f.mustAcquire(f.eventClaim("retry", "e2"))
}

// The row that refuses a duplicate tells the payload of the first delivery,
// while its event is held and after it was completed. A new owner without a
// payload does not inherit the dead holder's.
func payload(f *fixture) {
	wantPayload := func(row driver.Row, held, completed string) {
		f.Helper()
		got := ""
		for _, c := range row.Memory.Completed {
			if c.Event == "e1" {
				got = c.Payload
			}
		}
		if !f.NoDetail && (row.Payload != held || got != completed) {
			f.Errorf("the row has the payloads %q and %q, want %q while held and %q of the completed event: %+v", row.Payload, got, held, completed, row)
		}
	}
	c := f.eventClaim("first", "e1")
	c.Payload = "Zm9vYmFyYmF6cXV4MTIzNA"
	wantPayload(f.mustAcquire(c), c.Payload, "")
	wantPayload(f.mustRefuse(f.eventClaim("duplicate", "e1")), c.Payload, "")
	m := completing(driver.Row{}, "e1", f.now.Add(time.Hour))
	m.Completed[0].Payload = c.Payload
	m.Completed = append(m.Completed, driver.CompletedEvent{Event: "e0", Until: f.now.Add(time.Hour).Truncate(time.Millisecond)})
	f.mustRelease(c, m)
	wantPayload(f.mustRefuse(f.eventClaim("duplicate", "e1")), "", c.Payload)

	dead := f.eventClaim("dead", "e2")
	dead.Payload = "cXV4"
	wantPayload(f.mustAcquire(dead), dead.Payload, c.Payload)
	f.advance(lease + time.Second)
	wantPayload(f.mustAcquire(f.eventClaim("no payload", "e2")), "", c.Payload)
	wantPayload(f.mustRefuse(f.eventClaim("duplicate", "e2")), "", c.Payload)
	f.advance(lease + time.Second)
	dead.Now, dead.Stamp, dead.Until, dead.Token = f.now, f.now, f.now.Add(lease), "another"
	f.mustAcquire(dead)
	f.advance(lease + time.Second)
	mutex := f.claim("mutex")
	wantPayload(f.mustAcquire(mutex), "", c.Payload)
	f.mustRelease(mutex, &driver.Memory{Completed: m.Completed[1:]})
	wantPayload(f.mustAcquire(f.claim("next")), "", "")
}

func staleOrder(f *fixture) {
	c := f.claim("newer")
	c.Event, c.Order = "e5", "05"
	row := f.mustAcquire(c)
	m := completing(row, "e5", f.now.Add(time.Hour))
	m.HighestOrder = "05"
	f.mustRelease(c, m)
	older := f.claim("older")
	older.Event, older.Order = "e4", "04"
	if row := f.mustRefuse(older); !f.NoDetail && row.Judge(older) != driver.Stale {
		f.Errorf("verdict %v on %+v, want Stale", row.Judge(older), row)
	}
	same := f.claim("same order, another event")
	same.Event, same.Order = "e5b", "05"
	f.mustRefuse(same)
	unordered := f.claim("unordered")
	f.mustAcquire(unordered)
	f.mustRelease(unordered, nil)
	newest := f.claim("newest")
	newest.Event, newest.Order = "e05\x7f", "05\x7f"
	if row := f.mustAcquire(newest); row.Memory.HighestOrder != "05" {
		f.Errorf("highest order is %q, want 05", row.Memory.HighestOrder)
	}
}

// The order alone tells which events are stale.
func orderWithoutEvent(f *fixture) {
	ordered := func(f *fixture, holder, order string) *driver.Claim {
		c := f.claim(holder)
		c.Order = order
		return c
	}
	c := ordered(f, "newer", "05")
	row := f.mustAcquire(c)
	m := row.Memory
	m.HighestOrder = "05"
	f.mustRelease(c, &m)
	for _, order := range []string{"04", "05"} {
		f.run("order "+order, func(f *fixture) {
			stale := ordered(f, "stale", order)
			if row := f.mustRefuse(stale); !f.NoDetail && (row.Judge(stale) != driver.Stale || row.Memory.HighestOrder != "05") {
				f.Errorf("verdict %v on %+v, want Stale", row.Judge(stale), row)
			}
		})
	}
	newest := ordered(f, "newest", "06")
	f.mustAcquire(newest)
	f.mustRelease(newest, nil)
	f.mustRefuse(ordered(f, "still stale", "05"))
	f.mustAcquire(ordered(f, "newest, again", "06"))
}

// Package lock keeps results of up to 350 KB.
func result(f *fixture) { // F35
	for event, body := range map[string][]byte{"bytes": []byte("\x00{\"n\":9007199254740993}\xff"), "largest": bytes.Repeat([]byte("\xff"), 350<<10)} {
		f.run(event, func(f *fixture) {
			c := f.eventClaim("first", event)
			m := completing(f.mustAcquire(c), event, f.now.Add(time.Hour))
			m.Result = driver.Result{Event: event, Body: body}
			f.mustRelease(c, m)
			got := f.mustRefuse(f.eventClaim("duplicate", event)).Memory.Result
			if !f.NoDetail && (got.Event != event || !bytes.Equal(got.Body, body)) {
				f.Errorf("the stored result is %.50q of event %q, %d bytes", got.Body, got.Event, len(got.Body))
			}
		})
	}
}

// A row keeps the result of an older event until another one has a result.
func resultOfOlderEvent(f *fixture) { // F35
	c := f.eventClaim("with a result", "e1")
	m := completing(f.mustAcquire(c), "e1", f.now.Add(time.Hour))
	m.Result = driver.Result{Event: "e1", Body: []byte("result")}
	f.mustRelease(c, m)
	c = f.eventClaim("without", "e2")
	f.mustRelease(c, completing(f.mustAcquire(c), "e2", f.now.Add(time.Hour)))
	if got := f.mustAcquire(f.claim("next")).Memory.Result; got.Event != "e1" || string(got.Body) != "result" {
		f.Errorf("the result is %q of event %q, want that of e1", got.Body, got.Event)
	}
}

// All names are held at the same time, so that two that collide are noticed.
func strangeNames(f *fixture) { // F27, F28
	base := f.name
	fill := strings.Repeat("é", (2048-len(base)-1)/2)
	for _, c := range []struct{ what, name string }{
		{"plain", base},
		{"upper case", strings.ToUpper(base)},
		{"space at the end", base + " "},
		{"zero byte", base + "\x00"},
		{"line feed", base + "\n"},
		{"slash", base + "/"},
		{"two slashes", base + "//"},
		{"quotes", base + "'\"`"},
		{"escaped slash", base + "%2F"},
		{"plus", base + "+"},
		{"dot", base + "."},
		{"number sign", base + "#completed"},
		{"composed", base + "\u00e9"},
		{"decomposed", base + "e\u0301"},
		{"Japanese and an emoji", base + "日本語 🔒"},
		{"line separator", base + "\u2028"},
		{"longest", base + fill},
		{"longest, another end", base + fill[:len(fill)-2] + "e"},
	} {
		f.run(c.what, func(f *fixture) {
			f.name = c.name
			f.mustAcquire(f.claim("holder"))
			f.mustRefuse(f.claim("contender"))
		})
	}
}

func strangeEvents(f *fixture) {
	for _, event := range []string{"a.b", "a b", "ab", "b", "a\"b'", "#e", ":e", "completed", "a[0]", "日本語", "\u0001", strings.Repeat("x", 50)} {
		f.run(fmt.Sprintf("%q", event), func(f *fixture) {
			c := f.eventClaim("holder", event)
			row := f.mustAcquire(c)
			row = f.mustRelease(c, completing(row, event, f.now.Add(time.Hour)))
			if len(row.Memory.Completed) == 0 {
				f.Errorf("the event is not completed: %+v", row)
			}
			f.mustRefuse(f.eventClaim("duplicate", event))
		})
	}
}

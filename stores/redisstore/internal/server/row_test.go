package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestCompletedLines shows that the lines of events come back as they were,
// also of events that look like a time of completion; and that what such a time
// adds is a line of its own, without which the rest is as older versions write
// it.
func TestCompletedLines(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 21, 12, 0, 0, 526e6, time.UTC)
	at := until.Truncate(time.Second).Add(-time.Hour)
	events := []driver.CompletedEvent{
		{Event: "%", Until: until, At: at},
		{Event: "% 2026-11-21T11:00:00Z", Payload: "p q", Until: until},
		{Event: "e\n%", Until: until},
		{Event: "2026-11-21T11:00:00Z", Payload: "p", Until: until, At: at},
		{Event: "e", Payload: "%", Until: until, At: at.Add(time.Second)},
	}
	lines := completedLines(events)
	if got := parseCompleted(lines); !slices.Equal(got, events) {
		t.Errorf("%q\nis %+v\nwant %+v", lines, got, events)
	}
	older := ""
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, atLine) {
			older += line
		}
	}
	for i := range events {
		events[i].At = time.Time{}
	}
	if want := completedLines(events); older != want || !slices.Equal(parseCompleted(older), events) {
		t.Errorf("without the times it is\n%s\nwant\n%s", older, want)
	}
	if got := parseCompleted(atLine + "2026-11-21T11:00:00Z\n" + older); !slices.Equal(got, events) {
		t.Errorf("after a time of no event: %+v", got)
	}
}

// TestUnpack reads what the function packed of scripts/row.lua makes of any
// bytes, and refuses what it does not make.
func TestUnpack(t *testing.T) {
	t.Parallel()
	fields, ok := unpack("5:fence2:175:event0:9:completed4:1:2\n")
	if want := map[string]string{"fence": "17", "event": "", "completed": "1:2\n"}; !ok || !maps.Equal(fields, want) {
		t.Errorf("%v, %v, want %v", fields, ok, want)
	}
	for _, row := range []string{"5", "5:", "5:fence", "5:fence3:17", "-1:", ":", "x:fence", "5:fence2:17x"} {
		if fields, ok := unpack(row); ok {
			t.Errorf("%q is %v", row, fields)
		}
	}
}

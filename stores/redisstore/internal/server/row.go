package server

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// keyPrefix stands before the name in every key.
const keyPrefix = "lambdalock:"

// The layouts have a fixed width, so that their texts sort like the times that
// they mean.
const (
	layout      = "2006-01-02T15:04:05.000000Z"
	milliLayout = "2006-01-02T15:04:05.000Z"
)

// Timestamp returns a time as a row has it.
func Timestamp(t time.Time) string { return t.UTC().Format(layout) }

// ParseTimestamp returns the time of a field, or the zero time if it has none.
func ParseTimestamp(field string) time.Time {
	t, _ := time.Parse(layout, field)
	return t
}

// moment returns the time to which completed events are compared.
func moment(t time.Time) string { return t.UTC().Format(milliLayout) }

// lease returns microseconds. The scripts count in numbers that are exact up to
// 2^53, about 285 years.
func lease(d time.Duration) int64 {
	const longest = 100 * 365 * 24 * time.Hour
	return min(max(d, -longest), longest).Microseconds()
}

// keep returns for how many milliseconds the server must keep a row. It is at
// least an hour, so that a clock that is wrong does not delete a row
// immediately.
func keep(d time.Duration) int64 { return max(lease(d), lease(time.Hour)) / 1000 }

// view is who asks, and when by their clock.
type view struct {
	token string
	now   time.Time
}

// parse returns the row as v sees it: while the caller's own lease lasts, its
// end is that of the caller's last request; any other end is now plus the time
// left on the server.
func parse(r *reply, v view) (driver.Row, error) {
	if len(r.fields) == 0 {
		return driver.Row{}, nil
	}
	if _, ok := r.fields["rowFormat"]; ok {
		return driver.Row{Newer: true}, nil
	}
	row := driver.Row{
		Token: r.fields["ownerToken"], Event: r.fields["event"], Payload: r.fields["payload"], Holder: r.fields["holder"],
		Cooldown: r.fields["cooldown"],
		Memory: driver.Memory{
			Completed: parseCompleted(r.fields["completed"]), HighestOrder: r.fields["highestOrder"],
			Result: driver.Result{Event: r.fields["resultEvent"]},
		},
	}
	if row.Memory.Result.Event != "" {
		row.Memory.Result.Body = []byte(r.fields["resultBody"])
	}
	var err error
	if row.Stamp, err = time.Parse(layout, r.fields["stamp"]); err != nil {
		return driver.Row{}, fmt.Errorf("the row has no readable field stamp: is the key used by something else?")
	}
	if row.Until, err = until(r, v); err != nil {
		return driver.Row{}, err
	}
	if fence := r.fields["fence"]; fence != "" { // a claim may be given up before there is a fence
		if row.Fence, err = strconv.ParseInt(fence, 10, 64); err != nil {
			return driver.Row{}, fmt.Errorf("the row has a fence that is not a 64-bit number")
		}
	}
	if marks := r.fields["marks"]; marks != "" {
		if row.Marks, err = strconv.ParseInt(marks, 10, 64); err != nil {
			return driver.Row{}, fmt.Errorf("the row has marks that are not a 64-bit number")
		}
	}
	row.TakesMarks = r.fields["takesMarks"] != ""
	row.InterruptedFor = time.Duration(number(r.fields["interruptedFor"])) * time.Millisecond
	if r.fields["interruptedFor"] != "" && row.InterruptedFor <= 0 {
		return driver.Row{}, errors.New("the row has an interruptedFor that is not a number of milliseconds")
	}
	if row.Memory.Interrupted, err = parseInterrupted(r.fields["interrupted"]); err != nil {
		return driver.Row{}, err
	}
	if r.tookOver != "" {
		row.Previous, _ = takenFrom(r.fields)
	}
	row.DeleteAfter = ParseTimestamp(r.fields["deleteAfter"])
	row.Line, row.Served = number(r.fields["line"]), number(r.fields["served"]) // these only pace waiters
	return row, nil
}

// number returns the number of a field, or zero if it has none. Most rows do
// not have those fields, and each error of ParseInt is allocated.
func number(field string) int64 {
	if field == "" {
		return 0
	}
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// until returns the end of the lease, or the zero time if the row has no
// holder.
func until(r *reply, v view) (time.Time, error) {
	owner := r.fields["ownerToken"]
	if owner == "" {
		return time.Time{}, nil
	}
	own, err := time.Parse(layout, r.fields["heldUntil"])
	if err != nil {
		return own, fmt.Errorf("the row is held, but has no readable field heldUntil: is the key used by something else?")
	}
	end, err := strconv.ParseInt(r.fields["leaseEnd"], 10, 64)
	if err != nil {
		return own, fmt.Errorf("the row is held, but has no readable field leaseEnd: is the key used by something else?")
	}
	if owner == v.token && r.now <= end {
		return own, nil
	}
	left := min(max(end-r.now, math.MinInt64/1000), math.MaxInt64/1000)
	return v.now.Add(time.Duration(left) * time.Microsecond), nil
}

// MemoryFields returns the fields and values of a memory. A field without a
// value is removed from the row.
func MemoryFields(m *driver.Memory) []any {
	body := ""
	if m.Result.Event != "" {
		body = string(m.Result.Body)
	}
	return []any{
		"completed", completedLines(m.Completed), "highestOrder", m.HighestOrder,
		"resultEvent", m.Result.Event, "resultBody", body, "interrupted", interruptedLines(m.Interrupted),
	}
}

// escape makes sure that an event has no space and no line feed.
var escape = strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0A").Replace

// atLine begins the line that says when the event before it was completed.
const atLine = "% "

// completedLines returns one line for each event: the event, when it is
// forgotten, and the digest of its payload if there is one. If it is known when
// it was completed, another line says so, which older versions skip: no event
// begins like that.
func completedLines(events []driver.CompletedEvent) string {
	var b strings.Builder
	for _, c := range events {
		b.WriteString(escape(c.Event) + " " + moment(c.Until))
		if c.Payload != "" {
			b.WriteString(" " + escape(c.Payload))
		}
		b.WriteByte('\n')
		if !c.At.IsZero() {
			b.WriteString(atLine + c.At.UTC().Format(time.RFC3339) + "\n")
		}
	}
	return b.String()
}

// parseCompleted skips lines that it cannot read.
func parseCompleted(lines string) []driver.CompletedEvent {
	var events []driver.CompletedEvent
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if at, ok := strings.CutPrefix(line, atLine); ok {
			if n := len(events); n > 0 {
				events[n-1].At, _ = time.Parse(time.RFC3339, at) // it only tells people
			}
			continue
		}
		event, rest, _ := strings.Cut(line, " ")
		at, payload, _ := strings.Cut(rest, " ")
		until, err := time.Parse(milliLayout, at)
		if err != nil {
			continue
		}
		events = append(events, driver.CompletedEvent{Event: unescape(event), Payload: unescape(payload), Until: until})
	}
	return events
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// interruptedLines returns one line for each event: the event, when it is
// forgotten, when its run began, the digest of its payload and the holder, of
// which the last two may be empty.
func interruptedLines(events []driver.InterruptedEvent) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s %s %s %s\n", escape(e.Event), moment(e.Until), Timestamp(e.Since), escape(e.Payload), escape(e.Holder))
	}
	return b.String()
}

var errInterrupted = errors.New("the row has interrupted events that cannot be read")

// parseInterrupted skips no line that it cannot read, because that event would
// run again.
func parseInterrupted(lines string) ([]driver.InterruptedEvent, error) {
	var events []driver.InterruptedEvent
	for line := range strings.Lines(lines) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(parts) != 5 {
			return nil, errInterrupted
		}
		until, err := time.Parse(milliLayout, parts[1])
		if err != nil {
			return nil, errInterrupted
		}
		events = append(events, driver.InterruptedEvent{
			Event: unescape(parts[0]), Until: until, Since: ParseTimestamp(parts[2]), Payload: unescape(parts[3]), Holder: unescape(parts[4]),
		})
	}
	return events, nil
}

// takenFrom returns the run of the dead owner from whom the last claim took
// over, or another that was given up, and the stamp of the owner's claim. They
// are zero if there was none, or if that cannot be read, as it only tells
// people.
func takenFrom(fields map[string]string) (run driver.InterruptedEvent, claimStamp string) {
	packed := fields["takenFrom"]
	if packed == "" { // as nearly always
		return run, ""
	}
	var since string
	for _, to := range []*string{&run.Holder, &run.Event, &run.Payload, &since, &claimStamp} {
		var ok bool
		if *to, packed, ok = cutText(packed); !ok {
			return driver.InterruptedEvent{}, ""
		}
	}
	run.Since = ParseTimestamp(since)
	return run, claimStamp
}

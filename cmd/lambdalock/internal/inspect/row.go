package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// State says whether a name is held.
type State string

// The states of a row.
const (
	Held    State = "held"
	Expired State = "expired" // the holder died or lost its lease, and the name was not acquired since
	Free    State = "free"
	Newer   State = "newer" // written by a newer version of this library, in a format that this one cannot read
)

// Row is a row as the commands print it. docs/START.md documents the
// fields of its JSON, which scripts rely on.
type Row struct {
	Name         string        `json:"name"`          // as it is stored
	Namespace    string        `json:"namespace"`     //
	Key          string        `json:"key,omitempty"` // as the key function gives it; empty if the row has only its hash
	Digest       string        `json:"digest"`        // of the key, as logs have it
	Slot         int           `json:"slot"`          // of a limited lock; 1 for any other
	State        State         `json:"state"`         //
	Holder       string        `json:"holder,omitempty"`
	Since        time.Time     `json:"since,omitzero"`
	Until        time.Time     `json:"until,omitzero"`
	Event        string        `json:"event,omitempty"`
	Payload      string        `json:"payload,omitempty"`
	Marks        int64         `json:"marks,omitempty"` // of events that were coalesced, for which the holder runs once more; -1: it takes no more
	Fence        int64         `json:"fence,omitempty"`
	Completed    []Completed   `json:"completed,omitempty"`
	Interrupted  []Interrupted `json:"interrupted,omitempty"`
	HighestOrder string        `json:"highestOrder,omitempty"`
	Result       *Result       `json:"result,omitempty"`
	DeleteAfter  time.Time     `json:"deleteAfter,omitzero"`
	Slots        []Row         `json:"slots,omitempty"` // the other slots of a limited lock
}

// Completed is an event that the row remembers.
type Completed struct {
	Event   string    `json:"event"`
	Payload string    `json:"payload,omitempty"`
	At      time.Time `json:"at,omitzero"` // when it was completed, if the row tells
	Until   time.Time `json:"until"`
	Expired bool      `json:"expired"`
}

// Text says which event was completed, when if the row tells, and until when
// it is remembered.
func (c *Completed) Text(now time.Time) string {
	at, until := "", "remembered until "
	if !c.At.IsZero() {
		at = "at " + Moment(c.At, now) + ", "
	}
	if c.Expired {
		until = "forgotten since "
	}
	return Safe(c.Event) + "  " + at + until + Moment(c.Until, now)
}

// Interrupted is an event of which a run began and nothing is known of its end.
type Interrupted struct {
	Event   string    `json:"event"`
	Payload string    `json:"payload,omitempty"`
	Holder  string    `json:"holder"` // of that run
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"` // when it is forgotten
}

// Result says that the result of an event is kept for replay.
type Result struct {
	Event string `json:"event"`
	Bytes int    `json:"bytes"`
}

// Describe returns the row as it is at now.
func Describe(name string, row *driver.Row, now time.Time) Row {
	p := split(name)
	r := Row{Name: name, Namespace: p.namespace(), Digest: p.digest(), Slot: p.slot, State: StateOf(row, now)}
	if p.hash() == nil {
		r.Key = p.name
	}
	if row.Newer {
		return r
	}
	r.Fence, r.HighestOrder, r.DeleteAfter = row.Fence, row.Memory.HighestOrder, inYears(row.DeleteAfter)
	if r.State == Held || r.State == Expired {
		r.Holder, r.Event, r.Payload, r.Marks = holder(row), row.Event, row.Payload, row.Marks
		r.Since, r.Until = inYears(row.Since()), inYears(row.Until)
	}
	for _, c := range row.Memory.Completed {
		r.Completed = append(r.Completed, Completed{Event: c.Event, Payload: c.Payload, At: inYears(c.At), Until: inYears(c.Until), Expired: c.Expired(now)})
	}
	for _, e := range MemoryAt(row, now).Interrupted {
		r.Interrupted = append(r.Interrupted, Interrupted{Event: e.Event, Payload: e.Payload, Holder: e.Holder, Since: inYears(e.Since), Until: inYears(e.Until)})
	}
	if e := row.Memory.Result.Event; e != "" {
		r.Result = &Result{Event: e, Bytes: len(row.Memory.Result.Body)}
	}
	return r
}

// inYears returns a time in UTC, and the last one that JSON has in place of one
// that it lacks: rows may hold any, and one of them must not hide the others.
func inYears(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// MemoryAt returns what a claim at now would find in the row: if its holder is
// dead and asked for that, its event is interrupted, too.
func MemoryAt(row *driver.Row, now time.Time) driver.Memory {
	next := *row
	if StateOf(row, now) == Expired {
		next.Take(&driver.Claim{Token: "reader", Now: now}, now)
	}
	m := next.Memory
	m.Interrupted = slices.DeleteFunc(slices.Clone(m.Interrupted), func(e driver.InterruptedEvent) bool { return e.Until.Before(now) })
	return m
}

// StateOf returns the state of a row at now.
func StateOf(row *driver.Row, now time.Time) State {
	switch {
	case row.Newer:
		return Newer
	case row.Token == "", row.Cooling() && row.Until.Before(now):
		return Free
	case row.Until.Before(now):
		return Expired
	}
	return Held
}

// holder tells people who holds a row.
func holder(row *driver.Row) string {
	if row.Cooling() {
		return "nobody: its last holder's HoldAtLeast"
	}
	return row.Holder
}

// Text writes everything about the row.
func (r *Row) Text(w io.Writer, now time.Time) error {
	var text strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&text, "  %-14s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(&text, Safe(r.Name))
	line("digest", "%s", r.Digest)
	line("state", "%s", r.stateText())
	if r.State != Newer {
		r.details(line, now)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// details describes a row whose format is known.
func (r *Row) details(line func(label, format string, args ...any), now time.Time) {
	if r.State != Free {
		line("holder", "%s", Safe(r.Holder))
		line("since", "%s", Moment(r.Since, now))
		line("until", "%s", Moment(r.Until, now))
		if r.Event != "" {
			line("event", "%s", Safe(r.Event))
		}
		switch {
		case r.Marks < 0:
			line("coalesced", "the holder is in its last run, and others are refused")
		case r.Marks > 0:
			line("coalesced", "%d: they are served by a run of the holder, or of its event when that comes again", r.Marks)
		}
	}
	if r.Fence != 0 {
		line("fence", "%d", r.Fence)
	}
	for _, c := range r.Completed {
		line("completed", "%s", c.Text(now))
	}
	for _, e := range r.Interrupted {
		line("interrupted", "%s  since %s by %s, remembered until %s", Safe(e.Event), Moment(e.Since, now), Safe(e.Holder), Moment(e.Until, now))
	}
	if r.HighestOrder != "" {
		line("highest order", "%s", Safe(r.HighestOrder))
	}
	if r.Result != nil {
		line("result", "%d bytes kept for replay, of %s", r.Result.Bytes, Safe(r.Result.Event))
	}
	if !r.DeleteAfter.IsZero() {
		line("kept until", "%s", Moment(r.DeleteAfter, now))
	}
	for _, s := range r.Slots {
		line(fmt.Sprintf("slot %d", s.Slot), "%s", s.slotText(now))
	}
}

func (r *Row) stateText() string {
	switch r.State {
	case Held:
		return "held"
	case Expired:
		return "expired: the holder did not release it, and the next claim gets it"
	case Free:
		return "free"
	}
	return "newer: a newer version of lambdalock wrote this row, so use that version to read it"
}

func (r *Row) slotText(now time.Time) string {
	if r.State == Free || r.State == Newer {
		return string(r.State)
	}
	return fmt.Sprintf("%s by %s until %s", r.State, Safe(r.Holder), Moment(r.Until, now))
}

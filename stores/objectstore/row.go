package objectstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// record is the body of an object. The package documentation describes its
// fields.
type record struct {
	Name           string             `json:"name"`
	Fence          int64              `json:"fence"`
	FenceBefore    int64              `json:"fenceBefore,omitempty"`
	Stamp          time.Time          `json:"stamp"`
	OwnerToken     string             `json:"ownerToken,omitempty"`
	HeldUntil      time.Time          `json:"heldUntil,omitzero"`
	Lease          string             `json:"lease,omitempty"`
	LeasedAt       time.Time          `json:"leasedAt,omitzero"`
	Cooldown       string             `json:"cooldown,omitempty"`
	Holder         string             `json:"holder,omitempty"`
	Event          string             `json:"event,omitempty"`
	Payload        string             `json:"payload,omitempty"`
	Marks          int64              `json:"marks,omitempty"`
	TakesMarks     bool               `json:"takesMarks,omitempty"`
	InterruptedFor string             `json:"interruptedFor,omitempty"`
	Completed      []completedEvent   `json:"completed,omitempty"`
	HighestOrder   string             `json:"highestOrder,omitempty"`
	Interrupted    []interruptedEvent `json:"interrupted,omitempty"`
	ResultEvent    string             `json:"resultEvent,omitempty"`
	ResultBody     []byte             `json:"resultBody,omitzero"`
	DeleteAfter    time.Time          `json:"deleteAfter,omitzero"`
	Writes         int64              `json:"writes"`
	RowFormat      json.RawMessage    `json:"rowFormat,omitempty"`

	lease time.Duration // Lease, parsed
	keeps time.Duration // InterruptedFor, parsed
}

type completedEvent struct {
	Event   string    `json:"event"`
	Payload string    `json:"payload,omitempty"`
	Until   time.Time `json:"until"`
	At      time.Time `json:"at,omitzero"`
}

type interruptedEvent struct {
	Event   string    `json:"event"`
	Payload string    `json:"payload,omitempty"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// parse decodes the body of the object with the given key.
func parse(body []byte, key string) (record, error) {
	// A later format may change the types of other fields, but not of these.
	var format struct {
		Name      string
		RowFormat json.RawMessage
	}
	var r record
	err := json.Unmarshal(body, &format)
	if err == nil && format.RowFormat == nil {
		err = json.Unmarshal(body, &r)
	}
	switch {
	case err != nil:
		return record{}, fmt.Errorf("its content is not a lock: is the prefix used by something else? %w", err)
	case Key(format.Name) != key:
		return record{}, fmt.Errorf("its content is the lock of another name, %q", format.Name)
	case format.RowFormat != nil:
		return record{Name: format.Name, RowFormat: format.RowFormat}, nil
	case r.Stamp.IsZero():
		return record{}, errors.New("its content has no stamp: is the prefix used by something else?")
	case slices.ContainsFunc(r.Completed, func(e completedEvent) bool { return e.Until.IsZero() }): // it would run again
		return record{}, errors.New("a completed event has no readable time until which it is kept")
	case slices.ContainsFunc(r.Interrupted, func(e interruptedEvent) bool { return e.Until.IsZero() }): // likewise
		return record{}, errors.New("an interrupted event has no readable time until which it is kept")
	case r.OwnerToken == "":
		return r, nil
	}
	if r.lease, err = time.ParseDuration(r.Lease); err != nil {
		return record{}, fmt.Errorf("the lock is held, but has no readable lease: %w", err)
	}
	if r.InterruptedFor != "" {
		if r.keeps, err = time.ParseDuration(r.InterruptedFor); err != nil {
			return record{}, fmt.Errorf("the lock is held, but has no readable interruptedFor: %w", err)
		}
	}
	return r, nil
}

// body returns the record as JSON, one field per line.
func (r *record) body() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// sight is a row, with what is known about its object.
type sight struct {
	record
	version string // empty if there is no object
	// modified and now are by the service's clock. They and the body are set only
	// if the object was just read.
	modified, now time.Time
	body          []byte
	read          bool
}

// resolution is added to every lease, because the service's two times may be
// rounded down to whole seconds, which can make their difference almost one
// second too large. A difference of the lease plus one full second proves that
// the lease has ended; hence the microsecond.
const resolution = time.Second - time.Microsecond

// leasedAt returns when the current lease began.
func (s *sight) leasedAt() time.Time {
	if s.LeasedAt.IsZero() {
		return s.modified
	}
	return s.LeasedAt
}

// end returns when the lease ends, by a clock that reads now. The object must
// have been read.
func (s *sight) end(now time.Time) time.Time {
	return now.Add(s.leasedAt().Add(s.lease + resolution).Sub(s.now))
}

// ended reports whether the lease has ended. Of an object that was not read
// just now, only the owner's clock tells, and reading it decides.
func (s *sight) ended(now time.Time) bool {
	switch {
	case s.OwnerToken == "":
		return false
	case !s.read:
		return s.HeldUntil.Before(now)
	}
	return s.end(now).Before(now)
}

// row returns the row as seen by the owner of token, whose clock reads now.
func (s *sight) row(token string, now time.Time) driver.Row {
	if s.RowFormat != nil {
		return driver.Row{Newer: true}
	}
	row := driver.Row{
		Token: s.OwnerToken, Stamp: s.Stamp, Until: s.HeldUntil, Fence: s.Fence, Event: s.Event, Payload: s.Payload, Holder: s.Holder,
		Cooldown: s.Cooldown, Marks: s.Marks, TakesMarks: s.TakesMarks, InterruptedFor: s.keeps,
		Memory:      driver.Memory{HighestOrder: s.HighestOrder, Result: driver.Result{Event: s.ResultEvent, Body: s.ResultBody}},
		DeleteAfter: s.DeleteAfter,
	}
	for _, c := range s.Completed {
		row.Memory.Completed = append(row.Memory.Completed, driver.CompletedEvent(c))
	}
	for _, e := range s.Interrupted {
		row.Memory.Interrupted = append(row.Memory.Interrupted, driver.InterruptedEvent(e))
	}
	if row.Token != "" && row.Token != token {
		row.Until = s.end(now)
	}
	return row
}

// next returns the record that results from applying q to this row. It reports
// false if that requires reading the object first.
//
// The lease restarts only if its end moves by the owner's clock. Otherwise the
// record stores when it began, because the write changes the object's
// modification time. A lease never ends before the one that it replaces,
// whatever the owner's clock reads: a late renewal from a process that handed
// the lock over may arrive while another one works.
func (s *sight) next(row *driver.Row, q *request) (*record, bool) {
	r := &record{
		Name: q.name, Fence: row.Fence, FenceBefore: s.FenceBefore, Stamp: row.Stamp.UTC(), OwnerToken: row.Token, Holder: row.Holder, Event: row.Event, Payload: row.Payload,
		Cooldown: row.Cooldown, Marks: row.Marks, TakesMarks: row.TakesMarks,
		HighestOrder: row.Memory.HighestOrder, ResultEvent: row.Memory.Result.Event, ResultBody: row.Memory.Result.Body,
		DeleteAfter: row.DeleteAfter.UTC(), Writes: s.Writes + 1,
	}
	if row.Token != s.OwnerToken && row.Token != "" {
		r.FenceBefore = s.Fence
	}
	for _, c := range row.Memory.Completed {
		c.Until, c.At = c.Until.UTC(), c.At.UTC()
		r.Completed = append(r.Completed, completedEvent(c))
	}
	for _, e := range row.Memory.Interrupted {
		e.Since, e.Until = e.Since.UTC(), e.Until.UTC()
		r.Interrupted = append(r.Interrupted, interruptedEvent(e))
	}
	if row.InterruptedFor > 0 {
		r.InterruptedFor = row.InterruptedFor.String()
	}
	keeps := row.Token == s.OwnerToken && (row.Token != q.token || row.Until.Equal(s.HeldUntil))
	switch {
	case row.Token == "":
	case keeps:
		r.HeldUntil, r.Lease, r.LeasedAt = s.HeldUntil, s.Lease, s.leasedAt()
		return r, s.read
	default:
		lease := q.lease
		if row.Token == s.OwnerToken && s.lease > lease {
			if !s.read {
				return r, false
			}
			lease = max(lease, s.leasedAt().Add(s.lease).Sub(s.now))
		}
		r.HeldUntil, r.Lease = row.Until.UTC(), lease.String()
	}
	return r, true
}

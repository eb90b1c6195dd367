package objectstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// record is the body of an object. The table in the package documentation
// explains its fields.
type record struct {
	Name         string           `json:"name"`
	Fence        int64            `json:"fence"`
	FenceBefore  int64            `json:"fenceBefore,omitempty"`
	Stamp        time.Time        `json:"stamp"`
	OwnerToken   string           `json:"ownerToken,omitempty"`
	HeldUntil    time.Time        `json:"heldUntil,omitzero"`
	Lease        string           `json:"lease,omitempty"`
	LeasedAt     time.Time        `json:"leasedAt,omitzero"`
	Holder       string           `json:"holder,omitempty"`
	Event        string           `json:"event,omitempty"`
	Payload      string           `json:"payload,omitempty"`
	Completed    []completedEvent `json:"completed,omitempty"`
	HighestOrder string           `json:"highestOrder,omitempty"`
	ResultEvent  string           `json:"resultEvent,omitempty"`
	ResultBody   []byte           `json:"resultBody,omitzero"`
	DeleteAfter  time.Time        `json:"deleteAfter,omitzero"`
	Writes       int64            `json:"writes"`
	RowFormat    json.RawMessage  `json:"rowFormat,omitempty"`

	lease time.Duration // Lease, parsed
}

type completedEvent struct {
	Event   string    `json:"event"`
	Payload string    `json:"payload,omitempty"`
	Until   time.Time `json:"until"`
}

// parse reads the body of the object with that key.
func parse(body []byte, key string) (record, error) {
	// A later format may have other types, but keeps the name and its own number.
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
	case r.OwnerToken == "":
		return r, nil
	}
	if r.lease, err = time.ParseDuration(r.Lease); err != nil {
		return record{}, fmt.Errorf("the lock is held, but has no readable lease: %w", err)
	}
	return r, nil
}

// body returns the record as JSON, with a line for each field.
func (r *record) body() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// sight is a row and what is known of its object.
type sight struct {
	record
	version string // empty if there is no object
	// modified and now are by the service's clock. They and the body are known only
	// if the object was read just now.
	modified, now time.Time
	body          []byte
	read          bool
}

// resolution is how much later a lease ends than by the difference of the
// service's two times. They may be rounded down to whole seconds, so that their
// difference may be too large by almost one second. At a difference of one
// second more than the lease, the lease has ended; therefore the microsecond.
const resolution = time.Second - time.Microsecond

// leasedAt returns when the present lease began.
func (s *sight) leasedAt() time.Time {
	if s.LeasedAt.IsZero() {
		return s.modified
	}
	return s.LeasedAt
}

// row returns the row as the owner of token sees it, whose clock shows now.
func (s *sight) row(token string, now time.Time) driver.Row {
	if s.RowFormat != nil {
		return driver.Row{Newer: true}
	}
	row := driver.Row{
		Token: s.OwnerToken, Stamp: s.Stamp, Until: s.HeldUntil, Fence: s.Fence, Event: s.Event, Payload: s.Payload, Holder: s.Holder,
		Memory:      driver.Memory{HighestOrder: s.HighestOrder, Result: driver.Result{Event: s.ResultEvent, Body: s.ResultBody}},
		DeleteAfter: s.DeleteAfter,
	}
	for _, c := range s.Completed {
		row.Memory.Completed = append(row.Memory.Completed, driver.CompletedEvent(c))
	}
	if row.Token != "" && row.Token != token {
		row.Until = now.Add(s.leasedAt().Add(s.lease + resolution).Sub(s.now))
	}
	return row
}

// next returns the record of the row that q makes of this one. It reports false
// if that cannot be told without reading the object.
//
// The lease begins anew only if its end moves by the owner's clock. Otherwise
// the record keeps when it began, because the write changes the time at which
// the object was modified. A new lease never ends before the one that it
// replaces, whatever the owner's clock shows: a late renewal by a process that
// gave the lock up may arrive while another one works.
func (s *sight) next(row *driver.Row, q *request) (*record, bool) {
	r := &record{
		Name: q.name, Fence: row.Fence, FenceBefore: s.FenceBefore, Stamp: row.Stamp.UTC(), OwnerToken: row.Token, Holder: row.Holder, Event: row.Event, Payload: row.Payload,
		HighestOrder: row.Memory.HighestOrder, ResultEvent: row.Memory.Result.Event, ResultBody: row.Memory.Result.Body,
		DeleteAfter: row.DeleteAfter.UTC(), Writes: s.Writes + 1,
	}
	if row.Token != s.OwnerToken && row.Token != "" {
		r.FenceBefore = s.Fence
	}
	for _, c := range row.Memory.Completed {
		c.Until = c.Until.UTC()
		r.Completed = append(r.Completed, completedEvent(c))
	}
	keeps := row.Token != q.token || s.OwnerToken == q.token && row.Until.Equal(s.HeldUntil)
	switch {
	case row.Token == "":
	case keeps:
		r.HeldUntil, r.Lease, r.LeasedAt = s.HeldUntil, s.Lease, s.leasedAt()
		return r, s.read
	default:
		lease := q.lease
		if s.OwnerToken == q.token && s.lease > lease {
			if !s.read {
				return r, false
			}
			lease = max(lease, s.leasedAt().Add(s.lease).Sub(s.now))
		}
		r.HeldUntil, r.Lease = row.Until.UTC(), lease.String()
	}
	return r, true
}

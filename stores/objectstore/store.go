package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Store implements [driver.Store], [driver.Checker] and [driver.Inspector]. It
// is safe for concurrent use.
type Store struct {
	objects Objects
	cache   cache
	// known is whether the last claimed name outside the cache had an object. The
	// next one is probably alike.
	known atomic.Bool
}

// Callers look for these by their methods, and tests skip what is not there.
var (
	_ driver.Coalescer = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store that keeps its rows in o.
func New(o Objects) *Store { return &Store{objects: o} }

// String returns what errors call the store.
func (s *Store) String() string { return s.objects.String() }

// rounds is how often a request reads the row and tries to write it. It then
// reads once more, because the last write may have been applied after all.
const rounds = 4

// outcome is the effect of a request on the row that it found.
type outcome int

const (
	refused   outcome = iota
	unchanged         // already applied
	changed
)

// request is one step of the protocol.
type request struct {
	name, token string
	now         time.Time     // the caller's clock
	lease       time.Duration // of the owner, or of the cooldown, if the request sets its end
	claim       bool
	memory      *driver.Memory // the new memory, if a settlement replaces it
	apply       func(row *driver.Row, ended bool) outcome
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return s.do(ctx, &request{name: c.Name, token: c.Token, now: c.Now, lease: c.Until.Sub(c.Now), claim: true, apply: func(row *driver.Row, _ bool) outcome {
		if row.Judge(c) != driver.Granted {
			return refused
		}
		if row.OwnedBy(c.Token) && row.Stamp.Equal(c.Stamp) && row.Until.Equal(c.Until) {
			return unchanged
		}
		row.Take(c, c.Stamp) // the server's time is unknown before a read
		return changed
	}})
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return s.do(ctx, &request{name: r.Name, token: r.Token, now: r.Now, lease: r.Until.Sub(r.Now), apply: func(row *driver.Row, ended bool) outcome {
		before := *row
		switch {
		case !row.Extend(r, ended):
			return refused
		case r.Until.Equal(before.Until) && r.DeleteAfter.Equal(before.DeleteAfter):
			return unchanged
		}
		return changed
	}})
}

// Mark implements [driver.Coalescer].
func (s *Store) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return s.do(ctx, &request{name: m.Name, token: m.Token, now: clock.Wall(clock.From(ctx)), apply: func(row *driver.Row, _ bool) outcome {
		if !row.Mark(m) {
			return refused
		}
		return changed
	}})
}

// Settle implements [driver.Store].
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return s.do(ctx, &request{name: t.Name, token: t.Token, now: clock.Wall(clock.From(ctx)), lease: t.Until.Sub(t.Now), memory: t.Memory, apply: func(row *driver.Row, _ bool) outcome {
		if !row.Settle(t) {
			return refused
		}
		return changed
	}})
}

// do applies a request: it looks at the row and, if the request changes it,
// writes it on condition that it is unchanged. If it has changed, do starts
// over. Only a row that was just read may refuse a request, because a cached
// one may be out of date.
//
// A denied read does not tell whether the object exists, because a service may
// hide that from callers without permission to list. In that case do tries to
// create the object, and the condition decides.
//
// A refused write may have been applied after all: a proxy that gets no
// response sends it again, and passes on the refusal of the second copy. The
// object then has the bytes that were sent, which no other request writes,
// except one that abandons another claim with the same stamp, to the same
// effect. Or the next owner already has the name, and its memory has what was
// completed.
func (s *Store) do(ctx context.Context, q *request) (driver.Row, bool, error) {
	key := Key(q.name)
	seen, ok := s.guess(key, q)
	var row driver.Row
	var body []byte // what was sent last
	for round := range rounds + 1 {
		var unread error
		if !ok {
			if seen, unread = s.read(ctx, key, q); unread != nil && !denied(unread) {
				return driver.Row{}, false, unapplied(unread, body == nil || seen.read)
			}
			if body != nil && (bytes.Equal(body, seen.body) || q.completed(&seen, row.Fence)) {
				return row, true, nil
			}
		}
		ok = false
		row = seen.row(q.token, q.now)
		ended := seen.ended(q.now)
		outcome := q.apply(&row, ended)
		if outcome != changed && seen.read {
			if ended { // also by the owner's clock
				row.Until = seen.end(q.now)
			}
			return row, outcome == unchanged, nil
		}
		if unread != nil && (outcome != changed || round == rounds) {
			return driver.Row{}, false, unread
		}
		if round == rounds {
			break
		}
		next, complete := seen.next(&row, q)
		if outcome != changed || !complete {
			continue
		}
		first := body == nil
		var err error
		if body, err = s.write(ctx, key, seen.version, next); err == nil {
			return row, true, nil
		}
		if !errors.Is(err, ErrChanged) {
			if !first {
				err = unapplied(err, false)
			}
			return driver.Row{}, false, err
		}
	}
	return driver.Row{}, false, &driver.Error{
		Store: s.objects.String(), Answered: true, Unapplied: true, Conflict: true,
		Err: fmt.Errorf("object %s: others wrote it each time before this request could", key),
	}
}

// unapplied returns the error of the last step of a request, with what is known
// of all its writes: whether nothing was applied and nothing still can be.
func unapplied(err error, known bool) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	said := *e
	said.Unapplied = known
	return &said
}

// completed reports whether the next owner, the first after the lock with the
// given fence, inherited this request's memory. No owner in between can have
// written it, neither for the same event nor for the same order.
func (q *request) completed(seen *sight, fence int64) bool {
	if q.memory == nil || seen.OwnerToken == "" || seen.FenceBefore != fence {
		return false
	}
	m := seen.row(q.token, q.now).Memory
	return m.HighestOrder == q.memory.HighestOrder && slices.EqualFunc(m.Completed, q.memory.Completed, func(a, b driver.CompletedEvent) bool {
		return a.Event == b.Event && a.Until.Equal(b.Until)
	}) && slices.EqualFunc(m.Interrupted, q.memory.Interrupted, func(a, b driver.InterruptedEvent) bool { // a dead owner would have left one more
		return a.Event == b.Event && a.Until.Equal(b.Until)
	})
}

// guess returns what is probably true of an object, without reading it.
func (s *Store) guess(key string, q *request) (sight, bool) {
	if object, ok := s.cache.get(key); ok {
		r, err := parse(object.Body, key)
		return sight{record: r, version: object.Version}, err == nil && (r.OwnerToken == "" || r.OwnerToken == q.token)
	}
	return sight{}, q.claim && !s.known.Load()
}

// read reads an object for a request, and caches it for later ones.
func (s *Store) read(ctx context.Context, key string, q *request) (sight, error) {
	seen, object, err := s.get(ctx, key)
	if denied(err) {
		s.known.Store(false) // for the next name, try a write: it tells what a denied read does not
	}
	if err != nil {
		return seen, err
	}
	if q.claim && (seen.OwnerToken == "" || seen.OwnerToken != q.token) { // otherwise the claim itself may have created the object
		s.known.Store(seen.version != "")
	}
	if seen.version != "" {
		s.cache.put(key, object)
	} else {
		s.cache.drop(key)
	}
	return seen, nil
}

// get reads an object. If there is none, the row is blank. If there is no row
// in it, the error comes with a sight that was read.
func (s *Store) get(ctx context.Context, key string) (sight, Object, error) {
	object, err := s.objects.Get(ctx, key)
	if errors.Is(err, ErrNotExist) {
		return sight{read: true}, Object{}, nil
	}
	if err != nil {
		return sight{}, Object{}, err
	}
	r, err := parse(object.Body, key)
	if err == nil && (object.Version == "" || object.Modified.IsZero() || object.Now.IsZero()) {
		err = errors.New("the service did not tell its version, when it was written, or the time")
	}
	if err != nil {
		return sight{read: true}, Object{}, s.unusable(key, err)
	}
	return sight{record: r, version: object.Version, modified: object.Modified, now: object.Now, body: object.Body, read: true}, object, nil
}

// unusable returns an error for a request that no retry would fix. Nothing was
// written.
func (s *Store) unusable(key string, err error) error {
	return &driver.Error{Lasting: true, Store: s.objects.String(), Answered: true, Unapplied: true, Err: fmt.Errorf("object %s: %w", key, err)}
}

// write writes the row if its object still has the given version, and returns
// the bytes that it sent.
func (s *Store) write(ctx context.Context, key, version string, r *record) ([]byte, error) {
	body, err := r.body()
	if err != nil {
		return nil, s.unusable(key, err)
	}
	next, err := s.objects.Put(ctx, key, body, version)
	if err == nil && next != "" {
		s.cache.put(key, Object{Body: body, Version: next})
	}
	return body, err
}

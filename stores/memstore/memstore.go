// Package memstore keeps locks in the memory of one process: for tests, for
// local runs, and for locks between the goroutines of one program. It does what
// the DynamoDB store does, by the caller's clock, so it works under
// testing/synctest. A row that need not be kept any more is gone when its name is asked
// for, which is the earliest that DynamoDB's garbage collection may remove it; those that
// nobody asks for are removed now and then.
package memstore

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// Store implements [lock.Store]. The zero value is an empty store.
type Store struct {
	mu    sync.Mutex
	rows  map[string]*lock.Row
	until int // the rows are looked through when there are so many
}

// New returns an empty store.
func New() *Store { return &Store{} }

// Acquire implements [lock.Store].
func (s *Store) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return lock.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(c.Now)
	row := s.row(c.Name)
	if expired(row, c.Now) {
		*row = lock.Row{}
	}
	if row.Judge(c) != lock.Granted {
		return *row, false, nil
	}
	previous := row.Holder
	if row.Token == c.Token { // the claim met its own first copy
		previous = ""
	}
	row.Token, row.Since, row.Until, row.Keep = c.Token, c.Stamp, c.Until, c.Keep
	row.Event, row.Holder = c.Event, c.Holder
	if row.Fence == 0 {
		row.Fence = c.Now.UnixMicro()
	}
	row.Fence++
	acquired := *row
	acquired.Previous = previous
	return acquired, true, nil
}

// Renew implements [lock.Store].
func (s *Store) Renew(ctx context.Context, r *lock.Renewal) (lock.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return lock.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(r.Name)
	if row.Newer || !owns(row, r.Token) || r.Until.Before(row.Until) {
		return *row, false, nil
	}
	row.Until, row.Keep = r.Until, r.Keep
	return *row, true, nil
}

// Release implements [lock.Store].
func (s *Store) Release(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return lock.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(t.Name)
	owner := owns(row, t.Token)
	poison := t.Abandon && row.Since.Before(t.Stamp)
	if row.Newer || !owner && !poison {
		return *row, false, nil
	}
	if poison {
		row.Since = t.Stamp
	}
	if owner {
		row.Token, row.Event, row.Holder = "", "", ""
		if t.Memory != nil {
			row.Memory = *t.Memory
		}
	}
	row.Keep = t.Keep
	return *row, true, nil
}

// Check implements [lock.Store].
func (s *Store) Check(ctx context.Context) error { return ctx.Err() }

// sweep removes what need not be kept, each time that the rows have doubled.
func (s *Store) sweep(now time.Time) {
	if len(s.rows) < max(s.until, 1000) {
		return
	}
	maps.DeleteFunc(s.rows, func(_ string, row *lock.Row) bool { return row.Since.IsZero() || expired(row, now) })
	s.until = 2 * len(s.rows)
}

func expired(row *lock.Row, now time.Time) bool {
	return !row.Newer && !row.Keep.IsZero() && row.Keep.Before(now)
}

// row needs the mutex. A row that was never acquired reads like none.
func (s *Store) row(name string) *lock.Row {
	row := s.rows[name]
	if row == nil {
		row = &lock.Row{}
		if s.rows == nil {
			s.rows = map[string]*lock.Row{}
		}
		s.rows[name] = row
	}
	return row
}

func owns(row *lock.Row, token string) bool { return token != "" && row.Token == token }

// rejected: a context that had ended before the request changed nothing.
func rejected(err error) error {
	return &lock.StoreError{Store: "memory", Temporary: true, Rejected: true, Err: err}
}

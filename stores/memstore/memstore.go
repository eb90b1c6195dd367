// Package memstore keeps locks in the memory of one process: for tests, for
// local runs, and for locks between the goroutines of one program. It does what
// the DynamoDB store does, by the caller's clock, so it works under
// testing/synctest. A row that has expired is deleted when its name is claimed,
// as if DynamoDB's TTL had deleted it immediately. Other expired rows are
// deleted each time that the number of rows has doubled.
package memstore

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Store implements [driver.Store]. It is safe for concurrent use, and its zero
// value is an empty store.
type Store struct {
	mu    sync.Mutex
	rows  map[string]*driver.Row
	until int // how many rows there may be before they are swept
}

// Callers look for these by their methods, and tests skip what is not there.
var (
	_ driver.Coalescer = (*Store)(nil)
	_ driver.Line      = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns an empty store.
func New() *Store { return &Store{} }

// String returns what errors call the store.
func (*Store) String() string { return "memory" }

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(c.Now)
	row := s.row(c.Name)
	if expired(row, c.Now) {
		*row = driver.Row{}
	}
	if row.Judge(c) != driver.Granted {
		return *row, false, nil
	}
	row.Take(c, c.Stamp)
	acquired := *row
	row.Previous = driver.InterruptedEvent{}
	return acquired, true, nil
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(r.Name)
	ok := row.Extend(r, false)
	return *row, ok, nil
}

// Settle implements [driver.Store].
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(t.Name)
	ok := row.Settle(t)
	return *row, ok, nil
}

// Mark implements [driver.Coalescer].
func (s *Store) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(m.Name)
	ok := row.Mark(m)
	return *row, ok, nil
}

// Join implements [driver.Line].
func (s *Store) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(name)
	ok := row.Join()
	return *row, ok, nil
}

// Read implements [driver.Inspector].
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, rejected(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.rows[name]; row != nil {
		return *row, nil
	}
	return driver.Row{}, nil
}

// Rows implements [driver.Inspector].
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for _, row := range s.withPrefix(prefix) {
			if err := ctx.Err(); err != nil {
				yield(driver.NamedRow{}, rejected(err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// withPrefix returns copies of the rows that were ever acquired.
func (s *Store) withPrefix(prefix string) []driver.NamedRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []driver.NamedRow
	for name, row := range s.rows {
		if strings.HasPrefix(name, prefix) && !row.Unknown() {
			rows = append(rows, driver.NamedRow{Name: name, Row: *row})
		}
	}
	return rows
}

// sweep deletes expired rows, each time that the number of rows has doubled.
func (s *Store) sweep(now time.Time) {
	if len(s.rows) < max(s.until, 1000) {
		return
	}
	maps.DeleteFunc(s.rows, func(_ string, row *driver.Row) bool { return row.Stamp.IsZero() || expired(row, now) })
	s.until = 2 * len(s.rows)
}

func expired(row *driver.Row, now time.Time) bool {
	return !row.Newer && !row.DeleteAfter.IsZero() && row.DeleteAfter.Before(now)
}

// row returns the row of name, a new one if there is none. The caller holds the
// mutex.
func (s *Store) row(name string) *driver.Row {
	row := s.rows[name]
	if row == nil {
		row = &driver.Row{}
		if s.rows == nil {
			s.rows = map[string]*driver.Row{}
		}
		s.rows[name] = row
	}
	return row
}

// rejected returns the error of a request whose context had already ended:
// nothing was applied.
func rejected(err error) error {
	return &driver.Error{Store: "memory", Unapplied: true, Err: err}
}

package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// serverClock is a store that judges leases by its own clock, as Redis and the
// object stores do.
type serverClock struct {
	mu   sync.Mutex
	rows map[string]*clockedRow
	now  func() time.Time
}

// clockedRow has the owner's end of the lease in Until.
type clockedRow struct {
	driver.Row
	end time.Time // of the lease, by the server's clock
}

func newServerClock(now func() time.Time) *serverClock {
	return &serverClock{rows: map[string]*clockedRow{}, now: now}
}

// seen returns the row as a caller sees it whose clock says now.
func (s *serverClock) seen(name, token string, now time.Time) (*clockedRow, driver.Row) {
	row := s.rows[name]
	if row == nil {
		row = &clockedRow{}
		s.rows[name] = row
	}
	seen := row.Row
	if row.Token != "" && row.Token != token {
		seen.Until = now.Add(row.end.Sub(s.now()))
	}
	return row, seen
}

// Save returns a function that brings the row of a name back to what it is now.
func (s *serverClock) Save(name string) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, _ := s.seen(name, "", s.now())
	saved := *row
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*s.rows[name] = saved
	}
}

// Read is what the watcher of a simulation needs.
func (s *serverClock) Read(_ context.Context, name string) (driver.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, row := s.seen(name, "", time.Now())
	return row, nil
}

func (s *serverClock) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, seen := s.seen(c.Name, c.Token, c.Now)
	if seen.Judge(c) != driver.Granted {
		return seen, false, nil
	}
	if row.Token == c.Token && row.Stamp.Equal(c.Stamp) && row.Until.Equal(c.Until) {
		return row.Row, true, nil // a copy must not extend the lease
	}
	row.Take(c, s.now())
	row.end = s.now().Add(c.Until.Sub(c.Now))
	granted := row.Row
	row.Previous = driver.InterruptedEvent{}
	return granted, true, nil
}

func (s *serverClock) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, seen := s.seen(r.Name, r.Token, r.Now)
	before := row.Until
	if !row.Extend(r, row.end.Before(s.now())) {
		return seen, false, nil
	}
	if r.Until.After(before) { // a copy must not extend the lease
		row.end = s.now().Add(r.Until.Sub(r.Now))
	}
	return row.Row, true, nil
}

func (s *serverClock) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, _ := s.seen(t.Name, t.Token, s.now())
	ok := row.Settle(t)
	if ok && !t.Until.IsZero() {
		row.end = s.now().Add(t.Until.Sub(t.Now))
	}
	return row.Row, ok, nil
}

func (s *serverClock) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, _ := s.seen(m.Name, m.Token, s.now())
	ok := row.Mark(m)
	return row.Row, ok, nil
}

// TestConformanceOfServerClock shows that the store is one, so that the
// simulation over it counts. Its clock is a day behind the clients'.
func TestConformanceOfServerClock(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	locktest.Run(t, locktest.Harness{
		Open: func(*testing.T) driver.Store {
			return newServerClock(func() time.Time { return time.Now().Add(ahead - 24*time.Hour) })
		},
		Advance: func(d time.Duration) { ahead += d },
		Save:    func(_ *testing.T, s driver.Store, name string) func() { return s.(*serverClock).Save(name) },
	})
}

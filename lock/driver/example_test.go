package driver_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// tinyStore never deletes a row, so it need not look at DeleteAfter.
type tinyStore struct {
	mu   sync.Mutex
	rows map[string]driver.Row
}

func (s *tinyStore) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[c.Name]
	if row.Judge(c) != driver.Granted {
		return row, false, nil
	}
	row.Take(c, c.Stamp)
	stored := row
	stored.Previous = driver.InterruptedEvent{}
	s.rows[c.Name] = stored
	return row, true, nil
}

func (s *tinyStore) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[r.Name]
	ok := row.Extend(r, false)
	s.rows[r.Name] = row
	return row, ok, nil
}

func (s *tinyStore) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[t.Name]
	ok := row.Settle(t)
	s.rows[t.Name] = row
	return row, ok, nil
}

// The whole of a store that keeps its rows in a map. It passes locktest.Run.
func ExampleStore() {
	locker, err := lock.New(&tinyStore{rows: map[string]driver.Row{}}, nil)
	if err != nil {
		panic(err)
	}
	for range 2 {
		fmt.Println(locker.Do(context.Background(), lock.Key{Name: "n", Event: "e"}, func(context.Context) error { return nil }))
	}
	// Output:
	// <nil>
	// lambdalock: key 1b16b1df538b: this event was already completed
}

package objectstore_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		exact bool
		open  func(*fake) driver.Store
	}{
		"whole seconds":               {false, func(f *fake) driver.Store { return objectstore.New(f) }},
		"exact times":                 {true, func(f *fake) driver.Store { return objectstore.New(f) }},
		"a process for every request": {false, func(f *fake) driver.Store { return strangers{f} }},
		"every write arrives again":   {false, func(f *fake) driver.Store { return repeated{objectstore.New(f), f, new(sync.Mutex)} }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			var passed time.Duration
			f.exact, f.clock = c.exact, func() time.Time { return time.Now().Add(passed) }
			locktest.Run(t, locktest.Harness{
				Open:    func(*testing.T) driver.Store { return c.open(f) },
				Advance: func(d time.Duration) { passed += d },
				MakeNewer: func(t *testing.T, _ driver.Store, name string) {
					f.edit(t, objectstore.Key(name), func(fields map[string]any) {
						fields["rowFormat"], fields["stamp"] = 2, []int{1}
					})
				},
				Save: func(_ *testing.T, _ driver.Store, name string) func() { return f.save(objectstore.Key(name)) },
			})
		})
	}
}

// strangers is a store whose every request comes from another process.
type strangers struct{ *fake }

func (s strangers) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return objectstore.New(s.fake).Acquire(ctx, c)
}

func (s strangers) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return objectstore.New(s.fake).Renew(ctx, r)
}

func (s strangers) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return objectstore.New(s.fake).Settle(ctx, t)
}

func (s strangers) Read(ctx context.Context, name string) (driver.Row, error) {
	return objectstore.New(s.fake).Read(ctx, name)
}

func (s strangers) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return objectstore.New(s.fake).Rows(ctx, prefix)
}

// repeated is a store after each of whose requests all writes that were ever
// sent arrive once more. None of them may be applied: no version comes back.
// Its requests take turns, because a copy of a write that is still on its way
// may be the first to arrive.
type repeated struct {
	*objectstore.Store
	f   *fake
	one *sync.Mutex
}

func (s repeated) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	s.one.Lock()
	defer s.one.Unlock()
	return s.repeat(s.Store.Acquire(ctx, c))
}

func (s repeated) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	s.one.Lock()
	defer s.one.Unlock()
	return s.repeat(s.Store.Renew(ctx, r))
}

func (s repeated) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	s.one.Lock()
	defer s.one.Unlock()
	return s.repeat(s.Store.Settle(ctx, t))
}

func (s repeated) repeat(row driver.Row, ok bool, err error) (driver.Row, bool, error) {
	if n := s.f.repeat(); n != 0 && err == nil {
		err = fmt.Errorf("%d late copies of writes were applied", n)
	}
	return row, ok, err
}

func answer(t *testing.T) func(driver.Row, bool, error) (driver.Row, bool) {
	t.Helper()
	return func(row driver.Row, ok bool, err error) (driver.Row, bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return row, ok
	}
}

package fault

import (
	"context"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Limited is a store that takes only so many writes per second, with a burst of
// one second, as a DynamoDB table does. It throttles the others. It is safe for
// concurrent use; its fields are set before that.
type Limited struct {
	driver.Store
	Rate       float64       // writes per second; zero: as many as the partitions take
	Name       float64       // writes per second of one name; zero: as many as Rate allows
	Partitions *Partitions   // nil: the table is not divided
	Wait       time.Duration // for an answer
	// Full reports whether a request is throttled whatever the rate. Nil: none is.
	Full func(op string) bool

	mu                 sync.Mutex
	table              bucket
	names              map[string]*bucket
	requests, accepted int
}

// bucket is how much may be written in one burst.
type bucket struct {
	tokens float64
	filled time.Time
}

func (b *bucket) fill(rate float64, now time.Time) {
	if b.filled.IsZero() {
		b.tokens = rate
	}
	b.tokens = min(rate, b.tokens+rate*now.Sub(b.filled).Seconds())
	b.filled = now
}

// Requests returns how many requests were sent, and how many of them were not
// throttled.
func (s *Limited) Requests() (sent, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.accepted
}

func (s *Limited) take(ctx context.Context, op, name string) error {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	time.Sleep(s.Wait)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.table.fill(s.Rate, now)
	of := s.nameBucket(name, now)
	if s.Rate > 0 && s.table.tokens < 1 || of.tokens < 1 || s.Full != nil && s.Full(op) || !s.Partitions.take(name, now) {
		return storeError(Throttle)
	}
	s.table.tokens--
	of.tokens--
	s.accepted++
	return nil
}

func (s *Limited) nameBucket(name string, now time.Time) *bucket {
	if s.Name == 0 {
		return &bucket{tokens: 1}
	}
	if s.names == nil {
		s.names = map[string]*bucket{}
	}
	if s.names[name] == nil {
		s.names[name] = &bucket{}
	}
	s.names[name].fill(s.Name, now)
	return s.names[name]
}

// Acquire implements [driver.Store].
func (s *Limited) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // as it was sent
	if err := s.take(ctx, Acquire, c.Name); err != nil {
		return driver.Row{}, false, err
	}
	return s.Store.Acquire(ctx, &claim)
}

// Renew implements [driver.Store].
func (s *Limited) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := s.take(ctx, Renew, r.Name); err != nil {
		return driver.Row{}, false, err
	}
	return s.Store.Renew(ctx, r)
}

// Settle implements [driver.Store].
func (s *Limited) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := s.take(ctx, Release, t.Name); err != nil {
		return driver.Row{}, false, err
	}
	return s.Store.Settle(ctx, t)
}

package lock_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

type bucket struct {
	lock.Store
	mu       sync.Mutex
	rate     float64
	tokens   float64
	last     time.Time
	requests int
}

func (b *bucket) take() error {
	time.Sleep(5 * time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tokens = min(b.rate, b.tokens+b.rate*now.Sub(b.last).Seconds())
	b.last = now
	b.requests++
	if b.tokens < 1 {
		return &lock.StoreError{Temporary: true, Rejected: true, Err: fmt.Errorf("throttled")}
	}
	b.tokens--
	return nil
}

func (b *bucket) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	if err := b.take(); err != nil {
		return lock.Row{}, false, err
	}
	return b.Store.Acquire(ctx, c)
}

func (b *bucket) Release(ctx context.Context, s *lock.Settlement) (lock.Row, bool, error) {
	if err := b.take(); err != nil {
		return lock.Row{}, false, err
	}
	return b.Store.Release(ctx, s)
}

func TestOverload(t *testing.T) {
	for _, times := range []float64{0.9, 1.1, 1.5, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			b := &bucket{Store: memstore.New(), rate: 400, tokens: 400, last: time.Now()}
			l, _ := lock.New(b, &lock.Options{KilledAtDeadline: true, Logger: slog.New(slog.DiscardHandler)})
			var wg sync.WaitGroup
			var mu sync.Mutex
			ran, unrecorded, refused := 0, 0, 0
			n := int(times * 200 * 10)
			for i := range n {
				wg.Go(func() {
					time.Sleep(time.Duration(float64(i) / float64(n) * float64(10*time.Second)))
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					defer cancel()
					lk, err := l.Acquire(ctx, lock.Key{Name: fmt.Sprint(i), Event: "e"})
					mu.Lock()
					if err != nil {
						refused++
						mu.Unlock()
						return
					}
					ran++
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
					if lk.Complete(nil) != nil {
						mu.Lock()
						unrecorded++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			fmt.Printf("%.1f: offered %d ran %d refused %d unrecorded %.2f%% requests/offered %.2f requests/ran %.2f goodput %.3f\n", times, n, ran, refused,
				100*float64(unrecorded)/float64(ran), float64(b.requests)/float64(n), float64(b.requests)/float64(ran), float64(2*(ran-unrecorded))/4400)
		})
	}
}

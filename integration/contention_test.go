package integration_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

const (
	contendedNames = 8
	contendedLease = 30 * time.Second
	processes      = 4
	goroutines     = 16 // of each process, unless the server is slow
)

// TestContention lets four processes contend for eight names, and checks every
// period in which one of them believed that it held a name.
func TestContention(t *testing.T) {
	inEach(t, func(t *testing.T, b backend, p place) {
		total := b.contended
		if testing.Short() {
			total = min(total, 600)
		}
		began := time.Now()
		holds := contendedHolds(t, "contend", task{Place: p, Turns: total / processes, Waiters: cmp.Or(b.waiters, goroutines)})
		t.Logf("%d acquisitions in %v", len(holds), time.Since(began).Round(time.Millisecond))
		if len(holds) != total {
			t.Errorf("%d holds, want exactly %d", len(holds), total)
		}
		if err := locktest.CheckHistory(holds); err != nil {
			t.Error(err)
		}
		checkSpread(t, holds)
	})
}

// contendedHolds runs the processes and returns their holds.
func contendedHolds(t *testing.T, role string, do task) []locktest.Hold {
	all := make([][]locktest.Hold, processes)
	var wg sync.WaitGroup
	for i := range processes {
		do.Who = fmt.Sprint("process ", i)
		c := startChild(t, role, do)
		wg.Go(func() {
			for {
				var h locktest.Hold
				if err := c.lines.Decode(&h); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", c.who, err)
					_ = c.cmd.Process.Kill() // it may be waiting for us to read on
					break
				}
				all[i] = append(all[i], h)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("%s: %v", c.who, err)
			}
		})
	}
	wg.Wait()
	var holds []locktest.Hold
	for _, h := range all {
		holds = append(holds, h...)
	}
	return holds
}

// checkSpread checks that the names were passed between processes.
func checkSpread(t *testing.T, holds []locktest.Hold) {
	users := map[string]map[string]bool{}
	for _, h := range holds {
		if users[h.Name] == nil {
			users[h.Name] = map[string]bool{}
		}
		users[h.Name][h.Holder] = true
	}
	if len(users) != contendedNames {
		t.Errorf("%d names were used, want %d", len(users), contendedNames)
	}
	for name, who := range users {
		if len(who) != processes {
			t.Errorf("%s was held by %d processes, want all %d", name, len(who), processes)
		}
	}
}

// contend is the part of a child that takes a share of the acquisitions, on
// several goroutines, and writes their holds.
func contend(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	locker, err := lock.New(store, &lock.Options{Lease: lock.FixedLease(contendedLease), MaxWait: 5 * time.Minute, Logger: discard})
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(os.Stdout)
	out := json.NewEncoder(buffer)
	var left atomic.Int64
	left.Store(int64(t.Turns))
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range t.Waiters {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				h := locktest.Hold{Name: fmt.Sprint("contended/", rand.N(contendedNames)), Holder: t.Who}
				err := workUnder(locker, &h, contendedLease)
				mu.Lock()
				errs = append(errs, err, out.Encode(h))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, buffer.Flush())...)
}

// workUnder works under the name of a hold. A server that is overloaded gives
// some requests no answer; then the source delivers the event again. What could
// not be released is free once the lease has ended.
func workUnder(locker *lock.Locker, h *locktest.Hold, lease time.Duration) error {
	lk, err := locker.Acquire(context.Background(), lock.Key{Name: h.Name})
	for errors.As(err, new(*lock.StoreError)) {
		lk, err = locker.Acquire(context.Background(), lock.Key{Name: h.Name})
	}
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	h.Start, h.Fence = time.Now(), lk.Lease().Fence
	<-time.After(time.Millisecond) // work, so that an overlap would be seen
	h.End = time.Now()
	err = lk.Release()
	if errors.As(err, new(*lock.StoreError)) {
		<-time.After(lease)
		return nil
	}
	return err
}

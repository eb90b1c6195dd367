package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// chaosTime is how long servers fail: LAMBDALOCK_DEPTH=long is for make soak.
func chaosTime(t *testing.T) time.Duration {
	if os.Getenv("LAMBDALOCK_DEPTH") == "long" {
		return 10 * time.Minute
	}
	if testing.Short() {
		t.Skip("it takes a while")
	}
	return 8 * time.Second
}

// chaosLease is longer than any work, and shorter than a server is down.
const chaosLease = 3 * time.Second

// loss is a time whose writes were lost.
type loss struct{ from, to time.Time }

// near is how exactly this process knows when a server applied a write.
const near = 100 * time.Millisecond

func (l loss) has(at time.Time) bool { return at.After(l.from.Add(-near)) && at.Before(l.to.Add(near)) }

// owned is what a worker did under a lock.
type owned struct {
	name, event string
	fence       int64
	start, end  time.Time
	completed   time.Time // zero: not for certain
}

// chaos lets workers take the locks of few names, and notes what they do.
type chaos struct {
	*testing.T
	mu    sync.Mutex
	holds []owned
	began map[string]int // events by name, in order
}

// work takes locks until ctx ends.
func (c *chaos) work(ctx context.Context, store driver.Store, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	locker, err := lock.New(store, &lock.Options{Lease: lock.FixedLease(chaosLease), MaxWait: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Error(err)
		return
	}
	for ctx.Err() == nil {
		name := fmt.Sprint("n", random.IntN(3))
		c.mu.Lock()
		n := c.began[name]
		c.mu.Unlock()
		// New events, and duplicates of the last ones.
		h := owned{name: name, event: event(max(n-random.IntN(6), 0))}
		attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
		l, err := locker.Acquire(attempt, lock.Key{Name: name, Event: h.event})
		if err != nil {
			cancel()
			_ = sleep(ctx, 5*time.Millisecond)
			continue
		}
		c.mu.Lock()
		if h.event == event(c.began[name]) {
			c.began[name]++
		}
		c.mu.Unlock()
		h.fence, h.start = l.Lease().Fence, time.Now()
		_ = sleep(l.Context(), time.Duration(random.IntN(40))*time.Millisecond)
		h.end = time.Now()
		if err := l.Complete(); err == nil {
			h.completed = time.Now()
		}
		cancel()
		c.mu.Lock()
		c.holds = append(c.holds, h)
		c.mu.Unlock()
	}
}

// report checks the holds. What was lost may have had a second owner, and may
// run again.
func (c *chaos) report(lost []loss) {
	excused := func(at time.Time) bool {
		for _, l := range lost {
			if l.has(at) {
				return true
			}
		}
		return false
	}
	promised, beyond, again, fences, replaced := 0, 0, 0, 0, 0
	for i, a := range c.holds {
		later := map[string]bool{}
		for _, b := range c.holds[max(i-200, 0):min(i+200, len(c.holds))] {
			if a.name != b.name || !a.start.Before(b.start) {
				continue
			}
			if b.start.Sub(a.start) > near && b.fence <= a.fence {
				fences++
				c.Errorf("fence %d at %v after %d at %v", b.fence, b.start, a.fence, a.start)
			}
			if a.end.After(b.start) {
				if excused(a.start) {
					promised++
				} else {
					beyond++
					c.Errorf("%+v overlaps %+v", a, b)
				}
			}
			later[b.event] = true
			if a.event == b.event && !a.completed.IsZero() && b.start.After(a.completed) && len(later) <= remembered {
				if excused(a.completed) {
					replaced++
				} else {
					again++
					c.Errorf("%+v runs again: %+v", a, b)
				}
			}
		}
	}
	c.Logf("%d holds, %d losses: %d overlaps and %d repeated events as promised; %d overlaps, %d repeated events and %d fences that do not rise",
		len(c.holds), len(lost), promised, replaced, beyond, again, fences)
	if len(c.holds) < 20 {
		c.Error("too few holds")
	}
}

// run lets eight workers work until disturb returns.
func (c *chaos) run(open func() driver.Store, disturb func(end time.Time) []loss) {
	ctx, cancel := context.WithCancel(c.Context())
	var workers sync.WaitGroup
	for i := range 8 {
		store := open()
		workers.Go(func() { c.work(ctx, store, uint64(i)) })
	}
	lost := disturb(time.Now().Add(chaosTime(c.T)))
	cancel()
	workers.Wait()
	c.report(lost)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// beat writes the time to the primary again and again, so that a replica tells
// how far behind it is.
func beat(ctx context.Context, primary *atomic.Pointer[server]) {
	for ctx.Err() == nil {
		c := redis.NewClient(&redis.Options{Addr: primary.Load().addr, DialerRetries: 1})
		for c.Set(ctx, "beat", time.Now().UnixMicro(), 0).Err() == nil {
			_ = sleep(ctx, 10*time.Millisecond)
		}
		_ = c.Close()
		_ = sleep(ctx, 10*time.Millisecond)
	}
}

// TestChaosOfFailovers promotes a replica again and again that lacks up to a
// second of writes. Owners overlap and events run again only if what they
// rely on was written in that time, and fences rise in any case.
func TestChaosOfFailovers(t *testing.T) { // F24, F42, F56
	t.Parallel()
	chaosTime(t)
	var primary atomic.Pointer[server]
	port := freePort(t)
	primary.Store(newServer(t, "--port", port))
	c := &chaos{T: t, began: map[string]int{}}
	open := func() driver.Store {
		client := redis.NewClient(&redis.Options{
			DialerRetries: 1, DialerRetryTimeout: time.Millisecond,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", primary.Load().addr)
			},
		})
		t.Cleanup(func() { _ = client.Close() })
		return must(redisstore.New(client))
	}
	c.run(open, func(end time.Time) (lost []loss) {
		beats, stop := context.WithCancel(t.Context())
		var heart sync.WaitGroup
		defer heart.Wait()
		defer stop()
		heart.Go(func() { beat(beats, &primary) })
		for time.Now().Before(end) {
			next := freePort(t)
			replica := newServer(t, "--port", next, "--replicaof", "127.0.0.1 "+port, "--repl-diskless-sync-delay", "0")
			admin := newClient(t, replica.addr)
			for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if admin.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up" {
					break
				}
				if time.Now().After(until) {
					t.Error("the replica does not follow")
					return lost
				}
			}
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			if err := admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			primary.Load().stop()
			if err := admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
				t.Error(err)
			}
			// The replica may have been behind already when it was cut off.
			last, err := admin.Get(t.Context(), "beat").Int64()
			if err != nil {
				t.Error(err)
			}
			primary.Store(replica)
			port = next
			lost = append(lost, loss{time.UnixMicro(last), time.Now()})
		}
		return lost
	})
}

// TestChaosOfOutdatedServers restarts one of three servers again and again with
// what it had up to a second, six events or a minute ago. A majority keeps its
// data, so nothing is lost.
func TestChaosOfOutdatedServers(t *testing.T) { // F24, F42, F56
	t.Parallel()
	chaosTime(t)
	nodes := []*server{newServer(t), newServer(t), newServer(t)}
	var clients []redis.Scripter
	for _, n := range nodes {
		clients = append(clients, newClient(t, n.addr))
	}
	c := &chaos{T: t, began: map[string]int{}}
	open := func() driver.Store { return openQuorum(clients...) }
	c.run(open, func(end time.Time) []loss {
		quiet := time.Now() // until then, no server goes down
		for n := 0; time.Now().Before(end); n++ {
			node := nodes[n%3]
			back := []time.Duration{time.Second, 0, time.Second, 10 * time.Second, time.Minute}[rand.IntN(5)]
			if time.Until(end) < back+10*time.Second {
				back = time.Second
			}
			time.Sleep(max(time.Until(quiet), 0))
			image, err := node.image()
			if err != nil {
				t.Error(err)
				return nil
			}
			time.Sleep(time.Duration(rand.Int64N(int64(back) + 1)))
			if back == 0 {
				image = nil // it only misses what happens meanwhile
			}
			if err := node.restart(chaosLease+100*time.Millisecond, image); err != nil {
				t.Error(err)
				return nil
			}
			quiet = time.Now().Add(500 * time.Millisecond)
		}
		return nil
	})
}

// image returns what the server has stored.
func (s *server) image() ([]byte, error) {
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	defer c.Close()
	if err := c.Save(context.Background()).Err(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(filepath.Dir(s.addr), "dump.rdb"))
}

// restart kills the server and starts it later with an image, or with what it
// has stored now.
func (s *server) restart(down time.Duration, image []byte) error {
	if image == nil {
		var err error
		if image, err = s.image(); err != nil {
			return err
		}
	}
	s.stop()
	time.Sleep(down)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.addr), "dump.rdb"), image, 0o600); err != nil {
		return err
	}
	s.start()
	return nil
}

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// network stands between the engine and its store: it delays, loses requests and
// answers, and delivers copies of requests late.
type network struct {
	lock.Store
	mu     sync.Mutex
	random *rand.Rand
	copies sync.WaitGroup
	calm   bool
}

func (n *network) roll(of int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm {
		return -1
	}
	return n.random.IntN(of)
}

var errLost = errors.New("connection lost")

// send applies a request, perhaps, and a copy of it, perhaps, up to half a minute
// later.
func (n *network) send(ctx context.Context, apply func(context.Context) (lock.Row, bool, error)) (lock.Row, bool, error) {
	if n.roll(5) == 0 {
		late := time.Duration(n.roll(30_000)) * time.Millisecond
		n.copies.Go(func() {
			time.Sleep(late)
			_, _, _ = apply(context.Background())
		})
	}
	if d := n.roll(20); d > 0 {
		time.Sleep(time.Duration(d) * time.Millisecond)
	}
	switch n.roll(12) {
	case 0:
		return lock.Row{}, false, errLost
	case 1:
		_, _, _ = apply(ctx)
		return lock.Row{}, false, errLost
	case 2:
		_, _, _ = apply(ctx)
		<-ctx.Done()
		return lock.Row{}, false, ctx.Err()
	}
	return apply(ctx)
}

func (n *network) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	claim := *c // the engine dates its claim anew, the copy under way stays as it is
	return n.send(ctx, func(ctx context.Context) (lock.Row, bool, error) { return n.Store.Acquire(ctx, &claim) })
}

func (n *network) Renew(ctx context.Context, r *lock.Renewal) (lock.Row, bool, error) {
	return n.send(ctx, func(ctx context.Context) (lock.Row, bool, error) { return n.Store.Renew(ctx, r) })
}

func (n *network) Release(ctx context.Context, s *lock.Settlement) (lock.Row, bool, error) {
	return n.send(ctx, func(ctx context.Context) (lock.Row, bool, error) { return n.Store.Release(ctx, s) })
}

// world is one simulated history.
type world struct {
	t       *testing.T
	seed    uint64
	network *network

	mu       sync.Mutex
	holds    []locktest.Hold
	recorded map[lock.Key]time.Time // completions that the engine confirmed
	runs     int
	crashes  int
}

// TestSimulation lets invocations of every kind meet over a network that loses,
// delays and repeats, and checks P1 to P5 of each history. LAMBDALOCK_SEEDS sets how
// many histories; a failure names the seed.
func TestSimulation(t *testing.T) { // F1 to F6, F18 to F21
	t.Parallel()
	seeds := uint64(150)
	if s := os.Getenv("LAMBDALOCK_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	runs, crashes := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, seed: seed, recorded: map[lock.Key]time.Time{}}
			w.network = &network{Store: memstore.New(), random: rand.New(rand.NewPCG(seed, 1))}
			w.play()
			runs, crashes = runs+w.runs, crashes+w.crashes
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d histories, %d runs of the work, %d crashes", seeds, runs, crashes)
}

func (w *world) play() {
	var wg sync.WaitGroup
	for client := range 8 {
		random := rand.New(rand.NewPCG(w.seed, uint64(client+2)))
		wg.Go(func() {
			for range 25 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				w.invoke(random)
			}
		})
	}
	wg.Wait()
	w.network.copies.Wait()
	if err := locktest.CheckHistory(w.holds); err != nil {
		w.t.Errorf("seed %d: %v", w.seed, err)
	}
	w.everythingIsFree()
}

// invoke is one invocation: of a platform that kills at the deadline, with a fixed
// lease, or with a heartbeat. The first two may crash.
func (w *world) invoke(random *rand.Rand) {
	o := lock.Options{Logger: slog.New(slog.DiscardHandler), Wait: time.Duration(random.IntN(2)) * 3 * time.Second}
	canCrash := true
	switch random.IntN(3) {
	case 0:
		o.KilledAtDeadline = true
	case 1:
		o.Lease = 5 * time.Second
	case 2:
		o.Heartbeat = 4 * time.Second
		canCrash = false
	}
	locker, err := lock.New(w.network, &o)
	if err != nil {
		w.t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	key := lock.Key{Name: fmt.Sprint("n", random.IntN(3))}
	if random.IntN(3) > 0 {
		key.Event = fmt.Sprint("e", random.IntN(12))
	}
	lk, err := locker.Acquire(ctx, key)
	if err != nil {
		return
	}
	start := time.Now()
	w.mayRun(key, start)
	select {
	case <-time.After(time.Duration(random.IntN(4000)) * time.Millisecond):
	case <-lk.Context().Done():
	}
	outcome := random.IntN(6)
	crash := canCrash && outcome == 0
	w.ran(locktest.Hold{Name: key.Name, Who: key.Event, Fence: lk.Lease().Fence, Start: start, End: time.Now()}, crash)
	switch {
	case crash:
	case outcome == 1:
		_ = lk.Release()
	default:
		w.complete(lk, key)
	}
}

func (w *world) ran(h locktest.Hold, crash bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, h)
	w.runs++
	if crash {
		w.crashes++
	}
}

// mayRun: an event whose completion was confirmed must not run again (P5).
func (w *world) mayRun(key lock.Key, start time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.recorded[key]; ok && key.Event != "" {
		w.t.Errorf("seed %d: %v ran at %v, although it was recorded as completed at %v", w.seed, key, start, at)
	}
}

func (w *world) complete(lk *lock.Lock, key lock.Key) {
	if err := lk.Complete(nil); err == nil {
		w.mu.Lock()
		w.recorded[key] = time.Now()
		w.mu.Unlock()
	}
}

// everythingIsFree: when the longest lease is over, nothing that was lost, repeated
// or abandoned holds a name (P4).
func (w *world) everythingIsFree() {
	time.Sleep(15 * time.Second)
	w.network.calm = true
	locker, err := lock.New(w.network, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range 3 {
		if err := locker.Do(context.Background(), lock.Key{Name: fmt.Sprint("n", n)}, nothing); err != nil {
			w.t.Errorf("seed %d: %v", w.seed, err)
		}
	}
}

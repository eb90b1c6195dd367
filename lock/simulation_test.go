package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// network stands between the engines and their store: it delays, loses requests and
// answers, and delivers copies of requests late.
type network struct {
	driver.Store
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
// later. A request that was refused, and whose sender knows it, has no copies.
func (n *network) send(ctx context.Context, apply request) (driver.Row, bool, error) {
	copied := n.roll(5) == 0
	row, ok, err := n.once(ctx, apply)
	if copied && (ok || err != nil) {
		n.later(apply)
	}
	return row, ok, err
}

func (n *network) once(ctx context.Context, apply request) (driver.Row, bool, error) {
	if d := n.roll(20); d > 0 {
		time.Sleep(time.Duration(d) * time.Millisecond)
	}
	switch n.roll(12) {
	case 0:
		return driver.Row{}, false, errLost
	case 1:
		_, _, _ = apply(context.WithoutCancel(ctx))
		return driver.Row{}, false, errLost
	case 2:
		_, _, _ = apply(context.WithoutCancel(ctx))
		<-ctx.Done()
		return driver.Row{}, false, ctx.Err()
	case 3:
		n.later(apply)
		<-ctx.Done()
		return driver.Row{}, false, ctx.Err()
	}
	return apply(ctx)
}

func (n *network) later(apply request) {
	late := time.Duration(n.roll(30_000)) * time.Millisecond
	n.copies.Go(func() {
		time.Sleep(late)
		_, _, _ = apply(context.Background())
	})
}

type request func(context.Context) (driver.Row, bool, error)

// client is one invocation's way to the network. It watches what becomes of its token
// after it has ended.
type client struct {
	*network
	w     *world
	token atomic.Pointer[string]
	dead  atomic.Bool // the process was killed: nothing is sent any more
	tried atomic.Bool // to tell the store that it ends
	over  atomic.Bool // it has ended by itself, and said so to the store
}

func (in *client) send(ctx context.Context, apply request) (driver.Row, bool, error) {
	if in.dead.Load() {
		return driver.Row{}, false, &driver.Error{Rejected: true, Err: errors.New("killed")}
	}
	return in.network.send(ctx, apply)
}

func (in *client) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the engine dates its claim anew, the copy under way stays as it is
	in.token.Store(&claim.Token)
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		over := in.over.Load()
		row, ok, err := in.Store.Acquire(ctx, &claim)
		if ok && over {
			in.w.t.Errorf("seed %d: at %v a late copy got %q for an invocation that had ended", in.w.seed, time.Now(), claim.Name)
		}
		return row, ok, err
	})
}

func (in *client) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) { return in.Store.Renew(ctx, r) })
}

func (in *client) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	in.tried.Store(true)
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		row, ok, err := in.Store.Release(ctx, s)
		if err == nil { // also one that found nothing left to do
			in.over.Store(true)
		}
		return row, ok, err
	})
}

// world is one simulated history.
type world struct {
	t       *testing.T
	seed    uint64
	network *network

	mu       sync.Mutex
	holds    []locktest.Hold
	recorded map[lock.Key]time.Time // completions that the engine confirmed
	excused  map[string]bool        // tokens of those who died, or could not say that they had ended
	runs     int
	crashes  int
}

// seeds is how many histories to play: LAMBDALOCK_SEEDS for the memory store, a share of
// them for others.
func seeds(t *testing.T, usual, share uint64) uint64 {
	s := os.Getenv("LAMBDALOCK_SEEDS")
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return max(n/share, 1)
}

// TestSimulation lets invocations of every kind, each with a clock of its own, meet over
// a network that loses, delays and repeats, and checks P1 to P5 of each history, and that
// no name is held for nobody. A failure names the seed.
func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	t.Parallel()
	simulate(t, seeds(t, 150, 1), func() driver.Store { return memstore.New() })
}

// TestSimulationOnDynamoDB is the same with the DynamoDB store's own conditions.
func TestSimulationOnDynamoDB(t *testing.T) {
	t.Parallel()
	simulate(t, seeds(t, 5, 200), func() driver.Store {
		client := dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb"), HTTPClient: direct{fakedynamo.New()},
			Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		})
		if err := dynamostore.EnsureTable(context.Background(), client, "locks"); err != nil {
			t.Error(err)
		}
		return dynamostore.New(client, "locks")
	})
}

// direct calls a handler without a connection, so that fake time goes on.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

func simulate(t *testing.T, seeds uint64, open func() driver.Store) {
	runs, crashes := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, seed: seed, recorded: map[lock.Key]time.Time{}, excused: map[string]bool{}}
			w.network = &network{Store: open(), random: rand.New(rand.NewPCG(seed, 1))}
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
		// Any two clocks differ by less than Grace.
		clock := time.Duration(random.Int64N(int64(lock.DefaultGrace))) - lock.DefaultGrace/2
		wg.Go(func() {
			for range 25 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				w.invoke(random, clock)
			}
		})
	}
	wg.Wait()
	w.nothingIsHeldForNobody()
	w.network.copies.Wait()
	w.nothingIsHeldForNobody()
	if err := locktest.CheckHistory(w.holds); err != nil {
		w.t.Errorf("seed %d: %v", w.seed, err)
	}
	w.everythingIsFree()
}

// invoke is one invocation: of a platform that kills at the deadline, with a fixed
// lease, or with a heartbeat. Each may crash.
func (w *world) invoke(random *rand.Rand, clock time.Duration) {
	o := lock.Options{Logger: discard, MaxWait: time.Duration(random.IntN(2)) * 3 * time.Second}
	switch random.IntN(3) {
	case 0:
		o.Lease = lock.UntilDeadline()
	case 1:
		o.Lease = lock.FixedLease(5 * time.Second)
	case 2:
		o.Lease = lock.Heartbeat(4 * time.Second)
	}
	in := &client{network: w.network, w: w}
	locker, err := lock.New(in, &o)
	if err != nil {
		w.t.Error(err)
		return
	}
	ahead(locker, clock)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer w.ended(in)
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
	w.ran(locktest.Hold{Name: key.Name, Holder: key.Event, Fence: lk.Lease().Fence, Start: start, End: time.Now()}, outcome == 0)
	switch outcome {
	case 0:
		in.dead.Store(true)
		_ = lk.Release() // ends the goroutine of a heartbeat, and reaches nobody
	case 1:
		_ = lk.Release()
	default:
		w.complete(lk, key)
	}
}

// ended: those who died, or whose last word never reached the store, may hold a name to
// the end of their lease. Those who see no need for one may not.
func (w *world) ended(in *client) {
	token := in.token.Load()
	if token == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case in.dead.Load() || in.tried.Load() && !in.over.Load():
		w.excused[*token] = true
	default:
		in.over.Store(true)
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

// nothingIsHeldForNobody looks before any lease has had the time to end by itself (P4).
func (w *world) nothingIsHeldForNobody() {
	for n := range 3 {
		now := time.Now().Add(-time.Hour) // a claim that nobody grants
		row, _, err := w.network.Store.Acquire(context.Background(), &driver.Claim{Name: fmt.Sprint("/n", n), Token: "looks", Now: now, Stamp: now, Until: now})
		if err != nil {
			w.t.Fatal(err)
		}
		if row.Token != "" && !w.excused[row.Token] {
			w.t.Errorf("seed %d: at %v n%d is held until %v, and nobody holds it", w.seed, time.Now(), n, row.Until)
		}
	}
}

// everythingIsFree: when the longest lease is over, nobody holds anything (P4).
func (w *world) everythingIsFree() {
	time.Sleep(15 * time.Second)
	w.network.calm = true
	locker, err := lock.New(w.network, &lock.Options{Logger: discard})
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range 3 {
		if err := locker.Do(context.Background(), lock.Key{Name: fmt.Sprint("n", n)}, nothing); err != nil {
			w.t.Errorf("seed %d: %v", w.seed, err)
		}
	}
}

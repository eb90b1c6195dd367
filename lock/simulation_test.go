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

// network stands between the lockers and their store. It delays requests, drops
// requests and answers, and delivers late copies.
type network struct {
	driver.Store
	mu     sync.Mutex
	random *rand.Rand
	late   sync.WaitGroup // copies under way
	calm   bool           // nothing goes wrong any more
}

func (n *network) roll(of int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm {
		return -1
	}
	return n.random.IntN(of)
}

var errDropped = errors.New("connection lost")

type request func(context.Context) (driver.Row, bool, error)

// send sends a request, perhaps with a fault, and perhaps a copy of it that is
// applied up to half a minute later. A refusal that its sender got has no
// copies.
func (n *network) send(ctx context.Context, apply request) (driver.Row, bool, error) {
	copied := n.roll(5) == 0
	row, ok, err := n.sendOnce(ctx, apply)
	if copied && (ok || err != nil) {
		n.applyLate(apply)
	}
	return row, ok, err
}

func (n *network) sendOnce(ctx context.Context, apply request) (driver.Row, bool, error) {
	if d := n.roll(20); d > 0 {
		time.Sleep(time.Duration(d) * time.Millisecond)
	}
	faults := []locktest.Fault{locktest.DropBefore, locktest.ApplyThenDrop, locktest.ApplyThenHang, locktest.HangThenApply}
	fault := locktest.None
	if i := n.roll(12); i >= 0 && i < len(faults) {
		fault = faults[i]
	}
	if err := ctx.Err(); err != nil { // its sender has given up, and knows nothing about copies of it
		return driver.Row{}, false, err
	}
	switch fault {
	case locktest.None:
		return apply(ctx)
	case locktest.ApplyThenDrop, locktest.ApplyThenHang:
		_, _, _ = apply(context.WithoutCancel(ctx))
	case locktest.HangThenApply:
		n.applyLate(apply)
	}
	if fault == locktest.DropBefore || fault == locktest.ApplyThenDrop {
		return driver.Row{}, false, errDropped
	}
	<-ctx.Done()
	return driver.Row{}, false, ctx.Err()
}

func (n *network) applyLate(apply request) {
	after := time.Duration(n.roll(30_000)) * time.Millisecond
	n.late.Go(func() {
		time.Sleep(after)
		_, _, _ = apply(context.Background())
	})
}

// client connects one invocation to the network. It fails the test if a claim
// of the invocation is granted after the invocation has ended.
type client struct {
	*network
	sim    *simulation
	token  atomic.Pointer[string]
	killed atomic.Bool // nothing is sent any more

	mu       sync.Mutex
	over     bool            // the invocation is
	released map[string]bool // by stored name, once a release was sent: the store has answered it
}

// hasEnded reports whether the invocation needs the row no more.
func (in *client) hasEnded(name string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	answered, sent := in.released[name]
	return answered || in.over && !sent && !in.killed.Load()
}

// releases notes that a release was sent, or answered.
func (in *client) releases(name string, answered bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.released[name] = in.released[name] || answered
}

func (in *client) send(ctx context.Context, apply request) (driver.Row, bool, error) {
	if in.killed.Load() {
		return driver.Row{}, false, &driver.Error{Rejected: true, Err: errors.New("killed")}
	}
	return in.network.send(ctx, apply)
}

func (in *client) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // as it was sent: the engine dates its claim anew
	in.token.Store(&claim.Token)
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		ended := in.hasEnded(claim.Name)
		row, ok, err := in.Store.Acquire(ctx, &claim)
		if ok && ended {
			in.sim.t.Errorf("seed %d: at %v a late claim got %q for an invocation that had ended", in.sim.seed, time.Now(), claim.Name)
		}
		return row, ok, err
	})
}

func (in *client) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) { return in.Store.Renew(ctx, r) })
}

func (in *client) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	in.releases(s.Name, false)
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		row, ok, err := in.Store.Release(ctx, s)
		if err == nil { // applied or not
			in.releases(s.Name, true)
		}
		return row, ok, err
	})
}

const (
	names = 3 // "n0" and so on
	limit = 2 // how many may hold the name "limited" at the same time
)

// rows are the stored names.
var rows = []string{"/n0", "/n1", "/n2", "/limited", "/slot:2:limited"}

// simulation is one simulated history.
type simulation struct {
	t       *testing.T
	seed    uint64
	network *network

	mu        sync.Mutex
	holds     []locktest.Hold
	limited   []locktest.Hold
	completed map[lock.Key]time.Time // when the engine confirmed it
	excused   map[string]bool        // rows and tokens whose invocation was killed, or got no answer to its release
	runs      int
	crashes   int
	most      int // holders of the limited name
}

// seeds returns how many histories to play: LAMBDALOCK_SEEDS divided by share,
// or the usual number if it is not set.
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

// TestSimulation checks P1 to P5 in simulated histories: invocations of every
// kind, with clocks that differ, contend over a network that drops, delays and
// repeats requests. It also checks that no name is held for nobody. A failure
// names its seed.
func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	t.Parallel()
	simulate(t, seeds(t, 150, 1), func() driver.Store { return memstore.New() })
}

// TestSimulationOnDynamoDB does the same with the conditions of the DynamoDB
// store.
func TestSimulationOnDynamoDB(t *testing.T) {
	t.Parallel()
	simulate(t, seeds(t, 5, 200), func() driver.Store { return openDynamo(t) })
}

// openDynamo returns a DynamoDB store on a table of its own.
func openDynamo(t *testing.T) driver.Store {
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb"), HTTPClient: direct{fakedynamo.New()},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	if err := dynamostore.EnsureTable(context.Background(), client, "locks"); err != nil {
		t.Error(err)
	}
	return dynamostore.New(client, "locks")
}

// direct is an HTTP client that calls a handler without a connection, because
// fake time stands still while a connection is read.
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
	runs, crashes, most := 0, 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			sim := &simulation{t: t, seed: seed, completed: map[lock.Key]time.Time{}, excused: map[string]bool{}}
			sim.network = &network{Store: open(), random: rand.New(rand.NewPCG(seed, 1))}
			sim.play()
			runs, crashes, most = runs+sim.runs, crashes+sim.crashes, max(most, sim.most)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d histories, %d runs of the work, %d crashes", seeds, runs, crashes)
	if most < limit {
		t.Errorf("never more than %d holders of the limited name, so its limit was not tried", most)
	}
}

func (sim *simulation) play() {
	var wg sync.WaitGroup
	for client := range 8 {
		random := rand.New(rand.NewPCG(sim.seed, uint64(client+2)))
		// Any two clocks differ by less than Grace.
		skew := time.Duration(random.Int64N(int64(lock.DefaultGrace))) - lock.DefaultGrace/2
		wg.Go(func() {
			for range 25 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				sim.invoke(random, skew)
			}
		})
	}
	wg.Wait()
	sim.nothingIsHeldForNobody()
	sim.network.late.Wait()
	sim.nothingIsHeldForNobody()
	if err := locktest.CheckHistory(sim.holds); err != nil {
		sim.t.Errorf("seed %d: %v", sim.seed, err)
	}
	sim.neverMoreThanLimit()
	sim.everythingIsFree()
}

// invoke runs one invocation: with a lease until the deadline, a fixed lease,
// or a heartbeat. It may crash.
func (sim *simulation) invoke(random *rand.Rand, skew time.Duration) {
	key := lock.Key{Name: fmt.Sprint("n", random.IntN(names))}
	o := lock.Options{Logger: discard, MaxWait: time.Duration(random.IntN(2)) * 3 * time.Second}
	switch random.IntN(6) {
	case 0, 1:
		key.Name, o.Limit = "limited", 1+random.IntN(limit) // as during a deployment that changes it
	case 2, 3, 4:
		key.Event = fmt.Sprint("e", random.IntN(12))
	}
	switch random.IntN(3) {
	case 0:
		o.Lease = lock.UntilDeadline()
	case 1:
		o.Lease = lock.FixedLease(5 * time.Second)
	case 2:
		o.Lease = lock.Heartbeat(4 * time.Second)
	}
	in := &client{network: sim.network, sim: sim, released: map[string]bool{}}
	locker, err := lock.New(in, &o)
	if err != nil {
		sim.t.Error(err)
		return
	}
	skewed(locker, skew)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer sim.ended(in)
	lk, err := locker.Acquire(ctx, key)
	if err != nil {
		return
	}
	start := time.Now()
	sim.mayRun(key, start)
	select {
	case <-time.After(time.Duration(random.IntN(4000)) * time.Millisecond):
	case <-lk.Context().Done():
	}
	outcome := random.IntN(6)
	sim.ran(locktest.Hold{Name: key.Name, Holder: key.Event, Fence: lk.Lease().Fence, Start: start, End: time.Now()}, outcome == 0)
	switch outcome {
	case 0:
		in.killed.Store(true)
		_ = lk.Release() // ends the goroutine of a heartbeat, and reaches nobody
	case 1:
		_ = lk.Release()
	default:
		sim.complete(lk, key)
	}
}

// ended notes that an invocation has ended. If it was killed, or its release
// got no answer, it may hold a name until its lease ends. Otherwise it may not.
func (sim *simulation) ended(in *client) {
	token := in.token.Load()
	if token == nil {
		return
	}
	in.mu.Lock()
	in.over = true
	in.mu.Unlock()
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, name := range rows {
		sim.excused[name+*token] = !in.hasEnded(name)
	}
}

func (sim *simulation) ran(h locktest.Hold, crash bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if h.Name == "limited" {
		sim.limited = append(sim.limited, h)
	} else {
		sim.holds = append(sim.holds, h)
	}
	sim.runs++
	if crash {
		sim.crashes++
	}
}

// mayRun fails the test if the event's completion was confirmed before (P5).
func (sim *simulation) mayRun(key lock.Key, start time.Time) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if at, ok := sim.completed[key]; ok && key.Event != "" {
		sim.t.Errorf("seed %d: %v ran at %v, although it was completed at %v", sim.seed, key, start, at)
	}
}

func (sim *simulation) complete(lk *lock.Lock, key lock.Key) {
	if err := lk.Complete(nil); err == nil {
		sim.mu.Lock()
		sim.completed[key] = time.Now()
		sim.mu.Unlock()
	}
}

// neverMoreThanLimit checks how many held the limited name when each of its
// holders began, by true time.
func (sim *simulation) neverMoreThanLimit() {
	for _, h := range sim.limited {
		holders := 0
		for _, other := range sim.limited {
			if !other.Start.After(h.Start) && other.End.After(h.Start) {
				holders++
			}
		}
		if holders > limit {
			sim.t.Errorf("seed %d: %d holders at %v", sim.seed, holders, h.Start)
		}
		sim.most = max(sim.most, holders)
	}
}

// nothingIsHeldForNobody runs before any lease has had the time to end (P4).
func (sim *simulation) nothingIsHeldForNobody() {
	for _, name := range rows {
		row := readRow(sim.t, sim.network.Store, name)
		if row.Token != "" && !sim.excused[name+row.Token] {
			sim.t.Errorf("seed %d: at %v %s is held until %v, and nobody holds it", sim.seed, time.Now(), name, row.Until)
		}
	}
}

// everythingIsFree acquires every name after the longest lease has ended (P4).
func (sim *simulation) everythingIsFree() {
	time.Sleep(15 * time.Second)
	sim.network.calm = true
	for _, o := range []lock.Options{{}, {Limit: limit}} {
		o.Logger, o.Lease = discard, lock.FixedLease(time.Minute)
		locker, err := lock.New(sim.network, &o)
		if err != nil {
			sim.t.Fatal(err)
		}
		keys := []string{"n0", "n1", "n2"}
		if o.Limit > 0 {
			keys = []string{"limited", "limited"}
		}
		for _, name := range keys {
			if _, err := locker.Acquire(context.Background(), lock.Key{Name: name}); err != nil {
				sim.t.Errorf("seed %d: %s: %v", sim.seed, name, err)
			}
		}
	}
}

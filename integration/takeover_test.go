package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const crashLease = 2 * time.Second // as the peers have it, so with a smaller Grace

// BenchmarkTakeover measures the wait for a holder that took a lease of two
// seconds and died.
func BenchmarkTakeover(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	arrivals := []struct {
		name string
		at   time.Duration // after the acquire of the holder
	}{
		{"waiter from the beginning", 0},
		{"early waiter, 1.5 s before lease end", crashLease - 1500*time.Millisecond},
		{"late waiter, 1 s after lease end", crashLease + time.Second},
	}
	crashes := 5 // each with a name of its own
	if testing.Short() {
		arrivals = arrivals[1:2]
	}
	waits := make([][]waited, len(arrivals))
	for b.Loop() {
		var wg sync.WaitGroup
		for i, a := range arrivals {
			waits[i] = make([]waited, crashes)
			for j := range crashes {
				// Apart from each other, so that no waiter meets another's requests.
				apart := time.Duration(i+j*len(arrivals)) * 40 * time.Millisecond
				wg.Go(func() {
					_ = delayFor(b.Context(), apart)
					waits[i][j] = afterCrash(b, s, a.at)
				})
			}
		}
		wg.Wait()
	}
	f := newFigures(fmt.Sprintf("Takeover after a crash, lease %v, %v per request", crashLease, requestDelay),
		"", "ms after lease end", "min..max", "own wait ms", "requests")
	for i, a := range arrivals {
		reportWaits(f, a.name, waits[i])
	}
}

// waited is how one waiter fared that waited for a dead holder.
type waited struct {
	after    time.Duration // lease end
	own      time.Duration // its whole wait
	requests int64
}

func afterCrash(b *testing.B, s servers.Server, arrive time.Duration) waited {
	w := newWire(requestDelay)
	defer w.next.CloseIdleConnections()
	store := dynamostore.New(newClient(s.Endpoint, w), table)
	key := lock.Key{Name: "crash/" + rand.Text()}
	began := time.Now()
	dead, err := newLocker(b, store, lock.Options{Lease: lock.FixedLease(crashLease), Grace: 500 * time.Millisecond}).Acquire(b.Context(), key)
	if err != nil {
		b.Error(err)
		return waited{}
	}
	_ = delayFor(b.Context(), time.Until(began.Add(arrive)))
	w.take()
	asked := time.Now()
	lk, err := newLocker(b, store, lock.Options{Lease: lock.FixedLease(crashLease), Grace: 500 * time.Millisecond, MaxWait: time.Minute}).Acquire(b.Context(), key)
	if err != nil {
		b.Error(err)
		return waited{}
	}
	got := waited{time.Since(dead.Lease().Until), time.Since(asked), w.take()}
	expect.OK(b, lk.Release())
	return got
}

func reportWaits(f *figures, name string, all []waited) {
	var after, own []time.Duration
	var requests []int64
	for _, w := range all {
		after, own, requests = append(after, w.after), append(own, w.own), append(requests, w.requests)
	}
	f.add(name, ms(median(after)), ms(slices.Min(after))+".."+ms(slices.Max(after)), ms(median(own)),
		fmt.Sprintf("%d (%d..%d)", median(requests), slices.Min(requests), slices.Max(requests)))
}

// BenchmarkLostAnswer measures an acquire that was applied, but whose answer
// was lost with its connection.
func BenchmarkLostAnswer(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	w, plan := newWire(requestDelay), &fault.Script{}
	w.plan = plan
	b.Cleanup(w.next.CloseIdleConnections)
	locker := newLocker(b, dynamostore.New(newClient(s.Endpoint, w), table), lock.Options{Lease: lock.FixedLease(30 * time.Second)})
	runs := 40
	if testing.Short() {
		runs = 5
	}
	var own []time.Duration
	var requests []int64
	for b.Loop() {
		for range runs {
			got, sent := lostAnswer(b.Context(), b, locker, w, plan)
			own, requests = append(own, got), append(requests, sent)
		}
	}
	f := newFigures(fmt.Sprintf("Lost answer to the acquire, %v per request", requestDelay), "", "ms until it is had", "min..max", "requests")
	f.add("Locker", ms(median(own)), ms(slices.Min(own))+".."+ms(slices.Max(own)), fmt.Sprintf("%d (%d..%d)", median(requests), slices.Min(requests), slices.Max(requests)))
	b.ReportMetric(float64(median(own))/1e6, "ms-until-had")
}

func lostAnswer(ctx context.Context, b *testing.B, locker *lock.Locker, w *wire, plan *fault.Script) (time.Duration, int64) {
	w.take()
	plan.Plan("UpdateItem", fault.ApplyThenDrop)
	began := time.Now()
	lk := expect.Value(locker.Acquire(ctx, lock.Key{Name: "lost/" + rand.Text()}))(b)
	took, sent := time.Since(began), w.take()
	expect.Must(b, lk.Release())
	return took, sent
}

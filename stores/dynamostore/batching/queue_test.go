package batching_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestFullRequestsWaitForNobody shows that a full request leaves at once,
// however many others are under way. Otherwise most claims would run out of
// time where a table is slow.
func TestFullRequestsWaitForNobody(t *testing.T) { // F11
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		began := time.Now()
		f.mustAcquire(t, claimsOf("name", 40*25)...)
		if took := time.Since(began); took != latency {
			t.Errorf("the claims took %v, want %v", took, latency)
		}
	})
}

// TestHungRequestsHoldUpNobody shows that claims wait 10 ms at most for earlier
// requests, even if these have no answer.
func TestHungRequestsHoldUpNobody(t *testing.T) { // F11
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
			if slices.ContainsFunc(r.Keys, func(name string) bool { return strings.HasPrefix(name, "hangs") }) {
				return fakedynamo.Hang
			}
			return fakedynamo.None
		})
		for range 2 { // the second time as the first
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() { f.acquire(ctx, claimsOf("hangs"+string(rune('a'+i)), 2)...) })
				time.Sleep(time.Microsecond) // a request for each
			}
			began := time.Now()
			f.mustAcquire(t, claimsOf("name", 2)...)
			if took := time.Since(began); took != 10*time.Millisecond+latency {
				t.Errorf("the claims took %v, want %v", took, 10*time.Millisecond+latency)
			}
			all.Wait()
		}
	})
}

// TestBatchesAtTheSameTime shows that the records of a batch find company while
// another batch of the process has requests under way.
func TestBatchesAtTheSameTime(t *testing.T) { // F39
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		var all sync.WaitGroup
		for _, names := range []string{"a", "b", "c", "d", "e"} {
			all.Go(func() { f.mustAcquire(t, claimsOf(names, 10)...) })
			time.Sleep(latency / 5)
		}
		all.Wait()
		got := slices.DeleteFunc(f.take(), func(s string) bool { return strings.Contains(s, " ") })
		if len(got) != 5 {
			t.Errorf("%q, want a request for each of 5 batches", got)
		}
	})
}

// TestRequestEndsBeforeItsLastCaller shows that nothing of a request goes on
// after all claims have given up.
func TestRequestEndsBeforeItsLastCaller(t *testing.T) { // F17
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		ended := false
		f.store = storeOf(split(f, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Second) // it ends late
			ended = true
			panic(http.ErrAbortHandler)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, o := range f.acquire(ctx, claimsOf("name", 3)...) {
			if !errors.Is(o.err, context.DeadlineExceeded) {
				t.Errorf("%v, %v, want the end of the claim's own context", o.ok, o.err)
			}
		}
		if !ended {
			t.Error("the request goes on")
			time.Sleep(2 * time.Second)
		}
	})
}

// TestClientThatExits shows that each claim has an answer if the client ends
// its goroutine: that it is unknown what became of the request.
func TestClientThatExits(t *testing.T) { // F18
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		f.store = storeOf(split(f, func(http.ResponseWriter, *http.Request) { runtime.Goexit() }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		for _, o := range f.acquire(ctx, claimsOf("name", 3)...) {
			if e := (*driver.Error)(nil); !errors.As(o.err, &e) || e.Lasting || e.Unapplied || time.Since(began) > 0 {
				t.Errorf("%v, %v after %v", o.ok, o.err, time.Since(began))
			}
		}
	})
}

// TestOneNameTwice shows that two claims of a name never meet in a request,
// which the service refuses.
func TestOneNameTwice(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		claims := claimsOf("name", 4)
		claims[1].Name = claims[0].Name
		granted := 0
		for _, o := range f.acquire(t.Context(), claims...) {
			if o.err != nil {
				t.Error(o.err)
			}
			if o.ok {
				granted++
			}
		}
		// The other claim goes alone, before or after the batch.
		batches, statements := 0, 0
		got := f.take()
		for _, sent := range got {
			if sent == "BatchExecuteStatement" {
				batches++
			}
			if strings.HasPrefix(sent, "INSERT") {
				statements++
			}
		}
		if granted != 3 || batches != 1 || statements != 3 {
			t.Errorf("%d claims of 3 names were granted, by %q; want a batch of 3 and one alone", granted, got)
		}
	})
}

// TestClientThatPanics shows that a panic of the client reaches each record,
// whose goroutine recovers, and does not end the process.
func TestClientThatPanics(t *testing.T) { // F48
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		f.store = storeOf(split(f, func(http.ResponseWriter, *http.Request) { panic("interceptor") }))
		var requests []func(context.Context)
		for _, c := range claimsOf("name", 3) {
			requests = append(requests, func(ctx context.Context) {
				defer func() {
					if p := recover(); p != "interceptor" {
						t.Errorf("%s: recovered %v", c.Name, p)
					}
				}()
				_, _, err := f.store.Acquire(ctx, c)
				t.Errorf("%s: %v", c.Name, err)
			})
		}
		company(t.Context(), requests...)
	})
}

// TestContextEndsInQueue shows that a claim whose caller has gone is not sent.
func TestContextEndsInQueue(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 16})
		short, cancel := context.WithTimeout(ctx, 500*time.Microsecond)
		defer cancel()
		var all sync.WaitGroup
		claims := claimsOf("name", 3)
		for i, c := range claims {
			all.Go(func() {
				ctx := ctx
				if i == 0 {
					ctx = short
				}
				_, ok, err := f.store.Acquire(ctx, c)
				if i == 0 && !errors.Is(err, context.DeadlineExceeded) || i > 0 && !ok {
					t.Errorf("claim %d: %v, %v", i, ok, err)
				}
			})
		}
		all.Wait()
		if f.Item(table, "name0") != nil || len(f.take()) != 3 {
			t.Errorf("the claim was sent: %v", f.Item(table, "name0"))
		}
	})
}

// lateContext has ended before anybody is told.
type lateContext struct {
	context.Context
	ended atomic.Bool
}

// Err implements context.Context.
func (c *lateContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestContextEndsAtDeparture shows that a claim whose context has ended is not
// sent even if its caller is still there.
func TestContextEndsAtDeparture(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		timed, cancel := context.WithTimeout(t.Context(), 10*latency)
		defer cancel()
		company(t.Context(), func(ctx context.Context) {
			late := &lateContext{Context: invocation.WithBatch(timed, invocation.BatchOf(ctx))}
			time.AfterFunc(100*time.Microsecond, func() { late.ended.Store(true) })
			if _, ok, err := f.store.Acquire(late, claimOf("name0")); ok || err == nil {
				t.Error("granted")
			}
		}, func(ctx context.Context) {
			time.Sleep(200 * time.Microsecond)
			if _, ok, err := f.store.Acquire(ctx, claimOf("name1")); !ok || err != nil {
				t.Error(ok, err)
			}
		})
		if f.Item(table, "name0") != nil {
			t.Error("the claim was sent")
		}
	})
}

// TestRequestLivesAsLongAsItsMembers shows that a request ends when the last of
// its callers has gone, and that each caller goes when its own context ends.
func TestRequestLivesAsLongAsItsMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hangs bool
		ends  []time.Duration
	}{
		"answered":              {false, []time.Duration{latency / 2, time.Minute, 2 * latency}},
		"hangs":                 {true, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
		"hangs, the last first": {true, []time.Duration{3 * time.Second, 2 * time.Second, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				if c.hangs {
					f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Hang })
				}
				began := time.Now()
				requests := make([]func(context.Context), len(c.ends))
				for i, end := range c.ends {
					requests[i] = func(ctx context.Context) {
						ctx, cancel := context.WithTimeout(ctx, end)
						defer cancel()
						_, ok, err := f.store.Acquire(ctx, claimOf(fmt.Sprint("name", i)))
						want := min(end, latency)
						if c.hangs {
							want = end
						}
						if took := time.Since(began); took != want || ok != (!c.hangs && end > latency) {
							t.Errorf("claim %d ended after %v with %v, %v", i, took, ok, err)
						}
					}
				}
				company(t.Context(), requests...)
			})
		})
	}
}

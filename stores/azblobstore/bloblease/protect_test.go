package bloblease_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/azblobstore/bloblease"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
)

// rig is a blob to protect, in a service whose time is that of the bubble.
type rig struct {
	*testing.T
	*azuretest.Fake
	client *container.Client
	blob   *blob.Client
	log    bytes.Buffer
	opts   bloblease.Options
	wall   atomic.Int64 // how far the wall clock has jumped, in nanoseconds
}

// protected runs test in a bubble, which fails if a goroutine is left behind.
func protected(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Fake: azuretest.NewFake()}
		r.client = r.Container()
		r.blob = r.client.NewBlobClient("b")
		r.opts.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
		expect.Must(t, write(t.Context(), r.client.NewBlockBlobClient("b"), "old", ""))
		test(r)
	})
}

func (r *rig) protect(work func(context.Context, bloblease.Lease) error) error {
	clock := func() time.Time { return time.Now().Add(time.Duration(r.wall.Load())) }
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour) // work that waits for a loss that does not come
	defer cancel()
	return bloblease.ProtectWith(ctx, r.blob, &r.opts, clock, work)
}

// over gives the client another transport.
func (r *rig) over(transport policy.Transporter) {
	options := &blob.ClientOptions{}
	options.Transport = transport
	client, err := blob.NewClientWithNoCredential(r.blob.URL(), options)
	if err != nil {
		r.Fatal(err)
	}
	r.blob = client
}

func (r *rig) do(action, id string) string {
	r.Helper()
	l := &leases{r.T, &azuretest.Service{Client: r.client}, "b"}
	return l.do(action, id)
}

// free fails the test if the blob is still leased.
func (r *rig) free() {
	r.Helper()
	if got := r.do("acquire", idB); got != "ok" {
		r.Errorf("afterwards the blob cannot be leased: %s", got)
	}
}

func idle(d time.Duration) func(context.Context, bloblease.Lease) error {
	return func(context.Context, bloblease.Lease) error {
		time.Sleep(d)
		return nil
	}
}

// untilLost works until its context ends, and returns nil.
func untilLost(ctx context.Context, _ bloblease.Lease) error {
	<-ctx.Done()
	return nil
}

func wantLost(t *testing.T, err error) *lock.LostError {
	t.Helper()
	var lost *lock.LostError
	if !errors.As(err, &lost) || !errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrHeld) {
		t.Fatalf("got %v, want a *LostError", err)
	}
	return lost
}

func TestProtect(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		ctx, b := t.Context(), s.NewBlobClient("b")
		expect.Must(t, write(ctx, s.NewBlockBlobClient("b"), "old", ""))
		failed := errors.New("the work's own")
		err := bloblease.Protect(ctx, b, nil, func(ctx context.Context, lease bloblease.Lease) error {
			others := &leases{t, s, "b"}
			if got := others.do("write", ""); got != "412 LeaseIdMissing" {
				t.Errorf("somebody else's write: %s", got)
			}
			var held *lock.HeldError
			if err := bloblease.Protect(ctx, b, nil, mustNotRun); !errors.As(err, &held) || held.Key.Name != b.URL() || !bloberror.HasCode(err, bloberror.LeaseAlreadyPresent) {
				t.Errorf("somebody else's Protect: %v", err)
			}
			_, err := s.NewBlockBlobClient("b").Upload(ctx, streaming.NopCloser(strings.NewReader("new")), &blockblob.UploadOptions{AccessConditions: lease.Conditions()})
			if err != nil {
				t.Errorf("the work's own write: %v", err)
			}
			return failed
		})
		if !errors.Is(err, failed) || err.Error() != failed.Error() {
			t.Errorf("got %v, want the work's error", err)
		}
		if err := write(ctx, s.NewBlockBlobClient("b"), "after", ""); err != nil {
			t.Errorf("a write after the release: %v", err)
		}
		err = bloblease.Protect(ctx, b, nil, func(ctx context.Context, lease bloblease.Lease) error {
			_, err := b.Delete(ctx, &blob.DeleteOptions{AccessConditions: lease.Conditions()})
			return err
		})
		if err != nil {
			t.Errorf("work that deletes the blob: %v", err)
		}
		if err := bloblease.Protect(ctx, b, nil, mustNotRun); !bloberror.HasCode(err, bloberror.BlobNotFound) {
			t.Errorf("no blob: %v", err)
		}
	})
}

// mustNotRun is work that must not run.
func mustNotRun(context.Context, bloblease.Lease) error { panic("the work ran") }

func TestProtectRenews(t *testing.T) {
	t.Parallel()
	for length, renewals := range map[time.Duration]int{0: 9, 15 * time.Second: 19, 60 * time.Second: 4} {
		t.Run(length.String(), func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				r.opts.Lease = length
				err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
					for range 99 {
						time.Sleep(time.Second)
						if got := r.do("acquire", idB); got != "409 LeaseAlreadyPresent" || ctx.Err() != nil {
							r.Fatalf("somebody else's acquire: %s; context: %v", got, context.Cause(ctx))
						}
					}
					return nil
				})
				if n := r.Plan.Requests("renew"); err != nil || n != renewals || r.log.Len() != 0 {
					r.Errorf("%d renewals, want %d; error %v; log %s", n, renewals, err, &r.log)
				}
				r.free()
			})
		})
	}
}

// TestProtectAcquire has what may happen to the request that leases the blob.
func TestProtectAcquire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults            []fault.Fault
		acquires          int
		want              string // in the error; empty if work runs
		releases          int    // if work does not run
		temporary, denied bool
	}{
		"lost answer":        {faults: []fault.Fault{fault.ApplyThenDrop}, acquires: 2},
		"cut answer":         {faults: []fault.Fault{fault.Truncate}, acquires: 2},
		"late answer":        {faults: []fault.Fault{fault.ApplyThenHang}, acquires: 2},
		"no answer":          {faults: []fault.Fault{fault.Hang, fault.Hang}, acquires: 3},
		"broken connection":  {faults: []fault.Fault{fault.DropBefore, fault.DropBefore, fault.DropBefore}, acquires: 4},
		"throttled":          {faults: []fault.Fault{fault.Throttle, fault.Throttle}, acquires: 3},
		"server error":       {faults: []fault.Fault{fault.Fail}, acquires: 2},
		"never answers":      {faults: slices.Repeat([]fault.Fault{fault.ApplyThenHang}, 9), acquires: 3, want: "no answer in time (can this computer reach", releases: 1, temporary: true},
		"refused, then none": {faults: slices.Concat([]fault.Fault{fault.Throttle}, slices.Repeat([]fault.Fault{fault.Hang}, 9)), acquires: 4, want: "503 ServerBusy: The server is busy.", releases: 1, temporary: true},
		"lost, then denied":  {faults: []fault.Fault{fault.ApplyThenHang, fault.Deny}, acquires: 2, want: "containers/blobs/write was denied", releases: 1, denied: true},
		"always throttled":   {faults: slices.Repeat([]fault.Fault{fault.Throttle}, 99), acquires: -1, want: "503 ServerBusy", releases: 1, temporary: true},
		"denied":             {faults: []fault.Fault{fault.Deny}, acquires: 1, want: "containers/blobs/write was denied: 403 AuthorizationPermissionMismatch: This request is not authorized to perform this operation using this permission. (give the identity the role Storage Blob Data Contributor", denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				r.Plan.Plan("acquire", c.faults...)
				ran := false
				began := time.Now()
				err := r.protect(func(context.Context, bloblease.Lease) error {
					ran = true
					return nil
				})
				if took := time.Since(began); took > 6*time.Second {
					r.Errorf("it took %v", took)
				}
				if n := r.Plan.Requests("acquire"); n != c.acquires && c.acquires > 0 {
					r.Errorf("%d requests, want %d", n, c.acquires)
				}
				if ran != (c.want == "") || ran != (err == nil) {
					r.Fatalf("work ran: %v, error %v", ran, err)
				}
				var e *lock.StoreError
				if !ran && (!errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Temporary != c.temporary || e.Unapplied != (c.releases == 0) || c.acquires > 0 && e.Requests != c.acquires || (e.Action != "") != c.denied) {
					r.Errorf("error %v, want %s", err, c.want)
				}
				if n := r.Plan.Requests("release"); !ran && n != c.releases {
					r.Errorf("%d releases, want %d", n, c.releases)
				}
				r.Plan.Plan("acquire")
				r.free()
			})
		})
	}
}

func TestProtectHeld(t *testing.T) { // F43
	t.Parallel()
	for _, state := range []string{"acquire", "break", "acquire infinite"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				if state == "break" {
					r.do("acquire", idA)
				}
				if got := r.do(state, idA); got != "ok" {
					r.Fatal(got)
				}
				var held *lock.HeldError
				err := r.protect(mustNotRun)
				if !errors.As(err, &held) || !errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) || err.Error() != "lambdalock: key 09f0b092ffa0 is held by another: Azure blob https://fake.blob.core.windows.net/c/b: 409 LeaseAlreadyPresent: This is LeaseAlreadyPresent." {
					r.Errorf("got %v", err)
				}
				if n := r.Plan.Requests("release"); n != 0 {
					r.Errorf("%d releases of somebody else's lease", n)
				}
			})
		})
	}
}

// TestProtectBrokenAtOnce: the lease is acquired without an answer, and broken
// before the request is repeated.
func TestProtectBrokenAtOnce(t *testing.T) { // F43
	t.Parallel()
	protected(t, func(r *rig) {
		r.Next("acquire", func(request *http.Request) (*http.Response, error) {
			answer, err := fault.InProcess{Handler: r.Fake}.RoundTrip(request)
			if err != nil || answer.StatusCode != http.StatusCreated || r.do("break", "") != "ok" {
				r.Fatal("not broken")
			}
			return nil, io.EOF
		})
		if err := r.protect(mustNotRun); !errors.As(err, new(*lock.HeldError)) || !bloberror.HasCode(err, bloberror.LeaseIsBreakingAndCannotBeAcquired) {
			r.Errorf("got %v, want a *HeldError", err)
		}
		r.free()
	})
}

// TestProtectTakesOver: the holder has died, and its lease ends by itself.
func TestProtectTakesOver(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		r.do("acquire", idA) // for 15 s
		began := time.Now()
		for {
			err := r.protect(idle(0))
			if err == nil {
				break
			}
			if !errors.As(err, new(*lock.HeldError)) {
				r.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took != 15*time.Second {
			r.Errorf("the blob was taken over after %v, want 15s", took)
		}
	})
}

func TestProtectRenewalFails(t *testing.T) { // F43
	t.Parallel()
	for name, faults := range map[string][]fault.Fault{
		"lost answer": {fault.ApplyThenDrop},
		"no answer":   slices.Repeat([]fault.Fault{fault.Hang}, 4),
		"throttled":   {fault.Throttle, fault.Throttle, fault.Throttle},
		"denied once": {fault.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				r.Plan.Plan("renew", faults...)
				err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
					time.Sleep(50 * time.Second)
					return context.Cause(ctx)
				})
				if err != nil {
					r.Errorf("got %v", err)
				}
				r.free()
			})
		})
	}
}

// TestProtectBehindProxy: what a proxy answers says nothing about the lease, so
// each request is repeated.
func TestProtectBehindProxy(t *testing.T) { // F43
	t.Parallel()
	protected(t, func(r *rig) {
		nothing := azuretest.Answering(http.StatusNotFound, "", "<html>")
		r.Next("acquire", azuretest.Answering(http.StatusBadGateway, "", "<html>"))
		r.Next("renew", nothing)
		r.Next("release", nothing)
		err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
			time.Sleep(50 * time.Second)
			return context.Cause(ctx)
		})
		if err != nil || r.log.Len() > 0 {
			r.Errorf("got %v, log %s", err, &r.log)
		}
		r.free()
	})
}

// TestProtectLost has the ways in which a lease is lost: when the work's
// context ends, and why.
func TestProtectLost(t *testing.T) { // F43
	t.Parallel()
	for name, c := range map[string]struct {
		during   func(*rig)
		after    time.Duration
		want     string
		releases int // successful or not
	}{
		"no answer": { // 2 s before the end of the lease
			func(r *rig) { r.Plan.Always("renew", fault.Hang) }, 28 * time.Second, ": no answer in time", 1,
		},
		"denied for good": {
			func(r *rig) { r.Plan.Always("renew", fault.Deny) }, 28 * time.Second, ": 403 AuthorizationPermissionMismatch: This request is not authorized to perform this operation using this permission.", 1,
		},
		"no answer, after a renewal": {
			func(r *rig) { r.Plan.Plan("renew", fault.None); r.Plan.Always("renew", fault.DropBefore) }, 38 * time.Second, ": read tcp: connection reset by peer", 1,
		},
		"broken by somebody": { // at the next renewal
			func(r *rig) { r.do("break", "") }, 10 * time.Second, ": 409 LeaseIsBrokenAndCannotBeRenewed: This is LeaseIsBrokenAndCannotBeRenewed.", 1,
		},
		"taken over": {
			func(r *rig) { r.do("break now", ""); r.do("acquire", idB) }, 10 * time.Second, ": 409 LeaseIdMismatchWithLeaseOperation", 1,
		},
		"container deleted": {
			func(r *rig) { _, _ = r.client.Delete(r.Context(), nil) }, 10 * time.Second, ": 404 ContainerNotFound", 1,
		},
		"frozen": { // only the wall clock has seen it
			func(r *rig) { time.AfterFunc(5*time.Second, func() { r.wall.Store(int64(time.Minute)) }) }, 10 * time.Second, " is lost", 1,
		},
		"a panic in the client": {
			func(r *rig) {
				r.Next("renew", func(*http.Request) (*http.Response, error) { panic("a panic in the client") })
			}, 10 * time.Second, "panic", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				began := time.Now()
				var cause error
				err := func() (err error) {
					defer func() {
						if v := recover(); v != nil {
							err = errors.New("panic")
						}
					}()
					return r.protect(func(ctx context.Context, _ bloblease.Lease) error {
						c.during(r)
						<-ctx.Done()
						cause = context.Cause(ctx)
						return nil
					})
				}()
				lost := wantLost(t, cause)
				if took := time.Until(began).Abs(); took < c.after || took > c.after+6*time.Second || lost.Key.Name != r.blob.URL() {
					r.Errorf("lost after %v, want %v; %+v", took, c.after, lost)
				}
				if c.want != "panic" && err != cause { //nolint:errorlint // the same error
					r.Errorf("Protect returned %v, the cause was %v", err, cause)
				}
				if !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "lambdalock:") > 1 {
					r.Errorf("got %v, want %s", err, c.want)
				}
				if n := r.Plan.Requests("release"); n < c.releases {
					r.Errorf("%d releases", n)
				}
			})
		})
	}
}

// TestProtectEnds: the context ends 28 s after the acquire was sent, not later,
// whatever the requests do.
func TestProtectEndsTheWorkInTime(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		r.Plan.Plan("acquire", fault.ApplyThenHang) // the first lease lasts from 0 to 30 s, the second from 2 s on
		r.Plan.Plan("renew", slices.Repeat([]fault.Fault{fault.Hang, fault.DropBefore, fault.Throttle, fault.Fail}, 99)...)
		began := time.Now()
		var lasted time.Duration
		err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
			<-ctx.Done()
			lasted = time.Since(began)
			return context.Cause(ctx)
		})
		lost := wantLost(t, err)
		if lasted < 30*time.Second || lasted > 30500*time.Millisecond || !lost.Until.Equal(lost.Until.Round(0)) {
			r.Errorf("the work lasted %v, want 28 s after the second request; %+v", lasted, lost)
		}
		if !strings.Contains(r.log.String(), "level=ERROR") {
			r.Errorf("the log has %s", &r.log)
		}
	})
}

// stuck is a transport and a log handler that, from a moment on, do not return.
type stuck struct {
	slog.Handler
	*azuretest.Fake
	sends, logs atomic.Bool // which of them do not return
	release     chan struct{}
}

func (s *stuck) Do(r *http.Request) (*http.Response, error) {
	if s.sends.Load() {
		<-s.release
	}
	return s.Fake.Do(r)
}

func (s *stuck) Handle(context.Context, slog.Record) error {
	if s.logs.Load() {
		<-s.release
	}
	return nil
}

// TestProtectStuck: the work ends before its lease does even if the renewals
// wait for a log handler whose output is blocked, or for a client that does not
// heed its context.
func TestProtectStuck(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"log handler", "client"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				s := &stuck{Handler: r.opts.Logger.Handler(), Fake: r.Fake, release: make(chan struct{})}
				r.opts.Logger = slog.New(s)
				r.over(s)
				r.Plan.Plan("renew", fault.None, fault.Deny)
				began := time.Now()
				err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
					time.Sleep(12 * time.Second) // it was renewed once
					s.sends.Store(name == "client")
					s.logs.Store(name == "log handler")
					select {
					case <-ctx.Done():
						if took := time.Since(began); took != 39*time.Second {
							r.Errorf("the work ended after %v because of %v", took, context.Cause(ctx))
						}
						_ = wantLost(t, context.Cause(ctx))
					case <-time.After(time.Minute):
						r.Error("the work goes on without its lease")
					}
					close(s.release)
					return nil
				})
				_ = wantLost(t, err)
			})
		})
	}
}

func TestProtectWallClockSetBack(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		r.Plan.Always("renew", fault.DropBefore)
		began := time.Now()
		err := r.protect(func(ctx context.Context, l bloblease.Lease) error {
			r.wall.Store(int64(-time.Hour))
			return untilLost(ctx, l)
		})
		if took := time.Since(began); took > 29*time.Second {
			r.Errorf("the work ended after %v", took)
		}
		_ = wantLost(t, err)
	})
}

// slow is a transport whose answers take a while, whatever the context.
type slow struct {
	*azuretest.Fake
	delay      atomic.Int64 // nanoseconds
	open       atomic.Int32
	overlapped atomic.Bool // a request was sent before the one before it was answered
}

func (s *slow) Do(r *http.Request) (*http.Response, error) {
	if s.open.Add(1) > 1 {
		s.overlapped.Store(true)
	}
	defer s.open.Add(-1)
	answer, err := s.Fake.Do(r)
	time.Sleep(time.Duration(s.delay.Load()))
	return answer, err
}

// TestProtectCountsFromTheRequest: a lease begins when the service applies the
// request, which may be long before its answer is there.
func TestProtectCountsFromTheRequest(t *testing.T) {
	t.Parallel()
	for jump, want := range map[time.Duration]time.Duration{0: 28 * time.Second, -time.Hour: 28 * time.Second, 10 * time.Second: 18 * time.Second} {
		t.Run("wall clock jumps "+jump.String(), func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				client := &slow{Fake: r.Fake}
				client.delay.Store(int64(1900 * time.Millisecond))
				r.over(client)
				r.Plan.Always("renew", fault.DropBefore)
				began := time.Now()
				err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
					r.wall.Store(int64(jump))
					client.delay.Store(0)
					<-ctx.Done()
					if took := time.Since(began); took != want {
						r.Errorf("the work ended %v after the request, want %v", took, want)
					}
					return context.Cause(ctx)
				})
				_ = wantLost(t, err)
			})
		})
	}
}

// TestProtectLeavesNothingBehind: neither a renewal, even if the client does
// not heed its context, nor a context that lives on.
func TestProtectLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		client := &slow{Fake: r.Fake}
		client.delay.Store(int64(time.Second))
		r.over(client)
		var left context.Context
		err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
			left = ctx
			time.Sleep(10500 * time.Millisecond) // the renewal was sent after 10 s
			return nil
		})
		if err != nil || r.Plan.Requests("renew") != 1 || client.overlapped.Load() || client.open.Load() > 0 {
			r.Errorf("error %v, requests %v, overlapping: %v, unanswered: %d", err, r.Requests(), client.overlapped.Load(), client.open.Load())
		}
		if left.Err() == nil {
			r.Error("the work's context has not ended")
		}
	})
}

// TestProtectPassesThrough: the work's end is the caller's, and the blob is
// released in any case.
func TestProtectPassesThrough(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for name, work := range map[string]func(context.Context, bloblease.Lease) error{
		"error": func(context.Context, bloblease.Lease) error { return own },
		"panic": func(context.Context, bloblease.Lease) error { panic(own) },
		"exit":  func(context.Context, bloblease.Lease) error { runtime.Goexit(); return nil },
		"error, lease lost": func(ctx context.Context, _ bloblease.Lease) error {
			<-ctx.Done()
			return own
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				if name == "error, lease lost" {
					r.Plan.Always("renew", fault.DropBefore)
				}
				done := make(chan struct{})
				var got any
				go func() {
					defer close(done)
					defer func() {
						if v := recover(); v != nil {
							got = v
						}
					}()
					got = r.protect(work)
				}()
				<-done
				if got != own && name != "exit" { //nolint:errorlint // unchanged
					r.Errorf("got %v, want the work's own", got)
				}
				r.free()
			})
		})
	}
}

func TestProtectEndedContext(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(r.Context())
		work := func(ctx context.Context, _ bloblease.Lease) error {
			cancel(cause)
			time.Sleep(time.Minute) // and the renewals go on
			if got := r.do("acquire", idB); got != "409 LeaseAlreadyPresent" {
				r.Errorf("somebody else's acquire: %s", got)
			}
			return context.Cause(ctx)
		}
		if err := bloblease.Protect(ctx, r.blob, &r.opts, work); err != cause { //nolint:errorlint // unchanged
			r.Errorf("got %v", err)
		}
		n := len(r.Requests())
		if err := bloblease.Protect(ctx, r.blob, &r.opts, work); err != cause || len(r.Requests()) != n { //nolint:errorlint // unchanged
			r.Errorf("an ended context: %v, and %d requests", err, len(r.Requests())-n)
		}
		r.free()
	})
}

// TestProtectCanceledWhileAcquiring: the blob does not stay leased for nobody.
func TestProtectCanceledWhileAcquiring(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		r.Plan.Plan("acquire", fault.ApplyThenHang)
		if err := bloblease.Protect(ctx, r.blob, &r.opts, mustNotRun); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("got %v", err)
		}
		r.free()
	})
}

func TestProtectRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []fault.Fault
		proxy  func(*rig) // sends the release twice, and passes on the second answer
		work   func(*rig, bloblease.Lease)
		lost   bool
		log    string
		leased bool
	}{
		"sent twice": {proxy: func(*rig) {}},
		"sent twice, and somebody else was there": {
			proxy: func(r *rig) { r.do("acquire", idA) },
			lost:  true, log: "409 LeaseIdMismatchWithLeaseOperation", leased: true,
		},
		"sent twice, and then no answer": {
			proxy: func(r *rig) { r.Next("HEAD", azuretest.Answering(http.StatusForbidden, "AuthorizationFailure", "")) },
			lost:  true, log: "409 LeaseIdMismatchWithLeaseOperation",
		},
		"lost answer":     {faults: []fault.Fault{fault.ApplyThenDrop}},
		"no answer, then": {faults: []fault.Fault{fault.Hang}},
		"never answers":   {faults: slices.Repeat([]fault.Fault{fault.Hang}, 9), log: "could not be released", leased: true},
		"denied":          {faults: []fault.Fault{fault.Deny}, log: "could not be released", leased: true},
		"taken over since the last renewal": {
			work: func(r *rig, _ bloblease.Lease) { r.do("break now", ""); r.do("acquire", idA) },
			lost: true, log: "409 LeaseIdMismatchWithLeaseOperation", leased: true,
		},
		"released by the work": {work: func(r *rig, l bloblease.Lease) { r.do("release", l.ID) }},
		"blob deleted":         {work: func(r *rig, l bloblease.Lease) { r.do("delete", l.ID) }},
		"blob deleted, and a renewal": {
			work: func(r *rig, l bloblease.Lease) { r.do("delete", l.ID); time.Sleep(20 * time.Second) }, log: "404 BlobNotFound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				r.Plan.Plan("release", c.faults...)
				if c.proxy != nil {
					r.Next("release", func(request *http.Request) (*http.Response, error) {
						if _, err := r.Do(request.Clone(request.Context())); err != nil {
							r.Error(err)
						}
						c.proxy(r)
						return r.Do(request)
					})
				}
				err := r.protect(func(_ context.Context, l bloblease.Lease) error {
					if c.work != nil {
						c.work(r, l)
					}
					return nil
				})
				if c.lost {
					_ = wantLost(t, err)
				} else if err != nil {
					r.Errorf("got %v", err)
				}
				if !strings.Contains(r.log.String(), c.log) || c.log == "" && r.log.Len() != 0 {
					r.Errorf("the log has %q, want %q", &r.log, c.log)
				}
				if got := r.do("acquire", idB); (got == "409 LeaseAlreadyPresent") != c.leased {
					r.Errorf("the next acquire: %s", got)
				}
			})
		})
	}
}

// TestProtectEndsDuringRenewal: the renewal is canceled and waited for. It may
// have been applied, or may be applied later, which the release forestalls.
func TestProtectEndsDuringRenewal(t *testing.T) {
	t.Parallel()
	for _, meets := range []fault.Fault{fault.Hang, fault.ApplyThenHang} {
		protected(t, func(r *rig) {
			r.Plan.Plan("renew", meets)
			began, id := time.Now(), ""
			err := r.protect(func(_ context.Context, l bloblease.Lease) error {
				id = l.ID
				time.Sleep(10*time.Second + time.Millisecond)
				return nil
			})
			if took := time.Since(began); err != nil || took > 11*time.Second || r.log.Len() != 0 {
				r.Errorf("it took %v, error %v, log %s", took, err, &r.log)
			}
			if got := r.do("renew", id); got != "409 LeaseIdMismatchWithLeaseOperation" {
				r.Errorf("a late renewal: %s", got)
			}
			r.free()
		})
	}
}

// A log handler that panics ends neither the process nor the release.
func TestProtectPanickingLog(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		r.opts.Logger = slog.New(panicking{slog.DiscardHandler})
		r.Plan.Plan("renew", fault.Deny)
		var got any
		func() {
			defer func() { got = recover() }()
			_ = r.protect(untilLost)
		}()
		if got != "a panic in the log" {
			r.Errorf("recovered %v", got)
		}
		r.free()
	})
}

type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("a panic in the log") }

func TestProtectWrongArguments(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		n := len(r.Requests())
		for name, c := range map[string]struct {
			client *blob.Client
			length time.Duration
			work   func(context.Context, bloblease.Lease) error
			want   string
		}{
			"client":    {nil, 0, mustNotRun, "lambdalock: the client of the blob to protect is nil"},
			"work":      {r.blob, 0, nil, "lambdalock: the work to protect is nil"},
			"short":     {r.blob, 14 * time.Second, mustNotRun, "lambdalock: Lease is 14s; use whole seconds from 15s to 1m0s"},
			"long":      {r.blob, 61 * time.Second, mustNotRun, "lambdalock: Lease is 1m1s; use whole seconds from 15s to 1m0s"},
			"negative":  {r.blob, -time.Second, mustNotRun, "lambdalock: Lease is -1s; use whole seconds from 15s to 1m0s"},
			"fractions": {r.blob, 15500 * time.Millisecond, mustNotRun, "lambdalock: Lease is 15.5s; use whole seconds from 15s to 1m0s"},
		} {
			err := bloblease.Protect(r.Context(), c.client, &bloblease.Options{Lease: c.length}, c.work)
			if err == nil || err.Error() != c.want {
				r.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		}
		if len(r.Requests()) != n {
			r.Error("the service was asked")
		}
	})
}

// TestProtectHidesSignature: a URL may be a secret.
func TestProtectHidesSignature(t *testing.T) {
	t.Parallel()
	protected(t, func(r *rig) {
		options := &blob.ClientOptions{}
		options.Transport = r.Fake
		client, err := blob.NewClientWithNoCredential("https://fake.test/account/c/b?sig=secret", options)
		if err != nil {
			r.Fatal(err)
		}
		r.Plan.Always("renew", fault.DropBefore)
		r.Plan.Always("release", fault.DropBefore)
		lost := bloblease.Protect(r.Context(), client, &r.opts, untilLost)
		r.do("acquire", idA)
		held := bloblease.Protect(r.Context(), client, &r.opts, mustNotRun)
		if text := lost.Error() + held.Error() + r.log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "fake.test/account/c/b") {
			r.Error(text)
		}
	})
}

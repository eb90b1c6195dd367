package bloblease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azure"
)

// protection is a lease with its renewals.
type protection struct {
	url    string // without a signature
	client *blob.Client
	lease  *lease.BlobClient
	length time.Duration
	logger *slog.Logger
	clock  func() time.Time // time.Now outside tests

	// The end of the lease, counted from before the request was sent. The monotonic
	// clock may stop while the process is frozen, and the wall clock may be set
	// back, so the earlier of the two ends counts.
	end, wallEnd time.Time
	lost         *lock.LostError

	lose     context.CancelCauseFunc // ends the work
	watch    *time.Timer             // ends the work if the renewals are stuck
	stuck    atomic.Pointer[lock.LostError]
	quit     context.CancelFunc
	done     chan struct{}
	panicked any // in the client or in a log handler
}

func newProtection(client *blob.Client, opts *Options, clock func() time.Time) (*protection, error) {
	if client == nil {
		return nil, &lock.ConfigError{Reason: "the client of the blob to protect is nil"}
	}
	if opts == nil {
		opts = &Options{}
	}
	p := &protection{url: azure.Bare(client.URL()), client: client, length: opts.Lease, logger: opts.Logger, clock: clock}
	if p.length == 0 {
		p.length = defaultLease
	}
	if p.length < shortestLease || p.length > longestLease || p.length%time.Second != 0 {
		return nil, &lock.ConfigError{Reason: fmt.Sprintf("Lease is %v; use whole seconds from %v to %v", p.length, shortestLease, longestLease)}
	}
	if p.logger == nil {
		p.logger = defaultlog.Logger()
	}
	var err error
	p.lease, err = lease.NewBlobClient(client, nil) // chooses a random id
	return p, err
}

// acquire is safe to repeat: the service knows the id that it is proposed.
func (p *protection) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	requests := 0
	unsure, err := p.send(ctx, time.Now().Add(patience), func(ctx context.Context) error {
		requests++
		began, wall := time.Now(), p.wall()
		_, err := p.lease.AcquireLease(ctx, int32(p.length/time.Second), nil)
		if err == nil {
			p.confirm(began, wall)
		}
		return err
	})
	if err == nil {
		return nil
	}
	if unsure { // the blob must not stay leased without a holder
		_, _ = p.sendRelease(context.WithoutCancel(ctx))
	}
	if bloberror.HasCode(err, bloberror.LeaseAlreadyPresent, bloberror.LeaseIsBreakingAndCannotBeAcquired) {
		return &lock.HeldError{Key: p.key(), Err: p.about(errors.Unwrap(err))}
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	return &lock.StoreError{
		Op: "acquire", Store: e.Store, Action: e.Action, Hint: e.Hint,
		Temporary: !e.Lasting, Answered: e.Answered, Unapplied: !unsure,
		Requests: requests, Err: e.Err,
	}
}

// startRenewing renews the lease on a goroutine of its own. The renewals
// continue after the caller's context has ended, because work may still be
// running.
func (p *protection) startRenewing(ctx context.Context) {
	ctx, p.quit = context.WithCancel(ctx)
	p.startWatch()
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		stopped := false
		defer func() {
			if stopped {
				return
			}
			p.panicked = recover() // an unrecovered panic here would end the process
			if p.lost == nil {
				p.lost = p.lostBecause(nil)
			}
			p.lose(p.lost)
		}()
		p.lost = p.renewUntilStopped(ctx)
		stopped = p.lost == nil
	}()
}

func (p *protection) stopRenewing() {
	p.quit()
	<-p.done
	p.watch.Stop()
	if p.lost == nil {
		p.lost = p.stuck.Load()
	}
}

// startWatch ends the work in the middle of the margin if the renewals have not
// done so at its beginning. They may be stuck in a log handler whose output is
// blocked, or in a client that ignores its context.
func (p *protection) startWatch() {
	lost := p.lostBecause(nil)
	p.watch = time.AfterFunc(p.left()+margin/2, func() {
		p.stuck.Store(lost)
		p.lose(lost)
	})
}

// renewUntilStopped returns nil when it is stopped, or the reason why the lease
// was lost.
func (p *protection) renewUntilStopped(ctx context.Context) *lock.LostError {
	var failed error
	for {
		if !sleep(ctx, min(p.length/3, p.left())) {
			return nil
		}
		left := p.left()
		if left <= 0 {
			return p.logLost(ctx, failed)
		}
		_, failed = p.send(ctx, time.Now().Add(left), func(ctx context.Context) error {
			began, wall := time.Now(), p.wall()
			_, err := p.lease.RenewLease(ctx, nil)
			if err == nil {
				p.confirm(began, wall)
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case ended(failed):
			return p.logLost(ctx, failed)
		case failed != nil:
			p.logger.WarnContext(ctx, "lambdalock: the lease was not renewed", "blob", p.url, "until", p.wallEnd, "error", failed)
		}
	}
}

// release releases the lease even if it was lost: if it is no longer ours,
// nothing happens.
func (p *protection) release(ctx context.Context) {
	unsure, err := p.sendRelease(ctx)
	switch {
	case err == nil, p.lost != nil, ended(err) && (unsure || p.free(ctx)), bloberror.HasCode(err, bloberror.BlobNotFound):
	case ended(err):
		p.lost = p.logLost(ctx, err)
	default:
		p.logger.WarnContext(ctx, "lambdalock: the lease could not be released and ends by itself", "blob", p.url, "until", p.wallEnd, "error", err)
	}
}

// free reports whether the blob has no lease: a proxy may send a release twice
// and pass on the response to the second copy. If another has leased the blob
// by now, it is unknown whether that was before or after the release.
func (p *protection) free(ctx context.Context) bool {
	attempt, cancel := context.WithTimeout(azure.Once(ctx), attemptTimeout)
	defer cancel()
	properties, err := p.client.GetProperties(attempt, nil)
	return err == nil && properties.LeaseState != nil && *properties.LeaseState == lease.StateTypeAvailable
}

func (p *protection) sendRelease(ctx context.Context) (unsure bool, err error) {
	return p.send(ctx, time.Now().Add(patience), func(ctx context.Context) error {
		_, err := p.lease.ReleaseLease(ctx, nil)
		return err
	})
}

// send retries a request until it is answered or the given time has come. It
// reports whether an unanswered attempt may have been applied. Of several
// errors it returns the last one that the service answered with.
func (p *protection) send(ctx context.Context, until time.Time, request func(context.Context) error) (unsure bool, err error) {
	var failure *driver.Error
	for try := 0; ; try++ {
		limit := time.Now().Add(attemptTimeout)
		if until.Before(limit) {
			limit = until
		}
		attempt, cancel := context.WithDeadline(azure.Once(ctx), limit)
		err := request(attempt)
		cancel()
		if err == nil {
			return unsure, nil
		}
		e := azure.Classify(p.place(), azure.WriteAction, err)
		unsure = unsure || !e.Unapplied
		if failure == nil || e.Answered || !failure.Answered {
			failure = e
		}
		pause := clock.Jitter(clock.From(ctx), 100*time.Millisecond<<min(try, 4)) + time.Millisecond
		if e.Lasting || time.Until(until) <= pause || !sleep(ctx, pause) {
			return unsure, failure
		}
	}
}

// ended reports whether the service answered that the lease is not ours, or
// that the blob does not exist. A proxy's response has no code.
func ended(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || answer.ErrorCode == "" {
		return false
	}
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
		return true
	}
	return false
}

func (p *protection) confirm(began, wall time.Time) {
	p.end, p.wallEnd = began.Add(p.length), wall.Add(p.length)
	if p.watch != nil && p.watch.Stop() {
		p.startWatch()
	}
}

// left returns how long the lease can still be relied on.
func (p *protection) left() time.Duration {
	return min(time.Until(p.end), p.wallEnd.Sub(p.wall())) - margin
}

func (p *protection) wall() time.Time { return p.clock().Round(0) }

func (p *protection) key() lock.Key { return lock.Key{Name: p.url} }

// about adds to an error which blob it is about: the errors of package lock
// show only a digest of their key.
func (p *protection) about(err error) error { return fmt.Errorf("%s: %w", p.place(), err) }

func (p *protection) place() string { return "Azure blob " + p.url }

var errNotRenewed = errors.New("it was not renewed in time")

// lostBecause returns the loss after a renewal that failed, or, if err is nil,
// after one that did not end: the process was frozen, or the client hangs.
func (p *protection) lostBecause(err error) *lock.LostError {
	cause := errNotRenewed
	if err != nil {
		cause = errors.Unwrap(err) // without our advice
	}
	return &lock.LostError{Key: p.key(), Until: p.wallEnd, Err: p.about(cause)}
}

func (p *protection) logLost(ctx context.Context, err error) *lock.LostError {
	lost := p.lostBecause(err)
	p.logger.ErrorContext(ctx, lost.Error())
	return lost
}

// sleep waits for d. It reports false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

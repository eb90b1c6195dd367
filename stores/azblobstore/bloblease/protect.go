package bloblease

import (
	"context"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/lambdalock/lambdalock/lock"
)

// The lease of [Protect].
const (
	defaultLease = 30 * time.Second
	// The service's limits:
	// https://learn.microsoft.com/rest/api/storageservices/lease-blob
	shortestLease = 15 * time.Second
	longestLease  = 60 * time.Second
	// margin is how long before the end of the lease the work's context ends, so
	// that the work can stop in time.
	margin = 2 * time.Second
	// attemptTimeout is how long to wait for a response, so that a hung connection
	// does not use up the lease.
	attemptTimeout = 2 * time.Second
	// patience is how long an acquisition or a release is retried.
	patience = 5 * time.Second
)

// Options configures [Protect]. The zero value and a nil pointer mean
// the defaults.
type Options struct {
	// Lease is how long the blob stays leased after its holder died, in whole
	// seconds from 15 s to 60 s. It is renewed after a third of that time. Zero
	// means 30 s. A longer lease survives a longer outage of the service.
	Lease time.Duration
	// Logger receives a record for every failed renewal, for a lost lease and for a
	// failed release. Nil means slog.Default().
	Logger *slog.Logger
}

// Lease is a lease on a blob. While it lasts, the service refuses every write
// and deletion of the blob that does not carry its ID.
type Lease struct {
	ID string
}

// Conditions returns the access conditions for requests that change the leased
// blob: set them in the options of the blob client's methods. You may add an
// If-Match.
func (l Lease) Conditions() *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &l.ID}}
}

// Protect runs work while it holds a lease on a blob that is itself the
// resource. It keeps no row anywhere. opts may be nil.
//
// Protect renews the lease until work returns, even after ctx has ended, then
// releases it; a failed release is logged. The context given to work also ends
// when the lease is lost, because it was broken, or could not be renewed until
// 2 s before its end, with a [*lock.LostError] as its cause. Work must then
// stop; the service refuses its writes to this blob if they carry
// [Lease.Conditions].
//
// Protect returns work's error unchanged, or a [*lock.LostError] if work
// returned nil although the lease was lost. A deletion of the blob by work is
// not a loss. If work did not run, the error is:
//
//   - a [*lock.HeldError] if another has leased the blob; Protect does not wait
//   - a [*lock.StoreError] if the service was out of reach or refused, with the
//     code [bloberror.BlobNotFound] if the blob does not exist; Protect does
//     not create it
//   - a [*lock.ConfigError] if an argument is wrong
func Protect(ctx context.Context, client *blob.Client, opts *Options, work func(ctx context.Context, lease Lease) error) error {
	if work == nil {
		return &lock.ConfigError{Reason: "the work to protect is nil"}
	}
	return protect(ctx, client, opts, time.Now, work)
}

func protect(ctx context.Context, client *blob.Client, opts *Options, clock func() time.Time, work func(context.Context, Lease) error) (err error) {
	p, err := newProtection(client, opts, clock)
	if err != nil {
		return err
	}
	if err := p.acquire(ctx); err != nil {
		return err
	}
	workCtx, lose := context.WithCancelCause(ctx)
	p.lose = lose
	p.startRenewing(context.WithoutCancel(ctx))
	defer func() {
		lose(nil) // for goroutines that work may have left behind
		p.stopRenewing()
		p.release(context.WithoutCancel(ctx))
		if p.panicked != nil {
			panic(p.panicked)
		}
		if err == nil && p.lost != nil && !bloberror.HasCode(p.lost, bloberror.BlobNotFound) {
			err = p.lost
		}
	}()
	return work(workCtx, Lease{ID: *p.lease.LeaseID()})
}

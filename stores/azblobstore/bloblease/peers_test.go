package bloblease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/azblobstore/bloblease"
)

// TestLeaseThatCannotBeRenewed: the renewal of a lease that somebody had broken
// or taken failed on a background task, and the error ended the host with all
// its functions (azure-webjobs-sdk#2839). Here it ends the context of this work
// alone.
func TestLeaseThatCannotBeRenewed(t *testing.T) { // F43
	t.Parallel()
	for name, lose := range map[string]func(*rig){
		"broken":                 func(r *rig) { r.do("break now", "") },
		"broken, not yet ended":  func(r *rig) { r.do("break", "") },
		"broken and then leased": func(r *rig) { r.do("break now", ""); r.do("acquire", idB) },
		"the blob is deleted":    func(r *rig) { r.do("break now", ""); _, _ = r.blob.Delete(r.Context(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protected(t, func(r *rig) {
				other := make(chan error)
				neighbour := r.client.NewBlobClient("neighbour")
				if err := write(r.Context(), r.client.NewBlockBlobClient("neighbour"), "old", ""); err != nil {
					r.Fatal(err)
				}
				go func() {
					other <- bloblease.Protect(r.Context(), neighbour, &r.opts, func(ctx context.Context, _ bloblease.Lease) error {
						time.Sleep(2 * time.Minute)
						return context.Cause(ctx)
					})
				}()
				var cause error
				began := time.Now()
				var lasted time.Duration
				err := r.protect(func(ctx context.Context, _ bloblease.Lease) error {
					lose(r)
					<-ctx.Done()
					cause, lasted = context.Cause(ctx), time.Since(began)
					time.Sleep(time.Minute) // work that takes its time to end
					return errors.New("the work's own")
				})
				if !errors.As(cause, new(*lock.LostError)) || lasted > 11*time.Second {
					r.Errorf("the work's context ended after %v with %v, want a LostError at the first renewal", lasted, cause)
				}
				if err == nil || err.Error() != "the work's own" {
					r.Errorf("Protect returned %v, want the work's error", err)
				}
				if err := <-other; err != nil {
					r.Errorf("the other work of the process ended with %v", err)
				}
			})
		})
	}
}

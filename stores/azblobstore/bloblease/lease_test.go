package bloblease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
)

const (
	idA = "aaaaaaaa-0000-4000-8000-000000000000"
	idB = "bbbbbbbb-0000-4000-8000-000000000000"
)

// leases is a blob on which the answers to a sequence of requests are checked.
type leases struct {
	*testing.T
	*azuretest.Service
	name string
}

// answer returns "ok" or the status and code of an error.
func answer(err error) string {
	var e *azcore.ResponseError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return fmt.Sprint(e.StatusCode, " ", e.ErrorCode)
	}
	return err.Error()
}

func (l *leases) do(action, id string) string {
	ctx := policy.WithRetryOptions(l.Context(), policy.RetryOptions{MaxRetries: -1})
	client, err := lease.NewBlobClient(l.NewBlobClient(l.name), &lease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		l.Fatal(err)
	}
	switch action {
	case "acquire":
		_, err = client.AcquireLease(ctx, 15, nil)
	case "acquire infinite":
		_, err = client.AcquireLease(ctx, -1, nil)
	case "renew":
		_, err = client.RenewLease(ctx, nil)
	case "release":
		_, err = client.ReleaseLease(ctx, nil)
	case "break":
		_, err = client.BreakLease(ctx, nil)
	case "break now":
		var now int32
		_, err = client.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: &now})
	case "write":
		err = write(ctx, l.NewBlockBlobClient(l.name), "x", id)
	case "delete":
		var conditions *blob.AccessConditions
		if id != "" {
			conditions = &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
		}
		_, err = l.NewBlobClient(l.name).Delete(ctx, &blob.DeleteOptions{AccessConditions: conditions})
	case "pass":
		l.Pass(16 * time.Second)
	}
	return answer(err)
}

func write(ctx context.Context, client *blockblob.Client, text, id string) error {
	var options blockblob.UploadOptions
	if id != "" {
		options.AccessConditions = &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
	}
	_, err := client.Upload(ctx, streaming.NopCloser(strings.NewReader(text)), &options)
	return err
}

// TestLeaseAnswers has the answers that Protect relies on.
// https://learn.microsoft.com/rest/api/storageservices/lease-blob
func TestLeaseAnswers(t *testing.T) {
	t.Parallel()
	type step struct{ action, id, want string }
	const (
		present  = "409 LeaseAlreadyPresent"
		mismatch = "409 LeaseIdMismatchWithLeaseOperation"
		broken   = "409 LeaseIsBrokenAndCannotBeRenewed"
	)
	for name, steps := range map[string][]step{
		"no blob": {
			{"acquire", idA, "404 BlobNotFound"},
			{"renew", idA, "404 BlobNotFound"},
			{"release", idA, "404 BlobNotFound"},
			{"delete", "", "404 BlobNotFound"},
		},
		"available": {
			{"write", "", "ok"},
			{"renew", idA, mismatch},
			{"release", idA, mismatch},
			{"break", "", "409 LeaseNotPresentWithLeaseOperation"},
			{"write", idA, "412 LeaseNotPresentWithBlobOperation"},
			{"delete", "", "ok"},
		},
		"leased": {
			{"write", "", "ok"},
			{"acquire", idA, "ok"},
			{"acquire", idA, "ok"}, // the answer of the first was lost
			{"acquire", idB, present},
			{"renew", idB, mismatch},
			{"release", idB, mismatch},
			{"write", "", "412 LeaseIdMissing"},
			{"write", idB, "412 LeaseIdMismatchWithBlobOperation"},
			{"write", idA, "ok"},
			{"renew", idA, "ok"}, // a write keeps the lease
			{"delete", "", "412 LeaseIdMissing"},
			{"release", idA, "ok"},
			{"release", idA, mismatch},
			{"renew", idA, mismatch},
			{"acquire", idB, "ok"},
			{"delete", idB, "ok"},
			{"renew", idB, "404 BlobNotFound"},
		},
		"breaking": {
			{"write", "", "ok"},
			{"acquire", idA, "ok"},
			{"break", "", "ok"},
			{"break", "", "ok"},
			{"acquire", idA, "409 LeaseIsBreakingAndCannotBeAcquired"},
			{"acquire", idB, present},
			{"renew", idA, broken},
			{"write", "", "412 LeaseIdMissing"},
			{"write", idA, "ok"},
			{"release", idA, "ok"},
			{"acquire", idB, "ok"},
		},
		"broken": {
			{"write", "", "ok"},
			{"acquire", idA, "ok"},
			{"break now", "", "ok"},
			{"renew", idA, broken},
			{"renew", idB, mismatch},
			{"write", idA, "412 LeaseNotPresentWithBlobOperation"},
			{"acquire", idB, "ok"},
			{"renew", idA, mismatch},
		},
		"broken, released": {
			{"write", "", "ok"}, {"acquire", idA, "ok"}, {"break now", "", "ok"}, {"release", idB, mismatch}, {"release", idA, "ok"},
		},
		"infinite": {
			{"write", "", "ok"}, {"acquire infinite", idA, "ok"}, {"pass", "", "ok"}, {"acquire", idB, present}, {"break", "", "ok"}, {"acquire", idB, "ok"},
		},
		"expired": {
			{"write", "", "ok"},
			{"acquire", idA, "ok"},
			{"pass", "", "ok"},
			{"write", idA, "412 LeaseNotPresentWithBlobOperation"},
			{"renew", idA, "ok"}, // nothing has happened to the blob
			{"acquire", idB, present},
		},
		"expired, written": {
			{"write", "", "ok"}, {"acquire", idA, "ok"}, {"pass", "", "ok"}, {"write", "", "ok"}, {"renew", idA, mismatch}, {"release", idA, mismatch},
		},
		"expired, taken over": {
			{"write", "", "ok"},
			{"acquire", idA, "ok"},
			{"pass", "", "ok"},
			{"acquire", idB, "ok"},
			{"renew", idA, mismatch},
			{"release", idA, mismatch},
			{"write", idA, "412 LeaseIdMismatchWithBlobOperation"},
			{"write", idB, "ok"},
		},
		"broken in the end": {
			{"write", "", "ok"}, {"acquire", idA, "ok"}, {"break", "", "ok"}, {"pass", "", "ok"}, {"acquire", idB, "ok"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
				l := &leases{t, s, "b"}
				for i, step := range steps {
					if got := l.do(step.action, step.id); got != step.want {
						t.Errorf("step %d, %s %.1s: %s, want %s", i, step.action, step.id, got, step.want)
					}
				}
			})
		})
	}
}

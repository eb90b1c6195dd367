// fiveworkers works on one blob that five workers want: one of them leases it,
// renews the lease while it works, and writes its progress into the blob. When
// it is killed, another one takes over where it stopped, as soon as the lease
// has ended.
//
// Start it five times, or let it run in five containers:
//
//	AZURE_STORAGE_CONNECTION_STRING=… fiveworkers CONTAINER BLOB WORKER STEP
//
// STEP is how long a step takes, for example 2s. The blob is the queue's entry,
// the file, or the ledger to be worked on; an empty one is enough.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/azblobstore/bloblease"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: fiveworkers CONTAINER BLOB WORKER STEP")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run works on the blob as soon as no other worker does.
func run(ctx context.Context, container, name, worker, step string) error {
	pace, err := time.ParseDuration(step)
	if err != nil {
		return err
	}
	b, err := blockblob.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), container, name, nil)
	if err != nil {
		return err
	}
	waited := false
	for {
		err := bloblease.Protect(ctx, b.BlobClient(), &bloblease.Options{Lease: 15 * time.Second}, func(ctx context.Context, lease bloblease.Lease) error {
			return work(ctx, b, lease, worker, pace)
		})
		var held *lock.HeldError
		if !errors.As(err, &held) {
			return err
		}
		if !waited {
			fmt.Printf("%s waits: another worker has the blob\n", worker)
			waited = true
		}
		select {
		case <-time.After(time.Second / 2):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const steps = 10

// work continues at the step that the blob names. Every write carries the
// lease, so a worker that has lost it cannot spoil the work of the next one.
func work(ctx context.Context, b *blockblob.Client, lease bloblease.Lease, worker string, pace time.Duration) error {
	step, err := progress(ctx, b)
	if err != nil {
		return err
	}
	if step == steps {
		fmt.Printf("%s finds the work done\n", worker)
		return nil
	}
	for step < steps {
		step++
		select { // your own work goes here; it must end when its context does
		case <-time.After(pace):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		body := streaming.NopCloser(strings.NewReader(strconv.Itoa(step)))
		if _, err := b.Upload(ctx, body, &blockblob.UploadOptions{AccessConditions: lease.Conditions()}); err != nil {
			return err
		}
		fmt.Printf("%s has done step %d of %d\n", worker, step, steps)
	}
	return nil
}

// progress returns the number of the last step that was done.
func progress(ctx context.Context, b *blockblob.Client) (int, error) {
	answer, err := b.DownloadStream(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || len(body) == 0 {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

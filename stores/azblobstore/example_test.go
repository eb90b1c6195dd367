package azblobstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
)

// The client is yours: container.NewClient with an identity, or
// container.NewClientFromConnectionString.
func ExampleNew() {
	client := newFake().container()
	locker, err := lock.New(azblobstore.New(client, "locks"), nil)
	if err != nil {
		panic(err)
	}
	work := func(context.Context) error {
		fmt.Println("once")
		return nil
	}
	key := lock.Key{Name: "order/17", Event: "paid"}
	fmt.Println(locker.Do(context.Background(), key, work))
	fmt.Println(errors.Is(locker.Do(context.Background(), key, work), lock.ErrCompleted))
	// Output:
	// once
	// <nil>
	// true
}

// While the work runs, nobody else can write or delete the blob.
func ExampleProtect() {
	ctx := context.Background()
	ledger := newFake().container().NewBlockBlobClient("ledger.json")
	if _, err := ledger.Upload(ctx, streaming.NopCloser(strings.NewReader("{}")), nil); err != nil {
		panic(err)
	}
	err := azblobstore.Protect(ctx, ledger.BlobClient(), nil, func(ctx context.Context, lease azblobstore.Lease) error {
		_, err := ledger.Upload(ctx, streaming.NopCloser(strings.NewReader("a stranger's")), nil)
		fmt.Println("without the lease:", bloberror.HasCode(err, bloberror.LeaseIDMissing))
		_, err = ledger.Upload(ctx, streaming.NopCloser(strings.NewReader("mine")), &blockblob.UploadOptions{AccessConditions: lease.Conditions()})
		return err
	})
	fmt.Println(err)
	// Output:
	// without the lease: true
	// <nil>
}

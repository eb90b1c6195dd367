package bloblease_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/lambdalock/lambdalock/stores/azblobstore/bloblease"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
)

// While the work runs, nobody else can write or delete the blob.
func ExampleProtect() {
	ctx := context.Background()
	ledger := azuretest.NewFake().Container().NewBlockBlobClient("ledger.json")
	if _, err := ledger.Upload(ctx, streaming.NopCloser(strings.NewReader("{}")), nil); err != nil {
		panic(err)
	}
	err := bloblease.Protect(ctx, ledger.BlobClient(), nil, func(ctx context.Context, lease bloblease.Lease) error {
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

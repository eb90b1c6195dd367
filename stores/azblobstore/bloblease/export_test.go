package bloblease

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// ProtectWith is Protect with a wall clock of its own.
func ProtectWith(ctx context.Context, client *blob.Client, opts *Options, wall func() time.Time, work func(context.Context, Lease) error) error {
	return protect(ctx, client, opts, wall, work)
}

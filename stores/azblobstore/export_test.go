package azblobstore

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/stores/objectstore"
)

func NewObjects(client *container.Client, prefix string) objectstore.Objects {
	return newObjects(client, prefix)
}

// ProtectWith is Protect with a wall clock of its own.
func ProtectWith(ctx context.Context, client *blob.Client, opts *ProtectOptions, wall func() time.Time, work func(context.Context, Lease) error) error {
	return protect(ctx, client, opts, wall, work)
}

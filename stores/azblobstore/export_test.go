package azblobstore

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/stores/objectstore"
)

func NewObjects(client *container.Client, prefix string) objectstore.Objects {
	return newObjects(client, prefix)
}

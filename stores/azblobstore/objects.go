package azblobstore

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azure"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// New returns a store that keeps its rows in a container, under a prefix: a
// folder such as "locks" or "locks/", or empty for the whole container.
// Requests ignore the client's retries, because package lock retries itself.
// Before the first write to an address that is not Azure's, the store runs
// [objectstore.Probe]; its Check method does that before the first lock is
// needed.
func New(client *container.Client, prefix string) *objectstore.Store {
	return objectstore.New(newObjects(client, prefix))
}

// objects implements [objectstore.Objects] with block blobs.
type objects struct {
	client *container.Client
	prefix string
	known  bool // to honour conditions
	probe  objectstore.Probe
}

func newObjects(client *container.Client, prefix string) *objects {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	known := client != nil && microsofts(client.URL())
	return &objects{client: client, prefix: prefix, known: known}
}

// errNoClient is the error of every request of a store without a client.
var errNoClient = &driver.ConfigError{Reason: "the Azure client is nil: pass a *container.Client to azblobstore.New"}

// String implements [objectstore.Objects].
func (o *objects) String() string {
	if o.client == nil {
		return "Azure container"
	}
	s := "Azure container " + azure.Bare(o.client.URL())
	if o.prefix != "" {
		s += ", prefix " + o.prefix
	}
	return s
}

// largest is a size that no row exceeds. A larger blob is not a row.
const largest = 8 << 20

// Get implements [objectstore.Objects].
func (o *objects) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if o.client == nil {
		return objectstore.Object{}, errNoClient
	}
	answer, err := o.client.NewBlobClient(o.prefix+key).DownloadStream(azure.Once(ctx), nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return objectstore.Object{}, objectstore.ErrNotExist
	}
	if err != nil {
		return objectstore.Object{}, azure.Classify(o.String(), azure.ReadAction, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largest))
	if err != nil {
		return objectstore.Object{}, azure.Classify(o.String(), azure.ReadAction, err)
	}
	return objectstore.Object{
		Body: body, Version: string(valueOf(answer.ETag)), Modified: valueOf(answer.LastModified), Now: valueOf(answer.Date),
	}, nil
}

// Put implements [objectstore.Objects].
func (o *objects) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	if o.client == nil {
		return "", errNoClient
	}
	if err := o.Check(ctx); err != nil {
		return "", err
	}
	return o.put(ctx, key, body, version)
}

func (o *objects) put(ctx context.Context, key string, body []byte, version string) (string, error) {
	tag := azcore.ETag(version)
	condition := &blob.ModifiedAccessConditions{IfMatch: &tag}
	if version == "" {
		tag = azcore.ETagAny
		condition = &blob.ModifiedAccessConditions{IfNoneMatch: &tag}
	}
	contentType := "application/json"
	answer, err := o.client.NewBlockBlobClient(o.prefix+key).Upload(azure.Once(ctx), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition},
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType},
	})
	if bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.BlobNotFound) {
		return "", objectstore.ErrChanged
	}
	if err != nil {
		return "", azure.Classify(o.String(), azure.WriteAction, err)
	}
	return string(valueOf(answer.ETag)), nil
}

// Keys implements [objectstore.Objects].
func (o *objects) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if o.client == nil {
			yield("", errNoClient)
			return
		}
		pages := o.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &o.prefix})
		for pages.More() {
			page, err := pages.NextPage(azure.Patiently(ctx))
			if err != nil {
				yield("", azure.Classify(o.String(), azure.ReadAction, err))
				return
			}
			for _, b := range page.Segment.BlobItems {
				if !yield(strings.TrimPrefix(valueOf(b.Name), o.prefix), nil) {
					return
				}
			}
		}
	}
}

// valueOf returns what p points to, or the zero value.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

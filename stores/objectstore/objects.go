package objectstore

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Objects gives access to the objects under one prefix of a bucket or
// container. The service must support conditional writes. Get and Put send a
// single request: they neither retry nor wait. Keys, which no lock needs, may
// repeat a request that fails.
//
// If the service might not honour conditions, Put must call [Probe.Run] first.
// Objects should then also implement [driver.Checker], with a Check that calls
// it too, so that the service is probed before the first lock is needed.
//
// Errors wrap [ErrNotExist] or [ErrChanged], or are a *driver.ConfigError or a
// *driver.Error, which says whether a retry may succeed and whether the write
// may have been applied.
type Objects interface {
	// String returns a description of the service and location for messages, for
	// example "S3 bucket orders, prefix locks/".
	String() string
	// Get returns an object. The error wraps ErrNotExist if it does not exist.
	Get(ctx context.Context, key string) (Object, error)
	// Put writes an object on condition that it has the given version, or does not
	// exist if version is empty, and returns its new version. If the condition does
	// not hold, nothing is written and the error wraps ErrChanged.
	Put(ctx context.Context, key string, body []byte, version string) (string, error)
	// Keys yields the keys of all objects, in any order. It yields at most one
	// error, and stops there.
	Keys(ctx context.Context) iter.Seq2[string, error]
}

// Object is an object with its metadata.
type Object struct {
	Body    []byte
	Version string // changes with every write; usually the ETag
	// Modified is when the object was written, and Now when it was read, both by
	// the service's clock. They may be rounded down to whole seconds.
	Modified, Now time.Time
}

// The outcomes of a request that applied nothing.
var (
	ErrNotExist = errors.New("there is no such object")
	ErrChanged  = errors.New("the object has another version")
)

package objectstore

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Objects is one prefix of a bucket or container of a service whose writes can
// be conditional. Its methods are single requests: they neither retry nor wait.
//
// If the service may not honour conditions, Put first calls [Prober.Probe], and
// Objects also implements [driver.Checker], whose Check calls it too: that
// probes the service before the first lock is needed.
//
// An error that does not wrap [ErrNotExist] or [ErrChanged] is a
// *driver.Error, which says whether a later try may succeed and whether the
// write may have been applied, or a *driver.ConfigError.
type Objects interface {
	// String names the service and the place for messages, for example "S3 bucket
	// orders, prefix locks/".
	String() string
	// Get reads an object. The error wraps ErrNotExist if there is none.
	Get(ctx context.Context, key string) (Object, error)
	// Put writes an object if it still has that version, or, if the version is
	// empty, if there is no such object, and returns the new version. The error
	// wraps ErrChanged if the object has another version, exists, or exists no
	// longer: then nothing was written.
	Put(ctx context.Context, key string, body []byte, version string) (string, error)
	// Keys yields the keys of all objects, in any order. It stops after the first
	// error.
	Keys(ctx context.Context) iter.Seq2[string, error]
}

// Object is an object and what the service says of it.
type Object struct {
	Body    []byte
	Version string // changes with every write; usually the ETag
	// Modified is when the object was written and Now is when it was read, both by
	// the service's clock. They may be whole seconds, rounded down.
	Modified, Now time.Time
}

// The answers of a condition.
var (
	ErrNotExist = errors.New("there is no such object")
	ErrChanged  = errors.New("the object has another version")
)

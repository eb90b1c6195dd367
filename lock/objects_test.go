package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// bucket is a service of objects, whose clock is hours ahead of everybody's and
// shows whole seconds.
type bucket struct {
	t       *testing.T
	mu      sync.Mutex
	objects map[string]objectstore.Object
}

func (*bucket) now() time.Time { return time.Now().Add(5 * time.Hour).Truncate(time.Second) }

func (b *bucket) get(key string) (objectstore.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotExist
	}
	o.Now = b.now()
	return o, nil
}

// content is what must never fall.
type content struct {
	Fence, Writes int64
	Stamp         time.Time
	Completed     []any
}

func (b *bucket) put(key string, body []byte, version string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.objects[key]
	if before.Version != version {
		return "", objectstore.ErrChanged
	}
	var old, next content
	_ = json.Unmarshal(before.Body, &old)
	if err := json.Unmarshal(body, &next); err != nil || next.Fence < old.Fence || next.Stamp.Before(old.Stamp) || len(next.Completed) < len(old.Completed) || next.Writes != old.Writes+1 {
		b.t.Errorf("%v: %s\nbecame %s", err, before.Body, body)
	}
	o := objectstore.Object{Body: body, Version: fmt.Sprint(next.Writes), Modified: b.now()}
	b.objects[key] = o
	return o.Version, nil
}

// way is one client's way to the bucket.
type way struct {
	bucket *bucket
	plan   fault.Plan
	late   fault.Late
	adds   string // a member that the client adds to each object, as a later version may
}

func (*way) String() string { return "bucket" }

func (*way) Keys(context.Context) iter.Seq2[string, error] { panic("nobody asks for them") }

func (w *way) Get(ctx context.Context, key string) (objectstore.Object, error) {
	return meet(ctx, w, "get", func() (objectstore.Object, error) { return w.bucket.get(key) })
}

func (w *way) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	body = bytes.Replace(body, []byte("{"), []byte("{"+w.adds), 1)
	return meet(ctx, w, "put", func() (string, error) { return w.bucket.put(key, body, version) })
}

var errDropped = errors.New("connection lost")

// meet sends a request whose answer may also be that the object has changed or
// does not exist.
func meet[A any](ctx context.Context, w *way, op string, apply func() (A, error)) (A, error) {
	type answer struct {
		a   A
		err error
	}
	e := fault.Exchange[answer]{
		Apply: func(context.Context, bool) (answer, error) {
			a, err := apply()
			return answer{a, err}, nil
		},
		Spoil: func(f fault.Fault, _ answer) (answer, error) {
			if f == fault.Conflict && op == "put" {
				return answer{err: objectstore.ErrChanged}, nil
			}
			return answer{}, errDropped
		},
	}
	got, err := e.Meet(ctx, w.plan.Next(op), w.late)
	if err != nil {
		return got.a, err
	}
	return got.a, got.err
}

package objectstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// fake is a service of objects in memory. The version of an object is a digest
// of its bytes, as an ETag of S3 is: bytes that come back have their old
// version.
type fake struct {
	mu        sync.Mutex
	objects   map[string]objectstore.Object
	clock     func() time.Time          // the service's
	exact     bool                      // otherwise its times are whole seconds, rounded down
	ignores   func(version string) bool // conditions that it does not check
	checks    func(version string) bool // conditions that it checks gap before it writes
	gap       time.Duration
	log       []string      // requests, for example "put a 412"
	puts      []func() bool // all puts, to be sent again
	bodies    []string      // written
	before    func(method string)
	fault     func(method string) fault
	refuses   error                     // every request
	tells     func(*objectstore.Object) // what a read tells
	anonymous bool                      // a write tells no version
	hides     bool                      // a read without an object is denied
}

// fault is what goes wrong with a request.
type fault int

const (
	none       fault = iota
	lostAnswer       // applied
	noRequest        // not applied
	conflict         // 409: not applied
	broken           // refused for good
	denied           // an action is not allowed
	twice            // by a proxy, which passes on the second answer
)

func newFake() *fake {
	return &fake{objects: map[string]objectstore.Object{}, clock: time.Now}
}

var errNoAnswer = &driver.Error{Store: "fake", Err: errors.New("no answer")}

func (f *fake) String() string { return "fake bucket" }

// save returns a function that brings an object back to what it is now, as if
// somebody had restored an earlier version of it.
func (f *fake) save(key string) (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	saved, exists := f.objects[key]
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.objects[key] = saved; !exists {
			delete(f.objects, key)
		}
	}
}

func (f *fake) time() time.Time {
	if f.exact {
		return f.clock()
	}
	return f.clock().Truncate(time.Second)
}

// begin returns the fault of a request, and an error if it was not applied.
func (f *fake) begin(ctx context.Context, method, key string) (fault, error) {
	if f.before != nil {
		f.before(method)
	}
	f.mu.Lock()
	f.log = append(f.log, method+" "+key)
	fault := none
	if f.fault != nil {
		fault = f.fault(method) // a renewal may be under way beside a settlement
	}
	f.mu.Unlock()
	switch {
	case f.refuses != nil:
		return fault, f.refuses
	case ctx.Err() != nil:
		return fault, &driver.Error{Store: "fake", Err: ctx.Err()}
	case fault == noRequest:
		return fault, errNoAnswer
	case fault == conflict:
		return fault, fmt.Errorf("409: %w", objectstore.ErrChanged)
	case fault == denied:
		return fault, &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Action: "s3:PutObject"}
	case fault == broken:
		return fault, &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Err: errors.New("broken")}
	}
	return fault, nil
}

func (f *fake) Get(ctx context.Context, key string) (objectstore.Object, error) {
	fault, err := f.begin(ctx, "get", key)
	if err != nil {
		return objectstore.Object{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if !ok && f.hides {
		return objectstore.Object{}, &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Action: "s3:GetObject"}
	}
	if !ok {
		return objectstore.Object{}, fmt.Errorf("404: %w", objectstore.ErrNotExist)
	}
	if fault == lostAnswer {
		return objectstore.Object{}, errNoAnswer
	}
	o.Body, o.Now = slices.Clone(o.Body), f.time()
	if f.tells != nil {
		f.tells(&o)
	}
	return o, nil
}

func (f *fake) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	fault, err := f.begin(ctx, "put", key)
	if err != nil {
		return "", err
	}
	body = slices.Clone(body)
	f.mu.Lock()
	f.puts = append(f.puts, func() bool { _, ok := f.apply(key, body, version); return ok })
	f.mu.Unlock()
	next, ok := f.checkThenWrite(key, body, version)
	if fault == twice {
		next, ok = f.apply(key, body, version)
	}
	switch {
	case fault == lostAnswer:
		return "", errNoAnswer
	case !ok:
		return "", fmt.Errorf("412: %w", objectstore.ErrChanged)
	case f.anonymous:
		return "", nil
	}
	return next, nil
}

// checkThenWrite is apply, unless the fake checks conditions before it writes.
func (f *fake) checkThenWrite(key string, body []byte, version string) (string, bool) {
	if f.checks == nil || !f.checks(version) {
		return f.apply(key, body, version)
	}
	f.mu.Lock()
	ok := f.objects[key].Version == version
	f.mu.Unlock()
	if !ok {
		return "", false
	}
	time.Sleep(f.gap)
	f.mu.Lock()
	version = f.objects[key].Version
	f.mu.Unlock()
	return f.apply(key, body, version)
}

func (f *fake) apply(key string, body []byte, version string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects[key].Version != version && (f.ignores == nil || !f.ignores(version)) {
		return "", false
	}
	digest := sha256.Sum256(body)
	next := hex.EncodeToString(digest[:8])
	f.bodies = append(f.bodies, string(body))
	f.objects[key] = objectstore.Object{Body: body, Version: next, Modified: f.time()}
	return next, true
}

// repeat sends all puts again, and reports how many of them were applied.
func (f *fake) repeat() (applied int) {
	f.mu.Lock()
	puts := f.puts
	f.mu.Unlock()
	for _, put := range puts {
		if put() {
			applied++
		}
	}
	return applied
}

func (f *fake) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if _, err := f.begin(ctx, "list", ""); err != nil {
			yield("", err)
			return
		}
		f.mu.Lock()
		keys := make([]string, 0, len(f.objects))
		for key := range f.objects {
			keys = append(keys, key)
		}
		f.mu.Unlock()
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// edit changes the fields of an object.
func (f *fake) edit(t *testing.T, key string, change func(map[string]any)) {
	t.Helper()
	f.mu.Lock()
	o := f.objects[key]
	f.mu.Unlock()
	fields := map[string]any{}
	expect.Must(t, json.Unmarshal(o.Body, &fields))
	change(fields)
	body := expect.Value(json.Marshal(fields))(t)
	if _, ok := f.apply(key, body, o.Version); !ok {
		t.Fatal("the object was changed meanwhile")
	}
}

// requests returns the log, and empties it.
func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.log
	f.log = nil
	return log
}

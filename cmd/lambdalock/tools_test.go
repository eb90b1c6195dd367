package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// lockTableServer is a table on the loopback interface that fails on demand.
type lockTableServer struct {
	*fakedynamo.Server
	client *dynamodb.Client
	store  *dynamostore.Store
	env    []string
}

func newLockTable(t *testing.T, name string) *lockTableServer {
	t.Helper()
	s := &lockTableServer{Server: fakedynamo.New()}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.client = dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	s.store = dynamostore.New(s.client, name)
	s.env = []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + server.URL, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
		"LAMBDALOCK_STORE=", "LOCK_NAMESPACE=", "LOCK_TABLE_NAME=" + name,
	}
	if err := dynamostore.EnsureTable(t.Context(), s.client, name); err != nil {
		t.Fatal(err)
	}
	return s
}

// acquire acquires a lock in the namespace orders. A lease below zero has ended
// already.
func acquire(t *testing.T, store driver.Store, holder string, lease time.Duration, key lock.Key, opts ...func(*lock.Options)) *lock.Lock {
	t.Helper()
	o := lock.Options{
		Namespace: "orders", Lease: lock.FixedLease(max(lease, time.Minute)), Logger: slog.New(slog.DiscardHandler),
		Holder: func(context.Context) string { return holder },
	}
	for _, opt := range opts {
		opt(&o)
	}
	if lease < 0 {
		store = past{store, lease - time.Minute}
	}
	l, err := lock.New(store, &o)
	if err != nil {
		t.Fatal(err)
	}
	lk, err := l.Acquire(t.Context(), key)
	if err != nil && !errors.Is(err, lock.ErrLost) {
		t.Fatal(err)
	}
	return lk
}

// past is a store whose leases ended earlier.
type past struct {
	driver.Store
	shift time.Duration
}

func (p past) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	c.Until = c.Until.Add(p.shift)
	return p.Store.Acquire(ctx, c)
}

func (p past) Settle(context.Context, *driver.Settlement) (driver.Row, bool, error) {
	return driver.Row{}, true, nil // the holder died
}

func complete(t *testing.T, store driver.Store, key lock.Key, result []byte, opts ...func(*lock.Options)) {
	t.Helper()
	if err := acquire(t, store, "f request 0", time.Hour, key, opts...).CompleteWith(result); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, store driver.Inspector, name string) driver.Row {
	t.Helper()
	row, err := store.Read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestShow(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	acquire(t, s.store, "f request 1", 24*time.Hour, lock.Key{Name: "cat\x1b[2J", Event: "e\u202e1"})
	acquire(t, s.store, "f request 2", -time.Second, lock.Key{Name: "dead"})
	complete(t, s.store, lock.Key{Name: "bird", Event: "e3", Order: "05"}, []byte("result"))
	for range 2 {
		acquire(t, s.store, "f request 4", time.Hour, lock.Key{Name: "nightly"}, func(o *lock.Options) { o.Limit = 2 })
	}
	digest := lock.Key{Name: "bird"}.Digest()
	for name, c := range map[string]struct {
		args   []string
		status int
		says   []string
	}{
		"held":                 {[]string{"orders/cat\x1b[2J"}, 0, []string{`"orders/cat\x1b[2J"`, "state          held", "holder         f request 1", `event          "e\u202e1"`, "(in 23h"}},
		"by namespace":         {[]string{"--namespace", "orders", "bird"}, 0, []string{"orders/bird", "state          free", "e3  remembered until", "highest order  05", "6 bytes kept for replay, of e3"}},
		"expired":              {[]string{"orders/dead"}, 0, []string{"state          expired", "holder         f request 2", "ago)"}},
		"slots":                {[]string{"orders/nightly"}, 0, []string{"state          held", "slot 2         held by f request 4"}},
		"digest":               {[]string{"--digest", digest}, 0, []string{"orders/bird\n  digest         " + digest}},
		"digest, namespace":    {[]string{"--digest", digest, "--namespace", "orders"}, 0, []string{"orders/bird\n"}},
		"JSON":                 {[]string{"--json", "orders/bird"}, 0, []string{`"name": "orders/bird",`, `"highestOrder": "05"`}},
		"not there":            {[]string{"orders/dog"}, 1, []string{"there is no row orders/dog and no row /orders/dog"}},
		"another namespace":    {[]string{"--namespace", "x", "bird"}, 1, []string{"there is no row x/bird"}},
		"digest not there":     {[]string{"--digest", "0123456789ab"}, 1, []string{"no row has the digest 0123456789ab"}},
		"digest elsewhere":     {[]string{"--digest", digest, "--namespace", "x\x1b"}, 1, []string{`no row of the namespace "x\x1b" has the digest`}},
		"neither":              {nil, 64, []string{"name the lock, or give the --digest"}},
		"both":                 {[]string{"a", "--digest", digest}, 64, []string{"name the lock, or give the --digest"}},
		"not a digest":         {[]string{"--digest", "CACCA44F4955"}, 64, []string{"12 characters"}},
		"empty key, namespace": {[]string{"--namespace", "orders", ""}, 64, []string{"name the lock"}},
		"another table":        {[]string{"--store", "dynamodb://other", "a"}, 69, []string{"DynamoDB table other", "create-table"}},
		"not a store":          {[]string{"--store", "mysql://other", "a"}, 64, []string{"no store for"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.env, append([]string{"show"}, c.args...)...)
			r.expect(t, c.status, c.says...)
			if strings.ContainsAny(r.String(), "\x1b\u202e\u009b") {
				t.Errorf("prints what a terminal obeys: %q", r)
			}
		})
	}
	command(t, append(s.env, "LOCK_TABLE_NAME="), "show", "a").expect(t, 64, "no store: give --store URL")
}

// TestJSONFields shows the fields that scripts rely on.
func TestJSONFields(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	complete(t, s.store, lock.Key{Name: "a", Event: "e1", Payload: "p"}, []byte("result"))
	acquire(t, s.store, "f", time.Hour, lock.Key{Name: "a", Event: "e2", Payload: "p"})
	acquire(t, s.store, "f", time.Hour, lock.Key{Name: "b"}, func(o *lock.Options) { o.Limit = 1 })
	fields := func(text string) []string {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		var names []string
		for name := range m {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	want := []string{"completed", "deleteAfter", "digest", "event", "fence", "holder", "key", "name", "namespace", "payload", "result", "since", "slot", "state", "until"}
	if got := fields(command(t, s.env, "show", "--json", "orders/a").stdout); !slices.Equal(got, want) {
		t.Errorf("show: %v, want %v", got, want)
	}
	lines := strings.Split(strings.TrimSpace(command(t, s.env, "list", "--json").stdout), "\n")
	if len(lines) != 2 || !slices.Equal(fields(lines[0]), want) {
		t.Errorf("list: %v", lines)
	}
	file := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(file, []byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"m"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fields(command(t, s.env, "explain", "--json", file).stdout); !slices.Equal(got, []string{"kind", "records"}) {
		t.Errorf("explain: %v", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	acquire(t, s.store, "f request 1\x1b", time.Hour, lock.Key{Name: "held"})
	acquire(t, s.store, "f request 2", -time.Second, lock.Key{Name: "dead"})
	complete(t, s.store, lock.Key{Name: "free", Event: "e"}, nil)
	acquire(t, s.store, "g request 3", time.Hour, lock.Key{Name: "other"}, func(o *lock.Options) { o.Namespace = "payments" })
	for name, c := range map[string]struct {
		args  []string
		names []string
	}{
		"default":             {nil, []string{"orders/dead", "orders/held", "payments/other"}},
		"held":                {[]string{"--held"}, []string{"orders/held", "payments/other"}},
		"expired":             {[]string{"--expired"}, []string{"orders/dead"}},
		"all":                 {[]string{"--all"}, []string{"orders/dead", "orders/free", "orders/held", "payments/other"}},
		"namespace":           {[]string{"--namespace", "payments", "--all"}, []string{"payments/other"}},
		"another namespace":   {[]string{"--namespace", "x"}, nil},
		"part of a namespace": {[]string{"--namespace", "pay"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.env, append([]string{"list"}, c.args...)...)
			r.expect(t, 0)
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
				for _, name := range []string{"orders/dead", "orders/free", "orders/held", "payments/other"} {
					if strings.Contains(line, "  "+name) {
						got = append(got, name)
					}
				}
			}
			if !slices.Equal(got, c.names) || strings.Contains(r.stdout, "\x1b") {
				t.Errorf("got %v, want %v in\n%s", got, c.names, r.stdout)
			}
		})
	}
	command(t, s.env, "list").expect(t, 0, "2 held, 1 expired, 1 free")
	command(t, s.env, "list", "--held", "--all").expect(t, 64, "can't be used together")
	s.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Deny })
	command(t, s.env, "list").expect(t, 69, "dynamodb:Scan was denied", "LeadingKeys")
	command(t, s.env, "show", "orders/held").expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.env, "watch").expect(t, 69, "dynamodb:Scan was denied")
	command(t, s.env, "watch", "a").expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.env, "release", "--yes", "orders/held").expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.env, "forget", "--yes", "orders/free", "e").expect(t, 69, "dynamodb:GetItem was denied")
	s.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.Operation == "UpdateItem" {
			return fakedynamo.Deny
		}
		return fakedynamo.None
	})
	command(t, s.env, "release", "--yes", "orders/held").expect(t, 69, "dynamodb:UpdateItem was denied")
	command(t, s.env, "forget", "--yes", "orders/free", "e").expect(t, 69, "dynamodb:UpdateItem was denied")
}

// counter counts lines and remembers the most memory in use.
type counter struct {
	lines int
	most  uint64
}

func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.most = max(c.most, m.HeapAlloc)
	return len(p), nil
}

// manyRows is a store with that many rows, which it makes as it is asked.
type manyRows struct {
	driver.Inspector
	n int
}

func (s manyRows) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for i := range s.n {
			row := driver.Row{Token: "t", Stamp: time.Now(), Until: time.Now().Add(time.Hour), Holder: strings.Repeat("h", 100), Memory: driver.Memory{Result: driver.Result{Body: make([]byte, 1000)}}}
			if !yield(driver.NamedRow{Name: fmt.Sprintf("orders/%0100d", i), Row: row}, nil) {
				return
			}
		}
	}
}

// TestLongListIsBounded: rows are printed while they are read.
func TestLongListIsBounded(t *testing.T) {
	for name, json := range map[string]bool{"table": false, "JSON": true} {
		t.Run(name, func(t *testing.T) {
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			out := &counter{}
			c := &listCmd{jsonFlag: jsonFlag{json}}
			if err := c.print(t.Context(), manyRows{n: 100_000}, out, io.Discard); err != nil {
				t.Fatal(err)
			}
			want := 100_001
			if json {
				want--
			}
			if grown := out.most - before.HeapAlloc; out.lines != want || out.most > before.HeapAlloc && grown > 32<<20 {
				t.Errorf("%d lines, want %d, and %d MB more memory", out.lines, want, grown>>20)
			}
		})
	}
}

// broken is a pipe that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestListEndsWithItsReader(t *testing.T) {
	t.Parallel()
	for _, json := range []bool{true, false} {
		if err := (&listCmd{jsonFlag: jsonFlag{json}}).print(t.Context(), manyRows{n: 1 << 40}, broken{}, io.Discard); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("JSON %v: %v", json, err)
		}
	}
}

// answering answers a question, after something has happened.
func answering(meanwhile func(), err error) asker {
	return func(context.Context, string) error {
		if meanwhile != nil {
			meanwhile()
		}
		return err
	}
}

// TestRelease: the lock of the holder that was shown is taken, and nobody
// else's, whatever happens between the question and the answer.
func TestRelease(t *testing.T) {
	t.Parallel()
	key := lock.Key{Name: "a", Event: "e2"}
	for name, c := range map[string]struct {
		lease     time.Duration
		order     string        // that is remembered
		remember  time.Duration // the event; zero: a day
		meanwhile func(t *testing.T, store *memstore.Store, lk *lock.Lock)
		answer    error
		status    int    // of the error; 0: none
		says      string // what is printed, or the error
		owner     string // afterwards
	}{
		"yes":            {lease: time.Hour, says: "Released orders/a."},
		"fence is named": {lease: time.Hour, says: "checks the fence"},
		"order":          {lease: time.Hour, order: "05", says: "Released orders/a."},
		"long memory":    {lease: time.Hour, remember: 4 * 24 * time.Hour, says: "Released orders/a."},
		"no":             {lease: time.Hour, answer: yes("n\n"), status: 1, says: "nothing was changed", owner: "f request 1"},
		"the holder completes": {
			lease: time.Hour, status: 1, says: "f request 1 released orders/a itself",
			meanwhile: func(t *testing.T, _ *memstore.Store, lk *lock.Lock) {
				if err := lk.Complete(); err != nil {
					t.Error(err)
				}
			},
		},
		"another holder": {
			lease: time.Hour, status: 1, says: "orders/a is held by f request 2 now", owner: "f request 2",
			meanwhile: func(t *testing.T, store *memstore.Store, lk *lock.Lock) {
				if err := lk.Release(); err != nil {
					t.Error(err)
				}
				acquire(t, store, "f request 2", time.Hour, key)
			},
		},
		"the same function again": {
			lease: time.Hour, status: 1, says: "held by f request 1 now", owner: "f request 1",
			meanwhile: func(t *testing.T, store *memstore.Store, lk *lock.Lock) {
				_ = lk.Release()
				acquire(t, store, "f request 1", time.Hour, key)
			},
		},
		"a dead holder": {lease: -time.Second, says: "has ended, so the next claim gets the lock anyway"},
		"a dead holder, and a takeover": {lease: -time.Second, status: 1, says: "held by f request 2 now", owner: "f request 2", meanwhile: func(t *testing.T, store *memstore.Store, _ *lock.Lock) {
			acquire(t, store, "f request 2", time.Hour, key)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			remember := func(o *lock.Options) { o.Remember = c.remember }
			complete(t, store, lock.Key{Name: "a", Event: "e1", Order: c.order}, nil, remember)
			lk := acquire(t, store, "f request 1", c.lease, key)
			meanwhile := func() {
				if c.meanwhile != nil {
					c.meanwhile(t, store, lk)
				}
			}
			var out strings.Builder
			err := release(t.Context(), store, "orders", "a", &out, answering(meanwhile, c.answer))
			if got := status(err); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
				t.Errorf("status %d, want %d with %q\n%s%v", got, c.status, c.says, out.String(), err)
			}
			row := read(t, store, "orders/a")
			if row.Holder != c.owner || !row.Memory.Has("e1", time.Now()) {
				t.Errorf("the row is %+v, want the owner %q", row, c.owner)
			}
			kept := max(24*time.Hour, c.remember)
			if c.order != "" {
				kept = longestRemember
			}
			if left := time.Until(row.DeleteAfter); c.status == 0 && (left < kept-time.Hour || left > kept+time.Hour) {
				t.Errorf("the row is kept for %v, want %v", left, kept)
			}
		})
	}
}

// status returns the exit status of an error of these commands.
func status(err error) int {
	if err == nil {
		return 0
	}
	var e *statusError
	if errors.As(trouble(err), &e) {
		return e.status
	}
	return -1
}

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	complete(t, s.store, lock.Key{Name: "free", Event: "e"}, nil)
	acquire(t, s.store, "f request 1", time.Hour, lock.Key{Name: "held"})
	for range 2 {
		acquire(t, s.store, "f request 2", time.Hour, lock.Key{Name: "limited"}, func(o *lock.Options) { o.Limit = 2 })
	}
	command(t, s.env, "release", "orders/dog", "--yes").expect(t, 1, "there is no row orders/dog")
	command(t, s.env, "release", "orders/free", "--yes").expect(t, 1, "nobody holds orders/free")
	command(t, s.env, "release", "orders/held").expect(t, 64, "not a terminal", "--yes")
	command(t, s.env, "release").expect(t, 64, "expected \"<key>\"")
	if row := read(t, s.store, "orders/held"); row.Token == "" {
		t.Error("released without a yes")
	}
	command(t, s.env, "release", "-y", "--namespace", "orders", "held").expect(t, 0, "This takes the lock from f request 1", "Released orders/held")
	command(t, s.env, "release", "orders/limited", "--yes").expect(t, 0, "Released orders/limited")
	command(t, s.env, "release", "orders/limited", "--yes").expect(t, 1, "for example orders/slot:2:limited")
	command(t, s.env, "release", "orders/slot:2:limited", "--yes").expect(t, 0, "Released orders/slot:2:limited")
	command(t, s.env, "release", "orders/limited", "--yes").expect(t, 1, "nobody holds orders/limited")
	newer := newerStore{memstore.New()}
	if err := release(t.Context(), newer, "", "x", io.Discard, answering(nil, nil)); status(err) != 1 || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer row: %v", err)
	}
	if err := (&forgetCmd{Key: "x", Event: "e"}).forget(t.Context(), newer, io.Discard, answering(nil, nil)); status(err) != 1 || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer row: %v", err)
	}
}

// newerStore has rows of a newer format only.
type newerStore struct{ *memstore.Store }

func (newerStore) Read(context.Context, string) (driver.Row, error) {
	return driver.Row{Newer: true}, nil
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"y\n": true, "Yes\r\n": true, " YES": true, "n\n": false, "": false, "yup": false, "j": false} {
		t.Run(line, func(t *testing.T) {
			if got := yes(line) == nil; got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestForget: the event runs again, and no other one does.
func TestForget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("e", 200) // stored as a hash
	for name, c := range map[string]struct {
		order     string
		event     string
		reset     bool
		result    bool
		meanwhile func(t *testing.T, store *memstore.Store)
		answer    error
		status    int
		says      string
		runs      []string // afterwards
	}{
		"event":                 {event: "e1", says: "Forgotten. e1 runs", runs: []string{"e1"}},
		"newest event, result":  {event: "e2", result: true, says: "6 bytes kept for replay", runs: []string{"e2"}},
		"older event, result":   {event: "e1", result: true, says: "Forgotten", runs: []string{"e1"}},
		"long event":            {event: long, says: "Forgotten", runs: []string{long}},
		"no":                    {event: "e1", answer: yes("n"), status: 1, says: "nothing was changed"},
		"unknown event":         {event: "e7", status: 1, says: "does not remember e7, so nothing keeps it", runs: nil},
		"unknown, with orders":  {order: "05", event: "e7", status: 1, says: "highest completed one, 05: --reset-order"},
		"order is kept":         {order: "05", event: "e1", says: "stays stale and will be skipped"},
		"order is reset":        {order: "05", event: "e1", reset: true, says: "every earlier event that is delivered again runs as well", runs: []string{"e1"}},
		"unknown, order reset":  {order: "05", event: "e7", reset: true, says: "The highest order is forgotten too"},
		"completed again":       {event: "e1", status: 1, says: "e1 was completed meanwhile", meanwhile: func(t *testing.T, store *memstore.Store) { completeAgain(t, store, "e1") }},
		"another was completed": {event: "e1", says: "Forgotten", runs: []string{"e1"}, meanwhile: func(t *testing.T, store *memstore.Store) { complete(t, store, lock.Key{Name: "a", Event: "e3"}, nil) }},
		"somebody holds it now": {event: "e1", status: 1, says: "orders/a is held by f request 9 until", meanwhile: func(t *testing.T, store *memstore.Store) {
			acquire(t, store, "f request 9", time.Hour, lock.Key{Name: "a", Event: "e9"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			events := []string{"e1", long, "e2"}
			for _, e := range events {
				var result []byte
				if c.result {
					result = []byte("result")
				}
				complete(t, store, lock.Key{Name: "a", Event: e}, result)
			}
			if c.order != "" {
				complete(t, store, lock.Key{Name: "a", Order: c.order}, nil)
			}
			before := read(t, store, "orders/a")
			meanwhile := func() {
				if c.meanwhile != nil {
					c.meanwhile(t, store)
				}
			}
			var out strings.Builder
			cmd := &forgetCmd{storeFlags: storeFlags{Namespace: "orders"}, Key: "a", Event: c.event, ResetOrder: c.reset}
			err := cmd.forget(t.Context(), store, &out, answering(meanwhile, c.answer))
			if got := status(err); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
				t.Errorf("status %d, want %d with %q\n%s%v", got, c.status, c.says, out.String(), err)
			}
			after := read(t, store, "orders/a")
			if c.status == 0 && (after.Token != "" || after.Fence <= before.Fence) {
				t.Errorf("the row is %+v afterwards", after)
			}
			if left := time.Until(after.DeleteAfter); c.status == 0 && c.order != "" && !c.reset && left < 365*24*time.Hour {
				t.Errorf("the order is kept for %v", left)
			}
			for _, e := range events {
				claim := driver.Claim{Name: "orders/a", Event: stored.Event(e), Order: c.order, Token: "new", Now: time.Now(), Stamp: time.Now().Add(time.Hour)}
				got := after.Judge(&claim) == driver.Granted
				if want := slices.Contains(c.runs, e); got != want && after.Token == "" {
					t.Errorf("%.10s would run: %v, want %v; the row is %+v", e, got, want, after)
				}
			}
			if kept := after.Memory.Result.Event != ""; c.result && kept != (c.event != "e2") {
				t.Errorf("a result is kept: %v", kept)
			}
		})
	}
}

// completeAgain completes an event once more, as after it was forgotten.
func completeAgain(t *testing.T, store *memstore.Store, event string) {
	t.Helper()
	err := edit(t.Context(), store, "orders/a", func(m driver.Memory) (*driver.Memory, error) {
		m.Completed = slices.Clone(m.Completed)
		for i := range m.Completed {
			if m.Completed[i].Event == event {
				m.Completed[i].Until = m.Completed[i].Until.Add(time.Second)
			}
		}
		return &m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestForgetOnDynamoDB: as a user does it, on the names and events that are
// stored in another way.
func TestForgetOnDynamoDB(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	for _, name := range []string{"a", strings.Repeat("n", 3000), "slot:2:a"} {
		key := lock.Key{Name: name, Event: "the only one", Order: "05"}
		complete(t, s.store, key, []byte("result"))
		forget := []string{"forget", "--namespace", "orders", name, "the only one"}
		command(t, s.env, forget...).expect(t, 64, "not a terminal")
		command(t, s.env, append(forget, "--yes", "--reset-order")...).expect(t, 0, "Forgotten")
		lk := acquire(t, s.store, "f request 1", time.Hour, key) // runs again
		command(t, s.env, append(forget, "--yes")...).expect(t, 1, "is held by f request 1", "release it first")
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		command(t, s.env, append(forget, "--yes")...).expect(t, 1, "does not remember")
	}
	complete(t, s.store, lock.Key{Name: "b", Event: "e", Order: "05"}, nil)
	command(t, s.env, "forget", "orders/b", "e", "--yes").expect(t, 0, "--reset-order forgets the highest order too")
	if row := read(t, s.store, "orders/b"); row.Memory.HighestOrder != "05" || len(row.Memory.Completed) != 0 {
		t.Errorf("the memory is %+v", row.Memory)
	}
	command(t, s.env, "forget", "orders/dog", "e", "--yes").expect(t, 1, "there is no row")
	command(t, s.env, "forget", "orders/b", "--yes").expect(t, 64, "expected")
}

// TestForgetAfterALostAnswer: the other events stay completed if the answer to
// the claim was lost, whether the store grants the repeated claim or refuses it
// and shows its own row.
func TestForgetAfterALostAnswer(t *testing.T) { // F1
	t.Parallel()
	for name, refuses := range map[string]bool{"granted again": false, "refused, its own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &forgetful{Store: memstore.New(), refuses: refuses}
			for _, event := range []string{"e1", "e2"} {
				complete(t, store.Store, lock.Key{Name: "a", Event: event}, nil)
			}
			err := (&forgetCmd{Key: "orders/a", Event: "e1"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
			row := read(t, store.Store, "orders/a")
			if now := time.Now(); err != nil || store.claims != 2 || row.Memory.Has("e1", now) || !row.Memory.Has("e2", now) {
				t.Errorf("%v after %d claims, and the row remembers %+v; want e2 only", err, store.claims, row.Memory.Completed)
			}
		})
	}
}

// forgetful is a store whose first answer to a claim is lost.
type forgetful struct {
	*memstore.Store
	refuses bool // the repeated claim, as locktest allows
	claims  int
}

func (s *forgetful) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if s.claims++; s.claims > 1 && s.refuses {
		row, err := s.Read(ctx, c.Name)
		return row, false, err
	}
	row, ok, err := s.Store.Acquire(ctx, c)
	if s.claims == 1 {
		return driver.Row{}, false, &driver.Error{Store: "a store", Temporary: true, Err: io.ErrUnexpectedEOF}
	}
	return row, ok, err
}

// TestExplainGuessesNothing: an event that was completed is not said to run
// because the namespace, or the key function, is not the function's.
func TestExplainGuessesNothing(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	key := lock.Key{Name: "s3/my-bucket/cat.png", Event: "e1"}
	complete(t, s.store, key, nil)
	file, err := filepath.Abs("../../sam-local/events/s3-put.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"right":           {[]string{"--namespace", "orders", "--name", key.Name, "--event", "e1"}, 0, "would    skip: completed"},
		"none, as exec":   {[]string{"--name", key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row"},
		"another event":   {[]string{"--namespace", "orders", "--name", key.Name, "--event", "e2"}, 0, "would    run: "},
		"wrong namespace": {[]string{"--namespace", "order", "--name", key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row"},
		"no namespace":    {[]string{file}, 0, "nothing is said of the rows: give the --namespace"},
		"nothing":         {nil, 64, "or give the --name of a key"},
		"both":            {[]string{"--name", "a", "event.json"}, 64, "or give the --name of a key"},
		"event of a file": {[]string{"--event", "e1", "event.json"}, 64, "--event and --order belong to --name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.env, append([]string{"explain"}, c.args...)...)
			r.expect(t, c.status, c.says)
			if strings.Contains(r.stdout, "would") != strings.Contains(c.says, "would") {
				t.Errorf("a verdict, or none:\n%s", r.stdout)
			}
		})
	}
}

// TestForgottenByTime: an event that has expired needs no forgetting.
func TestForgottenByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		lk := acquire(t, store, "f", time.Hour, lock.Key{Name: "a", Event: "e"}, func(o *lock.Options) { o.Remember = time.Minute })
		if err := lk.Complete(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		err := (&forgetCmd{Key: "orders/a", Event: "e"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
		if status(err) != 1 || !strings.Contains(err.Error(), "has forgotten e since") {
			t.Errorf("got %v", err)
		}
	})
}

// TestWatch follows a lock through its life.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"all": nil, "by key": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				store := &flaky{Store: memstore.New()}
				var out, notes strings.Builder
				w := &watchCmd{storeFlags: storeFlags{Namespace: "orders"}, Keys: keys, Interval: 10 * time.Second}
				ended := make(chan error)
				first := acquire(t, store, "f request 1", time.Minute, lock.Key{Name: "a", Event: "e1"})
				go func() { ended <- w.watch(ctx, store, &out, &notes) }()
				time.Sleep(15 * time.Second)
				store.fails.Store(true)
				if err := first.Complete(); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second)
				store.fails.Store(false)
				acquire(t, store, "f request 2", time.Minute, lock.Key{Name: "a", Event: "e2"})
				time.Sleep(80 * time.Second)
				acquire(t, store, "f request 3", time.Minute, lock.Key{Name: "a", Event: "e2"})
				time.Sleep(10 * time.Second)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				var got []string
				for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
					fields := strings.Fields(line)
					got = append(got, fields[1]+" "+strings.Join(fields[3:], " "))
				}
				want := []string{"held event e1 by f request 1", "completed event e1 by f request 1", "acquired event e2 by f request 2", "expired event e2 by f request 2", "taken_over event e2 by f request 3 from f request 2"}
				if len(got) != len(want) {
					t.Fatalf("got %q, want %q", got, want)
				}
				for i := range want {
					if !strings.HasPrefix(got[i], want[i]) {
						t.Errorf("line %d is %q, want %q", i, got[i], want[i])
					}
				}
				if !strings.Contains(notes.String(), "until Ctrl-C") || !strings.Contains(notes.String(), "flaky") {
					t.Errorf("notes: %s", notes.String())
				}
			})
		})
	}
}

// flaky is a store that does not answer for a while.
type flaky struct {
	*memstore.Store
	fails atomic.Bool
}

func (f *flaky) Read(ctx context.Context, name string) (driver.Row, error) {
	if f.fails.Load() {
		return driver.Row{}, &driver.Error{Store: "flaky", Temporary: true}
	}
	return f.Store.Read(ctx, name)
}

func (f *flaky) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	if f.fails.Load() {
		return func(yield func(driver.NamedRow, error) bool) {
			yield(driver.NamedRow{}, &driver.Error{Store: "flaky", Temporary: true})
		}
	}
	return f.Store.Rows(ctx, prefix)
}

func TestWatchAsAUserDoes(t *testing.T) {
	t.Parallel()
	s := newLockTable(t, "locks")
	acquire(t, s.store, "f request 1", time.Hour, lock.Key{Name: "a"})
	command(t, s.env, "watch", "--interval", "1ms").expect(t, 64, "the shortest is 100ms")
	for name, args := range map[string][]string{"text": nil, "JSON": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t, s.env, append([]string{"watch", "-i", "100ms"}, args...)...)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 1000)
			n, _ := out.Read(line)
			if !strings.Contains(string(line[:n]), "orders/a") || !strings.Contains(string(line[:n]), "held") {
				t.Errorf("prints %q", line[:n])
			}
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Errorf("after Ctrl-C: %v", err)
			}
		})
	}
}

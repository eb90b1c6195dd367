package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const table = "locks"

// endpoint is an embedded DynamoDB with a lock table.
type endpoint struct {
	*fakedynamo.Server
	url    string
	client *dynamodb.Client
	store  *dynamostore.Store
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{Server: fakedynamo.New()}
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	e.url = srv.URL
	e.client = client(srv.URL)
	if err := dynamostore.EnsureTable(t.Context(), e.client, table); err != nil {
		t.Fatal(err)
	}
	e.store = dynamostore.New(e.client, table)
	return e
}

func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func (e *endpoint) locker(t *testing.T, o lock.Options) *lock.Locker {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	l, err := lock.New(e.store, &o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestConformance(t *testing.T) {
	e := newEndpoint(t)
	locktest.Run(t, e.harness())
}

func (e *endpoint) harness() locktest.Harness {
	return locktest.Harness{
		Open:      func(*testing.T) driver.Store { return e.store },
		MakeNewer: func(t *testing.T, _ driver.Store, name string) { put(t, e, name, "SET rowFormat = :one") },
	}
}

func TestConformanceWithoutOldItems(t *testing.T) {
	e := newEndpoint(t)
	e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.OmitItem })
	h := e.harness()
	h.NoDetail = true
	locktest.Run(t, h)
}

func TestRowIsReadable(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	l := e.locker(t, lock.Options{Namespace: "thumbnails", Holder: func(context.Context) string { return "thumbnails request 1 log 2026/11/21/[$LATEST]0a" }})
	key := lock.Key{Name: "s3/b/k.jpg", Event: "0055", Order: "s0055"}
	attributes := func() []string {
		var names []string
		for name := range e.Item(table, "thumbnails/s3/b/k.jpg") {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	lk, err := l.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := attributes(), []string{"deleteAfter", "event", "fence", "heldUntil", "holder", "lock", "ownerToken", "stamp"}; !slices.Equal(got, want) {
		t.Errorf("held row has %v, want %v", got, want)
	}
	item := fmt.Sprint(e.Item(table, "thumbnails/s3/b/k.jpg"))
	for _, want := range []string{"thumbnails request 1 log 2026/11/21/[$LATEST]0a", "0055", lk.Lease().Until.UTC().Format("2006-01-02T15:04:05.000000Z"), fmt.Sprint(lk.Lease().Fence)} {
		if !strings.Contains(item, want) {
			t.Errorf("no %q in %s", want, item)
		}
	}
	if err := lk.Complete([]byte("result")); err != nil {
		t.Fatal(err)
	}
	if got, want := attributes(), []string{"completed", "deleteAfter", "fence", "highestOrder", "lock", "resultBody", "resultEvent", "stamp"}; !slices.Equal(got, want) {
		t.Errorf("free row has %v, want %v", got, want)
	}
	if n := e.Requests(); n != 2 {
		t.Errorf("%d writes for a cycle, want 2", n)
	}
}

// TestRowFitsOneWriteUnit: eight events of full length beside a usual name and
// holder, also while the name is held again.
func TestRowFitsOneWriteUnit(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	holder := "thumbnails-production request 8476a536-e9f4-11e8-9739-2dfe598c3fcd log 2026/11/21/[$LATEST]f4b1e6f2c4c14f2d9d3c3b6a2c8e1b7a"
	l := e.locker(t, lock.Options{Namespace: "thumbnails-production", Holder: func(context.Context) string { return holder }})
	name := "s3/pictures-example/holiday 2026/" + strings.Repeat("x", 40)
	for i := range 40 {
		lk, err := l.Acquire(t.Context(), lock.Key{Name: name, Event: fmt.Sprintf("%036d", i)})
		if err != nil {
			t.Fatal(err)
		}
		if n := size(e.Item(table, "thumbnails-production/"+name)); n > 1024 {
			t.Fatalf("after %d events the held row has %d bytes", i, n)
		}
		if err := lk.Complete(nil); err != nil {
			t.Fatal(err)
		}
	}
	done := e.Item(table, "thumbnails-production/"+name)["completed"].(map[string]any)["M"].(map[string]any)
	if len(done) < 8 {
		t.Errorf("%d events are remembered", len(done))
	}
	for i := 40 - len(done); i < 40; i++ {
		if _, ok := done[fmt.Sprintf("%036d", i)]; !ok {
			t.Errorf("event %d was dropped before an older one", i)
		}
	}
}

// size follows
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html.
func size(item map[string]any) int {
	n := 0
	for name, v := range item {
		n += len(name)
		for kind, v := range v.(map[string]any) {
			switch kind {
			case "S":
				n += len(v.(string))
			case "N":
				n += (len(v.(string))+1)/2 + 1
			case "M":
				n += 3 + size(v.(map[string]any)) + len(v.(map[string]any))
			}
		}
	}
	return n
}

// TestLostAnswers: the write was applied, the answer was lost.
func TestLostAnswers(t *testing.T) { // F1, F4, F5, F6
	for name, fault := range map[string]fakedynamo.Fault{"connection dropped": fakedynamo.ApplyThenDrop, "500": fakedynamo.ApplyThen500} {
		for _, op := range []string{"acquire", "renew", "release", "complete"} {
			t.Run(op+", "+name, func(t *testing.T) {
				t.Parallel()
				e := newEndpoint(t)
				faultAt := map[string]int{"acquire": 0, "renew": 1, "release": 1, "complete": 1}[op]
				e.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if r.Operation == "UpdateItem" && r.N == faultAt {
						return fault
					}
					return fakedynamo.None
				})
				renewed := make(chan struct{}, 1)
				o := lock.Options{}
				if op == "renew" {
					o.Lease = lock.Heartbeat(3 * time.Second)
					o.Observe = func(_ context.Context, o lock.Observation) {
						if o.Outcome == lock.OutcomeRenewed {
							select {
							case renewed <- struct{}{}:
							default:
							}
						}
					}
				}
				l := e.locker(t, o)
				key := lock.Key{Name: "n", Event: "e"}
				lk, err := l.Acquire(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if op == "renew" {
					<-renewed
				}
				settle := lk.Release
				if op == "complete" {
					settle = func() error { return lk.Complete(nil) }
				}
				if err := settle(); err != nil {
					t.Fatal(err)
				}
				if n := e.Requests(); op != "renew" && n != 3 {
					t.Errorf("%d requests, want one more than the two of a cycle", n)
				}
				if _, err := l.Acquire(t.Context(), key); errors.Is(err, lock.ErrCompleted) != (op == "complete") {
					t.Errorf("next delivery: %v", err)
				}
			})
		}
	}
}

func TestErrorsSayWhatToChange(t *testing.T) { // F8, F9, F10, F11
	for name, c := range map[string]struct {
		fault  fakedynamo.Fault
		table  string
		action string
		hint   string
		more   bool // repeated
	}{
		"denied":        {fakedynamo.Deny, table, "dynamodb:UpdateItem", "role", false},
		"missing table": {fakedynamo.None, "missing", "", "create-table", false},
		"throttled":     {fakedynamo.Throttle, table, "", "", true},
		"conflict":      {fakedynamo.Conflict, table, "", "", true},
		"dropped":       {fakedynamo.DropBefore, table, "", "", true},
		"hung":          {fakedynamo.Hang, table, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			l, err := lock.New(dynamostore.New(e.client, c.table), &lock.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.Acquire(t.Context(), lock.Key{Name: "n"})
			se, ok := err.(*lock.StoreError)
			if !ok || se.Store != "DynamoDB table "+c.table || se.Action != c.action || !strings.Contains(se.Hint, c.hint) || (se.Requests > 1) != c.more {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestForeignRows(t *testing.T) { // F41
	t.Parallel()
	e := newEndpoint(t)
	for name, update := range map[string]string{
		"newer format":    "SET rowFormat = :one, stamp = :time",
		"no stamp":        "SET ownerToken = :time, heldUntil = :time",
		"no heldUntil":    "SET ownerToken = :time, stamp = :time, fence = :one",
		"fence too large": "SET stamp = :time, fence = :huge",
	} {
		put(t, e, "/"+name, update)
		_, err := e.locker(t, lock.Options{}).Acquire(t.Context(), lock.Key{Name: name})
		if se, ok := err.(*lock.StoreError); !ok || !strings.Contains(se.Error(), "row") {
			t.Errorf("%s: %v, want a StoreError about the row", name, err)
		}
	}
}

// TestUnreadableRowIsReleased: the acquire was granted before the row turned out to
// be of no use, so the lock must not stay.
func TestUnreadableRowIsReleased(t *testing.T) { // F2, F41
	t.Parallel()
	e := newEndpoint(t)
	put(t, e, "/n", "SET fence = :huge")
	_, err := e.locker(t, lock.Options{}).Acquire(t.Context(), lock.Key{Name: "n"})
	if _, ok := err.(*lock.StoreError); !ok {
		t.Fatalf("%v, want a StoreError", err)
	}
	if token, held := e.Item(table, "/n")["ownerToken"]; held {
		t.Errorf("the row is still held by %v", token)
	}
}

func TestResultTooLarge(t *testing.T) { // F35
	t.Parallel()
	e := newEndpoint(t)
	var dropped bool
	l := e.locker(t, lock.Options{Observe: func(_ context.Context, o lock.Observation) {
		dropped = dropped || o.Outcome == lock.OutcomeResultDropped
	}})
	lk, err := l.Acquire(t.Context(), lock.Key{Name: "n", Event: "e"})
	if err != nil {
		t.Fatal(err)
	}
	if err := lk.Complete(make([]byte, 400<<10)); err != nil {
		t.Fatal(err)
	}
	if !dropped {
		t.Error("nobody was told that the result cannot be replayed")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	if err := e.store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Deny })
	if err := e.store.Check(t.Context()); err != nil {
		t.Errorf("a server that answers is there: %v", err)
	}
	e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.DropBefore })
	if err := e.store.Check(t.Context()); !errors.As(err, new(*driver.Error)) {
		t.Errorf("no answer: %v, want a driver.Error", err)
	}
	narrow := dynamostore.New(updateOnly{e.client}, table)
	if err := narrow.Check(t.Context()); err != nil {
		t.Errorf("a client that cannot be asked: %v", err)
	}
}

type updateOnly struct{ dynamostore.Client }

package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const table = "locks"

var discard = slog.New(slog.DiscardHandler)

// fixture is an embedded DynamoDB with a lock table, and a store for that
// table.
type fixture struct {
	*fakedynamo.Server
	url    string
	client *dynamodb.Client
	store  *dynamostore.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Server: fakedynamo.New()}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	f.client = client(srv.URL)
	expect.Must(t, dynamostore.EnsureTable(t.Context(), f.client, table))
	f.store = dynamostore.New(f.client, table)
	return f
}

func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		// A proxy of the machine answers for hosts that do not exist.
		HTTPClient: plainBodies{awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy = nil })},
	})
}

// plainBodies hides that a request's body can write itself. On one computer the
// answer is often there before the transport has looked for the end of that
// body. The SDK has closed it by then, and the transport gives up the
// connection within the answer (https://github.com/aws/smithy-go/pull/218).
type plainBodies struct{ *awshttp.BuildableClient }

// Do implements the SDK's HTTPClient.
func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.BuildableClient.Do(r)
}

func (f *fixture) locker(t *testing.T, o lock.Options) *lock.Locker {
	t.Helper()
	o.Logger = discard
	l := expect.Value(lock.New(f.store, &o))(t)
	return l
}

func TestConformance(t *testing.T) {
	f := newFixture(t)
	locktest.Run(t, f.harness())
}

func (f *fixture) harness() locktest.Harness {
	return locktest.Harness{
		Open:      func(*testing.T) driver.Store { return f.store },
		MakeNewer: func(t *testing.T, _ driver.Store, name string) { put(t, f, name, "SET rowFormat = :one") },
		Save: func(t *testing.T, _ driver.Store, name string) func() {
			key := map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}}
			saved := expect.Value(f.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key}))(t)
			return func() { putItem(t, f, name, saved.Item) }
		},
	}
}

// TestConformanceWithoutOldItems runs the suite on a server that does not
// return the item that failed a condition.
func TestConformanceWithoutOldItems(t *testing.T) {
	f := newFixture(t)
	f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.OmitItem })
	h := f.harness()
	h.NoDetail = true
	locktest.Run(t, h)
}

// TestMuteServer: only the refusal of a claim shows that a server leaves out
// the item, because there is no row otherwise. From then on no refusal without
// an item says that there is no row, and one with an item says what it did.
func TestMuteServer(t *testing.T) { // F56
	t.Parallel()
	f := newFixture(t)
	now := time.Now().Truncate(time.Microsecond)
	omits := func(omits bool) {
		f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
			if omits {
				return fakedynamo.OmitItem
			}
			return fakedynamo.None
		})
	}
	claim := func(name, token string) (driver.Row, bool) {
		row, ok, err := f.store.Acquire(t.Context(), &driver.Claim{Name: name, Token: token, Now: now, Stamp: now, Until: now.Add(time.Hour), DeleteAfter: now.Add(time.Hour)})
		expect.Must(t, err)
		return row, ok
	}
	renew := func(when, name string, untold bool) {
		t.Helper()
		row, ok, err := f.store.Renew(t.Context(), &driver.Renewal{Name: name, Token: "late", Now: now, Until: now.Add(2 * time.Hour), DeleteAfter: now.Add(2 * time.Hour)})
		if ok || err != nil || row.Untold != untold {
			t.Errorf("a renewal %s: %+v, %v, %v; want untold: %v", when, row, ok, err, untold)
		}
	}
	claim("n", "first")
	omits(true)
	renew("before a claim was refused", "n", false)
	if row, ok := claim("n", "second"); ok || !row.Untold {
		t.Errorf("a claim without an item: %+v, %v", row, ok)
	}
	renew("afterwards", "n", true)
	if _, ok := claim("free", "third"); !ok {
		t.Error("a free name is not granted")
	}
	renew("after a claim was granted", "n", true)
	omits(false)
	renew("with the item", "n", false)
	renew("of a name without a row", "gone", true)
}

func TestRowIsReadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.locker(t, lock.Options{Namespace: "thumbnails", Holder: func(context.Context) string { return "thumbnails request 1 log 2026/11/21/[$LATEST]0a" }})
	key := lock.Key{Name: "s3/b/k.jpg", Event: "0055", Order: "s0055"}
	attributes := func() []string {
		var names []string
		for name := range f.Item(table, "thumbnails/s3/b/k.jpg") {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	lk := expect.Value(l.Acquire(patience.Context(t), key))(t)
	if got, want := attributes(), []string{"deleteAfter", "event", "fence", "heldUntil", "holder", "lock", "ownerToken", "stamp"}; !slices.Equal(got, want) {
		t.Errorf("held row has %v, want %v", got, want)
	}
	item := fmt.Sprint(f.Item(table, "thumbnails/s3/b/k.jpg"))
	for _, want := range []string{"thumbnails request 1 log 2026/11/21/[$LATEST]0a", "0055", lk.Lease().Until.UTC().Format("2006-01-02T15:04:05.000000Z"), fmt.Sprint(lk.Lease().Fence)} {
		if !strings.Contains(item, want) {
			t.Errorf("no %q in %s", want, item)
		}
	}
	expect.Must(t, lk.CompleteWith(lock.Completion{Result: []byte("result")}))
	if got, want := attributes(), []string{"completed", "deleteAfter", "fence", "highestOrder", "lock", "resultBody", "resultEvent", "stamp"}; !slices.Equal(got, want) {
		t.Errorf("free row has %v, want %v", got, want)
	}
	if n := f.Requests(); n != 2 {
		t.Errorf("%d writes for a cycle, want 2", n)
	}
}

// TestRowFitsOneWriteUnit shows that a row with a usual name and holder
// remembers at least eight events in one write unit, even while the name is
// held.
func TestRowFitsOneWriteUnit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	holder := "thumbnails-production request 8476a536-e9f4-11e8-9739-2dfe598c3fcd log 2026/11/21/[$LATEST]f4b1e6f2c4c14f2d9d3c3b6a2c8e1b7a"
	l := f.locker(t, lock.Options{Namespace: "thumbnails-production", Holder: func(context.Context) string { return holder }})
	name := "s3/pictures-example/holiday 2026/" + strings.Repeat("x", 40)
	for i := range 40 {
		lk := expect.Value(l.Acquire(patience.Context(t), lock.Key{Name: name, Event: fmt.Sprintf("%036d", i)}))(t)
		if n := size(f.Item(table, "thumbnails-production/"+name)); n > 1024 {
			t.Fatalf("after %d events the held row has %d bytes", i, n)
		}
		expect.Must(t, lk.Complete())
	}
	completed := f.Item(table, "thumbnails-production/"+name)["completed"].(map[string]any)["M"].(map[string]any)
	if len(completed) < 8 {
		t.Errorf("%d events are remembered", len(completed))
	}
	for i := 40 - len(completed); i < 40; i++ {
		if _, ok := completed[fmt.Sprintf("%036d", i)]; !ok {
			t.Errorf("event %d was dropped before an older one", i)
		}
	}
}

// TestRowFillsOneWriteUnit shows that the size by which events are forgotten is
// that of the row: with a function name of 64 characters, the longest that
// Lambda takes, no lock name makes a held row larger than one write unit, and
// hardly any of the unit is left.
func TestRowFillsOneWriteUnit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order, payload string
		event          int // the size of one
		once           bool
		interrupted    int // how many such events the row has, too
	}{
		"event":             {event: 48},
		"event and order":   {order: "s0055AED6DCD90281E5", event: 48},
		"event and payload": {payload: "POST /payments", event: 107},
		"once":              {event: 48, once: true},
		"interrupted":       {payload: "POST /payments", event: 107, once: true, interrupted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// In 2000, when fake time begins, milliseconds since 1970 had a digit less.
				time.Sleep(time.Until(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)))
				f := newFakeFixture(t)
				o := lock.Options{RememberEvents: 1, Holder: func(context.Context) string { return longestHolder }}
				if c.once {
					o.OnInterrupted = lock.FailInterrupted
				}
				l := f.locker(t, o)
				largest := 0
				for length := range c.event {
					name := strings.Repeat("n", 100-90*c.interrupted+length)
					for i := range c.interrupted {
						lk := expect.Value(l.Acquire(t.Context(), lock.Key{Name: name, Event: fmt.Sprintf("%036d", 100+i), Payload: c.payload}))(t)
						expect.Must(t, lk.Fail(lock.ErrUnknown))
					}
					for i := range 960 / c.event { // more than fit
						k := lock.Key{Name: name, Event: fmt.Sprintf("%036d", i), Payload: c.payload}
						if c.order != "" {
							k.Order = c.order + fmt.Sprintf("%02d", i)
						}
						lk := expect.Value(l.Acquire(t.Context(), k))(t)
						largest = max(largest, size(f.Item(table, "/"+name)))
						expect.Must(t, lk.Complete())
					}
				}
				if largest < 1008 || largest > 1024 {
					t.Errorf("the largest held row has %d bytes, want 1008 to 1024", largest)
				}
			})
		})
	}
}

// longestHolder describes an invocation as package middleware does.
var longestHolder = strings.Repeat("f", 64) + " request 8476a536-e9f4-11e8-9739-2dfe598c3fcd log 2026/11/21/[$LATEST]f4b1e6f2c4c14f2d9d3c3b6a2c8e1b7a"

// size returns the size of an item, by the rules of
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

// onlyKey is a client of a server that answers with nothing but the key of a
// row that was not there.
type onlyKey struct{ dynamostore.Client }

func (onlyKey) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{Attributes: in.Key}, nil
}

// TestKeyAloneIsNoRow shows that such an answer is read as no row.
func TestKeyAloneIsNoRow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	row, ok, err := dynamostore.New(onlyKey{}, table).Acquire(t.Context(), &driver.Claim{Name: "n", Token: "t", Now: now, Stamp: now})
	if !ok || err != nil || row.Fence != now.UnixMicro() {
		t.Errorf("got %+v, %v, %v, want a new row", row, ok, err)
	}
}

// TestReleaseDescribesTheRow shows that the row after a release has what the
// request asked for, although it is not read back.
func TestReleaseDescribesTheRow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := time.Now()
	expect.Granted(f.store.Acquire(t.Context(), &driver.Claim{Name: "n", Token: "t", Now: now, Stamp: now, Until: now.Add(time.Hour), DeleteAfter: now}))(t)
	deleteAfter := now.Add(time.Hour)
	row, ok, err := f.store.Settle(t.Context(), &driver.Settlement{Name: "n", Token: "t", DeleteAfter: deleteAfter, Memory: &driver.Memory{HighestOrder: "o"}})
	if !ok || err != nil || !row.DeleteAfter.Equal(deleteAfter) || row.Memory.HighestOrder != "o" {
		t.Errorf("got %+v, %v, %v", row, ok, err)
	}
}

// TestRefusalCostsOneRequest: only a dead owner whose event is kept costs a
// claim a second request. A live one is asked again in every round of a wait.
func TestRefusalCostsOneRequest(t *testing.T) {
	t.Parallel()
	f := newFakeFixture(t)
	now := time.Now()
	claim := func(token string, at time.Time) *driver.Claim {
		return &driver.Claim{Name: "n", Token: token, Event: token, Holder: token, Now: at, Stamp: at, Until: now.Add(time.Hour), DeleteAfter: now.Add(time.Hour), InterruptedFor: time.Hour}
	}
	expect.Granted(f.store.Acquire(t.Context(), claim("owner", now)))(t)
	before := f.Requests()
	if row, ok, err := f.store.Acquire(t.Context(), claim("next", now.Add(time.Second))); ok || err != nil || row.Token != "owner" {
		t.Errorf("%+v, %v, %v, want the row of the owner", row, ok, err)
	}
	if n := f.Requests() - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestGrantedWhileGivenUp shows that a copy of a claim that is granted between
// the two requests that give it up is released, even if the server does not
// return the row that failed a condition.
func TestGrantedWhileGivenUp(t *testing.T) { // F2, F44
	for name, omit := range map[string]bool{"with the row": false, "without the row": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			now := time.Now().Truncate(time.Microsecond)
			claim := func(token string, after time.Duration) *driver.Claim {
				return &driver.Claim{Name: "n", Token: token, Now: now.Add(after), Stamp: now.Add(after), Until: now.Add(time.Hour), DeleteAfter: now.Add(time.Hour)}
			}
			expect.Granted(f.store.Acquire(t.Context(), claim("first", 0)))(t)
			late, first := claim("late", time.Second), f.Requests()
			f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
				if r.N == first+1 { // after the first request, and before the second
					f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
						if omit {
							return fakedynamo.OmitItem
						}
						return fakedynamo.None
					})
					if _, ok, err := f.store.Settle(context.Background(), &driver.Settlement{Name: "n", Token: "first", DeleteAfter: now}); !ok || err != nil {
						t.Error(ok, err)
					}
					if _, ok, err := f.store.Acquire(context.Background(), late); !ok || err != nil {
						t.Error(ok, err)
					}
				}
				if omit {
					return fakedynamo.OmitItem
				}
				return fakedynamo.None
			})
			_, ok, err := f.store.Settle(t.Context(), &driver.Settlement{Name: "n", Token: "late", Abandon: true, Stamp: late.Stamp, DeleteAfter: now})
			if !ok || err != nil {
				t.Errorf("giving up: %v, %v", ok, err)
			}
			if item := f.Item(table, "n"); item["ownerToken"] != nil {
				t.Errorf("the name is still held: %v", item)
			}
		})
	}
}

// TestLostAnswers shows that a request that was applied but not answered is
// sent again and recognised.
func TestLostAnswers(t *testing.T) { // F1, F4, F5, F6
	for name, fault := range map[string]fakedynamo.Fault{"apply then drop": fakedynamo.ApplyThenDrop, "apply then 500": fakedynamo.ApplyThen500} {
		for op, at := range map[string]int{"acquire": 0, "renew": 1, "release": 1, "complete": 1} {
			t.Run(op+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFakeFixture(t)
					f.failUpdates(fault, at, 1)
					if n := f.cycle(t, op); op != "renew" && n != 3 {
						t.Errorf("%d requests, want one more than the two of a cycle", n)
					}
				})
			})
		}
	}
}

// failUpdates gives n UpdateItem requests the fault, after the first ones.
func (f *fixture) failUpdates(fault fakedynamo.Fault, first, n int) {
	f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.Operation == "UpdateItem" && r.N >= first && r.N < first+n {
			return fault
		}
		return fakedynamo.None
	})
}

// cycle acquires a lock, waits for a renewal if op is "renew", and ends the
// lock: with a release if op is "release", otherwise with a completion. It
// checks what the next delivery gets, and returns how many requests the lock
// took.
func (f *fixture) cycle(t *testing.T, op string) int {
	t.Helper()
	renewed := make(chan struct{}, 100)
	o := lock.Options{}
	if op == "renew" {
		o.Lease = lock.Heartbeat(6 * time.Second)
		o.Observe = func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				renewed <- struct{}{}
			}
		}
	}
	l := f.locker(t, o)
	key := lock.Key{Name: "n", Event: "e"}
	lk := expect.Value(l.Acquire(t.Context(), key))(t)
	if op == "renew" {
		select {
		case <-renewed:
		case <-lk.Context().Done():
			t.Fatalf("the work was stopped before a renewal: %v", context.Cause(lk.Context()))
		}
	}
	end := func() error { return lk.Complete() }
	if op == "release" {
		end = lk.Release
	}
	expect.Must(t, end())
	requests := f.Requests()
	next, err := l.Acquire(t.Context(), key)
	if errors.Is(err, lock.ErrCompleted) != (op != "release") {
		t.Errorf("next delivery: %v", err)
	}
	if err == nil {
		_ = next.Release()
	}
	return requests
}

func TestForeignRows(t *testing.T) { // F41
	t.Parallel()
	f := newFixture(t)
	for name, update := range map[string]string{
		"newer format":    "SET rowFormat = :one, stamp = :time",
		"no stamp":        "SET ownerToken = :time, heldUntil = :time",
		"no heldUntil":    "SET ownerToken = :time, stamp = :time, fence = :one",
		"fence too large": "SET stamp = :time, fence = :huge",
	} {
		t.Run(name, func(t *testing.T) {
			put(t, f, "/"+name, update)
			_, err := f.locker(t, lock.Options{}).Acquire(t.Context(), lock.Key{Name: name})
			if se, ok := err.(*lock.StoreError); !ok || !strings.Contains(se.Error(), "row") {
				t.Errorf("got %v, want a StoreError about the row", err)
			}
		})
	}
}

// TestUnreadableInterruptions: a row that somebody has spoiled makes no event
// run that it may have as a completed or an interrupted one, and no name look
// held for ever.
func TestUnreadableInterruptions(t *testing.T) { // F19, F41
	t.Parallel()
	f := newFixture(t)
	past := &types.AttributeValueMemberS{Value: "2000-11-21T08:15:30.000000Z"}
	run := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: values{"e": v}}
	}
	for name, item := range map[string]values{
		"completed, not a map":         {"completed": past},
		"completed, not a number":      {"completed": run(past)},
		"not a map":                    {"interrupted": past},
		"an event that is not a map":   {"interrupted": run(past)},
		"an event without a time":      {"interrupted": run(run(past))},
		"a time that is not a number":  {"interrupted": run(&types.AttributeValueMemberM{Value: values{"until": past}})},
		"interruptedFor, not a number": {"ownerToken": past, "heldUntil": past, "interruptedFor": past},
		"interruptedFor, negative":     {"ownerToken": past, "heldUntil": past, "interruptedFor": &types.AttributeValueMemberN{Value: "-1"}},
	} {
		item["stamp"] = past
		putItem(t, f, "/"+name, item)
		_, err := f.locker(t, lock.Options{}).Acquire(patience.Context(t), lock.Key{Name: name, Event: "e"})
		if !errors.As(err, new(*lock.StoreError)) || !strings.Contains(err.Error(), "row has") {
			t.Errorf("%s: %v, want a StoreError about the row", name, err)
		}
	}
}

// TestUnreadableRowIsReleased shows that a claim is given up if it was granted
// before its row turned out to be unreadable.
func TestUnreadableRowIsReleased(t *testing.T) { // F2, F41
	t.Parallel()
	f := newFixture(t)
	put(t, f, "/n", "SET fence = :huge")
	_, err := f.locker(t, lock.Options{}).Acquire(patience.Context(t), lock.Key{Name: "n"})
	if _, ok := err.(*lock.StoreError); !ok {
		t.Fatalf("%v, want a StoreError", err)
	}
	if token, held := f.Item(table, "/n")["ownerToken"]; held {
		t.Errorf("the row is still held by %v", token)
	}
}

func TestResultTooLarge(t *testing.T) { // F35
	t.Parallel()
	f := newFixture(t)
	var dropped bool
	l := f.locker(t, lock.Options{Observe: func(_ context.Context, o lock.Observation) {
		dropped = dropped || o.Outcome == lock.OutcomeResultDropped
	}})
	lk := expect.Value(l.Acquire(patience.Context(t), lock.Key{Name: "n", Event: "e"}))(t)
	expect.Must(t, lk.CompleteWith(lock.Completion{Result: make([]byte, 400<<10)}))
	if !dropped {
		t.Error("nobody was told that the result cannot be replayed")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expect.OK(t, f.store.Check(t.Context()))
	f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Deny })
	if err := f.store.Check(t.Context()); err != nil {
		t.Errorf("a server that answers, even if it denies: %v", err)
	}
	f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.DropBefore })
	if err := f.store.Check(t.Context()); !errors.As(err, new(*driver.Error)) {
		t.Errorf("no answer: %v, want a driver.Error", err)
	}
	narrow := dynamostore.New(updateOnly{f.client}, table)
	if err := narrow.Check(t.Context()); err != nil {
		t.Errorf("a client that has only UpdateItem: %v", err)
	}
}

// updateOnly is a client without DescribeEndpoints.
type updateOnly struct{ dynamostore.Client }

package dynamostore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// calls records the actions that requests to a table need, and the keys that
// they name.
type calls struct {
	next http.Handler
	mu   sync.Mutex
	on   map[string]bool // actions
	keys map[string]bool
}

// ServeHTTP implements http.Handler.
func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var sent struct {
		TableName     string
		Key           map[string]map[string]string
		TransactItems []map[string]struct {
			TableName string
			Key       map[string]map[string]string
		}
		Statements []struct{ Statement string }
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mu.Lock()
	// DescribeEndpoints, with which a connection is opened, needs no permission.
	if json.Unmarshal(body, &sent) == nil && !slices.Contains([]string{"TransactWriteItems", "BatchExecuteStatement", "DescribeEndpoints"}, operation) {
		c.on["dynamodb:"+operation] = true
		c.keys[sent.Key["lock"]["S"]] = true
	}
	for _, s := range sent.Statements { // each needs the action of its verb
		verb, _, _ := strings.Cut(s.Statement, " ")
		c.on["dynamodb:PartiQL"+verb[:1]+strings.ToLower(verb[1:])] = true
	}
	for _, item := range sent.TransactItems { // each needs the action of its own
		for kind, i := range item {
			if i.TableName == table {
				c.on["dynamodb:"+kind+"Item"] = true
				c.keys[i.Key["lock"]["S"]] = true
			}
		}
	}
	c.mu.Unlock()
	c.next.ServeHTTP(w, r)
}

// take returns the actions and keys that were recorded, and forgets them.
func (c *calls) take() (actions, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	actions, keys = slices.Sorted(maps.Keys(c.on)), slices.Sorted(maps.Keys(c.keys))
	c.on, c.keys = map[string]bool{}, map[string]bool{}
	return actions, keys
}

// shipped returns the actions that pattern captures in a file, sorted, once
// each.
func shipped(t *testing.T, path, pattern string) []string {
	t.Helper()
	text := expect.Value(os.ReadFile("../../" + path))(t)
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		for _, action := range regexp.MustCompile(`dynamodb:\w+`).FindAllString(m[1], -1) {
			found[action] = true
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s allows nothing", path)
	}
	return slices.Sorted(maps.Keys(found))
}

// TestCallsAreThoseShipped runs the conformance suite, and all that package
// lock does with a store, also over a network with faults, and compares the
// actions that the requests need with those that the construct, the templates
// and the documents allow: none is missing, and none is allowed in vain.
func TestCallsAreThoseShipped(t *testing.T) { // F40
	server := fakedynamo.New()
	recorded := &calls{next: server}
	recorded.take()
	srv := httptest.NewServer(recorded)
	t.Cleanup(srv.Close)
	c := client(srv.URL)

	compare := func(what string, want map[string][]string) []string {
		t.Helper()
		got, keys := recorded.take()
		for where, actions := range want {
			if !slices.Equal(got, actions) {
				t.Errorf("%s needs %q, but %s allows %q", what, got, where, actions)
			}
		}
		return keys
	}

	expect.Must(t, dynamostore.EnsureTable(t.Context(), c, table))
	for _, name := range []string{table, "effects"} { // the first one exists
		expect.Must(t, dynamostore.EnsureTable(t.Context(), c, name))
	}
	compare("EnsureTable", map[string][]string{"docs/STORES.md": shipped(t, "docs/STORES.md", "(?m)^\\| `create-table` \\|(.*)$")})

	store := dynamostore.New(c, table)
	t.Run("suite", func(t *testing.T) {
		withoutRead := struct{ driver.Store }{store} // the suite would look at rows, which a function does not
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return withoutRead }})
	})
	const fragment = `(?i)actions?"?\s*[:=]\s*\[?((?:"?dynamodb:\w+"?,?\s*)+)`
	function := map[string][]string{
		"infra/grant.go":          shipped(t, "infra/grant.go", `lockActions = \[\]string\{(.*)\}`),
		"infra/table.yaml":        shipped(t, "infra/table.yaml", fragment),
		"infra/table-sam.yaml":    shipped(t, "infra/table-sam.yaml", fragment),
		"infra/table.tf":          shipped(t, "infra/table.tf", fragment),
		"sam-local/template.yaml": shipped(t, "sam-local/template.yaml", `Action: ([^[\n]*)\n\s+Resource: !GetAtt LockTable.Arn`),
	}
	compare("the suite", function)

	t.Run("suite in batches", func(t *testing.T) {
		withoutRead := struct{ driver.Store }{dynamostore.New(batching.Client(c), table)}
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return withoutRead }})
	})
	compare("the suite in batches", map[string][]string{
		"infra/grant.go":          slices.Sorted(slices.Values(append(shipped(t, "infra/grant.go", `batchActions = \[\]string\{(.*)\}`), function["infra/grant.go"]...))),
		"sam-local/template.yaml": shipped(t, "sam-local/template.yaml", `Action: (\[.*\])\n\s+Resource: !GetAtt LockTable.Arn`), // of bulk
		"docs/STORES.md":          slices.Sorted(slices.Values(append(shipped(t, "docs/STORES.md", `(?m)^\*\*In batches\*\*(.*)$`), function["infra/table.yaml"]...))),
	})

	for name, fault := range map[string]fakedynamo.Fault{
		"package lock": fakedynamo.None, "under throttling": fakedynamo.Throttle, "under conflicts": fakedynamo.Conflict,
		"under errors": fakedynamo.ApplyThen500, "without an answer": fakedynamo.ApplyThenDrop,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { useEverything(t, server, clientOf(recorded), fault) })
			for _, key := range compare(name, function) {
				if !strings.HasPrefix(key, "orders/") {
					t.Errorf("a request names the key %q, which is not in the namespace", key)
				}
			}
		})
	}

	expect.Value(store.Read(t.Context(), "orders/a"))(t)
	for _, err := range store.Rows(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
	}
	compare("to look at rows", map[string][]string{
		"docs/STORES.md": shipped(t, "docs/STORES.md", `"Action": (\["dynamodb:GetItem", "dynamodb:Scan"\])`),
	})
}

// useEverything does all that package lock can do with a store, in the
// namespace orders. Every other write meets the fault.
func useEverything(t *testing.T, server *fakedynamo.Server, c *dynamodb.Client, fault fakedynamo.Fault) {
	t.Helper()
	first := server.Requests()
	server.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if (r.N-first)%2 == 0 && r.Operation != "DescribeEndpoints" {
			return fault
		}
		return fakedynamo.None
	})
	store := dynamostore.New(c, table)
	locker := func(o lock.Options) *lock.Locker {
		o.Namespace, o.Logger = "orders", discard
		l := expect.Value(lock.New(store, &o))(t)
		return l
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	l := locker(lock.Options{Lease: lock.Heartbeat(time.Minute)})
	must(l.Check(ctx))
	name := rand.Text()
	key := func(event string) lock.Key { return lock.Key{Name: name, Event: event, Order: event} }
	must(l.Do(ctx, key("1"), func(ctx context.Context) error {
		if _, err := l.Acquire(context.Background(), key("2")); err == nil {
			t.Error("a second holder")
		}
		return nil
	}))
	lk, err := l.Acquire(ctx, key("3"))
	must(err)
	must(lk.CompleteWith(lock.Completion{Result: []byte("result")}))
	all, err := l.AcquireAll(ctx, lock.Key{Name: "a"}, lock.Key{Name: "b"})
	must(err)
	must(all.Release())
	for range 2 {
		lk, err := l.AcquireOneOf(ctx, "limited", 2)
		must(err)
		defer func() { must(lk.Release()) }()
	}
	must(l.Do(ctx, key("4"), func(ctx context.Context) error {
		_, err := dynamostore.Transact(ctx, c, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
			TableName: aws.String("effects"), Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "effect"}},
		}}}})
		return err
	}))
	// A claim without an answer is abandoned.
	server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Hang })
	if _, err := l.Acquire(ctx, key("5")); !errors.As(err, new(*lock.StoreError)) {
		t.Errorf("a server that hangs: %v, want a StoreError", err)
	}
	server.OnRequest(nil)
}

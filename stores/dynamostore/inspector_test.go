package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// pagesOf is a client whose scans have pages of two items.
type pagesOf struct {
	*dynamodb.Client
	scans int
}

func (c *pagesOf) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	c.scans++
	in.Limit = aws.Int32(2)
	return c.Client.Scan(ctx, in, opts...)
}

// complete acquires and completes a key of each name.
func (f *fixture) complete(t *testing.T, namespace string, names ...string) {
	t.Helper()
	l := f.locker(t, lock.Options{Namespace: namespace})
	for _, name := range names {
		lk := expect.Value(l.Acquire(patience.Context(t), lock.Key{Name: name, Event: "e"}))(t)
		expect.Must(t, lk.Complete())
	}
}

func TestRowsOfManyPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprint("n", i))
	}
	f.complete(t, "a", want...)
	f.complete(t, "b", "n0", "n1")
	client := &pagesOf{Client: f.client}
	rows := dynamostore.New(client, table).Rows
	for prefix, c := range map[string]struct {
		names int
		scans int
	}{
		"a/": {9, 6}, "b/": {2, 6}, "": {11, 6}, "none": {0, 6},
	} {
		t.Run(prefix, func(t *testing.T) {
			client.scans = 0
			got := map[string]int{}
			for row, err := range rows(t.Context(), prefix) {
				if err != nil || row.Fence == 0 || !row.Memory.Has("e", row.Stamp) {
					t.Fatalf("%+v, error %v", row, err)
				}
				if strings.HasPrefix(row.Name, prefix) {
					got[row.Name]++
				}
			}
			if len(got) != c.names || client.scans != c.scans || len(got) > 0 && slices.Max(slices.Collect(maps.Values(got))) != 1 {
				t.Errorf("%d requests gave %v, want %d requests and each of %d names once", client.scans, got, c.scans, c.names)
			}
		})
	}
	client.scans = 0
	for range rows(t.Context(), "") {
		break
	}
	if client.scans != 1 {
		t.Errorf("%d requests after the caller had stopped", client.scans)
	}
}

// TestReadErrors shows that an error says what the person who looks has to
// change.
func TestReadErrors(t *testing.T) { // F10
	t.Parallel()
	for name, c := range map[string]struct {
		client func(*fixture) dynamostore.Client // nil for the fixture's
		table  string                            // "" for the fixture's
		fault  fakedynamo.Fault
		read   []string // what the error of Read says
		rows   []string // what that of Rows says
	}{
		"denied": {
			fault: fakedynamo.Deny,
			read:  []string{"dynamodb:GetItem was denied", "allow yourself"},
			rows:  []string{"dynamodb:Scan was denied", "allow yourself", "LeadingKeys"},
		},
		"denied, without the action": {
			client: func(f *fixture) dynamostore.Client { return deniedReads{f.client} },
			read:   []string{"dynamodb:GetItem was denied"},
			rows:   []string{"dynamodb:Scan was denied"},
		},
		"denied key": {
			fault: fakedynamo.DenyKey,
			read:  []string{"kms:Decrypt was denied", "yourself", "on the key"},
			rows:  []string{"kms:Decrypt was denied", "yourself", "on the key"},
		},
		"missing table": {table: "missing", read: []string{"table missing", "create-table"}, rows: []string{"table missing", "create-table"}},
		"client that cannot read": {
			client: func(f *fixture) dynamostore.Client { return refusing{f.client, ""} },
			read:   []string{"DynamoDB table locks has no GetItem and Scan", "*dynamodb.Client"},
			rows:   []string{"DynamoDB table locks has no GetItem and Scan", "*dynamodb.Client"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			var client dynamostore.Client = f.client
			if c.client != nil {
				client = c.client(f)
			}
			store := dynamostore.New(client, c.table)
			if c.table == "" {
				store = dynamostore.New(client, table)
			}
			_, err := store.Read(t.Context(), "n")
			expectError(t, err, c.read)
			expectError(t, errorOfRows(t, store, ""), c.rows)
		})
	}
}

func expectError(t *testing.T, err error, says []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "UpdateItem") || strings.Contains(err.Error(), "the function's role") {
		t.Errorf("blames a function: %v", err)
	}
}

// errorOfRows returns the error at the end of the rows.
func errorOfRows(t *testing.T, store *dynamostore.Store, prefix string) error {
	t.Helper()
	var last error
	for _, err := range store.Rows(t.Context(), prefix) {
		if last != nil {
			t.Error("the rows go on after an error")
		}
		last = err
	}
	return last
}

// deniedReads is a client whose answers do not say what was denied.
type deniedReads struct{ *dynamodb.Client }

func (deniedReads) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
}

func (deniedReads) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
}

// TestReadsAreRepeated shows that a scan of many pages does not end because one
// of them is throttled, even if the client itself repeats nothing.
func TestReadsAreRepeated(t *testing.T) { // F8
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFixture(t)
		f.store = dynamostore.New(dynamodb.New(f.client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), table)
		f.complete(t, "a", "n")
		requests := map[string]int{}
		f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
			requests[r.Operation]++
			if requests[r.Operation] == 1 {
				return fakedynamo.Throttle
			}
			return fakedynamo.None
		})
		row, err := f.store.Read(t.Context(), "a/n")
		if err != nil || row.Unknown() {
			t.Errorf("read %+v, error %v", row, err)
		}
		expect.OK(t, errorOfRows(t, f.store, ""))
		if requests["GetItem"] != 2 || requests["Scan"] != 2 {
			t.Errorf("requests: %v", requests)
		}
	})
}

// TestRowsOfAnotherKind shows what a scan makes of items that are not locks.
func TestRowsOfAnotherKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	putItem(t, f, "a/key only", nil)
	putItem(t, f, "a/later", values{"rowFormat": &types.AttributeValueMemberN{Value: "2"}})
	var rows []driver.NamedRow
	for row, err := range f.store.Rows(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) != 1 || rows[0].Name != "a/later" || !rows[0].Newer {
		t.Errorf("rows: %+v", rows)
	}
	for _, name := range []string{"b/1", "b/order\x1b", "b/2", "b/total"} {
		putItem(t, f, name, values{"total": &types.AttributeValueMemberN{Value: "2"}})
	}
	f.complete(t, "b", "n")
	var unreadable []string
	rows = nil
	for row, err := range f.store.Rows(t.Context(), "b/") {
		if err == nil {
			rows = append(rows, row)
			continue
		}
		unreadable = append(unreadable, row.Name)
		want := fmt.Sprintf("%q: the row has no readable attribute stamp", row.Name)
		if e := (*driver.Error)(nil); !errors.As(err, &e) || !e.Lasting || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names the row", err)
		}
	}
	slices.Sort(unreadable)
	if want := []string{"b/1", "b/2", "b/order\x1b", "b/total"}; !slices.Equal(unreadable, want) || len(rows) != 1 || rows[0].Name != "b/n" {
		t.Errorf("the rows %+v, and errors of %q", rows, unreadable)
	}
}

// TestRowsOfAnotherTable names the key that the table lacks, also if only the
// rows of one namespace are asked for.
func TestRowsOfAnotherTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	createTable(t, f, "orders", "id")
	item := values{"id": &types.AttributeValueMemberS{Value: "1"}}
	expect.Value(f.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}))(t)
	for _, prefix := range []string{"", "a/"} {
		err := errorOfRows(t, dynamostore.New(f.client, "orders"), prefix)
		if e := (*driver.Error)(nil); !errors.As(err, &e) || !e.Lasting || !strings.Contains(err.Error(), `partition key named "lock"`) {
			t.Errorf("prefix %q: error %v, want one that names the key", prefix, err)
		}
	}
}

type values = map[string]types.AttributeValue

func putItem(t *testing.T, f *fixture, name string, item values) {
	t.Helper()
	it := values{"lock": &types.AttributeValueMemberS{Value: name}}
	maps.Copy(it, item)
	expect.Value(f.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}))(t)
}

package batching_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// TestOtherRequests shows that what is neither a claim nor a release passes
// unchanged, also in a batch, and if it is not the store's; and so does a
// release with a large memory.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		claims := claimsOf("name", 3)
		f.mustAcquire(t, claims...)
		f.take()
		expect.Must(t, f.store.Check(t.Context()))
		expect.Value(f.store.Read(t.Context(), "name0"))(t)
		for _, err := range f.store.Rows(t.Context(), "") {
			expect.Must(t, err)
		}
		renew := func(ctx context.Context) {
			_, _, err := f.store.Renew(ctx, &driver.Renewal{Name: "name0", Token: claims[0].Token, Until: claims[0].Until, DeleteAfter: claims[0].DeleteAfter})
			expect.Must(t, err)
		}
		foreign := func(ctx context.Context) {
			in := &dynamodb.UpdateItemInput{
				TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "other"}},
				UpdateExpression: aws.String("REMOVE visits"),
			}
			expect.Value(batching.Client(clientOf(f)).UpdateItem(ctx, in))(t)
		}
		large := func(c *driver.Claim) func(context.Context) { // which the others would wait for
			memory := &driver.Memory{}
			for i := range 200 {
				memory.Completed = append(memory.Completed, driver.CompletedEvent{Event: fmt.Sprintf("e:%0100d", i), Until: c.Until})
			}
			return func(ctx context.Context) {
				_, _, err := f.store.Settle(ctx, &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter})
				expect.Must(t, err)
			}
		}
		company(t.Context(), renew, renew, foreign, foreign, large(claims[1]), large(claims[2]))
		want := append([]string{"DescribeEndpoints", "GetItem", "Scan"}, slices.Repeat([]string{"UpdateItem"}, 6)...)
		if got := f.take(); !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

// TestTablesOfOneClient shows that the locks of two tables do not get in each
// other's way, although a request has each name once.
func TestTablesOfOneClient(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		client := batching.Client(clientOf(f))
		expect.Must(t, dynamostore.EnsureTable(t.Context(), clientOf(f), "more"))
		stores := []*dynamostore.Store{dynamostore.New(client, table), dynamostore.New(client, "more")}
		claims := claimsOf("name", 3)
		for range 2 { // as new names, and as known ones
			var requests []func(context.Context)
			for _, c := range claims {
				for _, store := range stores {
					requests = append(requests, func(ctx context.Context) {
						if _, ok, err := store.Acquire(ctx, c); !ok || err != nil {
							t.Errorf("claim of %s: %v, %v", c.Name, ok, err)
						}
					})
				}
			}
			company(t.Context(), requests...)
		}
		for _, c := range claims {
			if f.Item(table, c.Name) == nil || f.Item("more", c.Name) == nil {
				t.Errorf("%s has no row in one of the tables", c.Name)
			}
		}
	})
}

// TestCompanyWaitsForNobody shows that a request that comes alone is sent
// immediately and as ever, and that others wait only until all are there.
func TestCompanyWaitsForNobody(t *testing.T) {
	t.Parallel()
	const single, batch = "UpdateItem", "BatchExecuteStatement"
	for name, c := range map[string]struct {
		claims int
		want   []string
	}{
		"1": {1, []string{single}}, "2": {2, []string{batch}}, "10": {10, []string{batch}},
		"25": {25, []string{batch}}, "26": {26, []string{batch, single}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				began := time.Now()
				f.mustAcquire(t, claimsOf("name", c.claims)...)
				got := slices.DeleteFunc(f.take(), func(s string) bool { return strings.Contains(s, " ") })
				slices.Sort(got)
				if took := time.Since(began); !slices.Equal(got, c.want) || took != latency {
					t.Errorf("%q in %v, want %q in %v", got, took, c.want, latency)
				}
			})
		})
	}
	t.Run("no batch", func(t *testing.T) {
		t.Parallel()
		inFakeTime(t, func(t *testing.T, f *fixture) {
			began := time.Now()
			if _, ok, err := f.store.Acquire(t.Context(), claimOf("name")); !ok || err != nil {
				t.Error(ok, err)
			}
			if got := f.take(); len(got) != 1 || got[0] != single || time.Since(began) != latency {
				t.Errorf("%q in %v", got, time.Since(began))
			}
		})
	})
	t.Run("stragglers", func(t *testing.T) {
		t.Parallel()
		inFakeTime(t, func(t *testing.T, f *fixture) {
			began := time.Now()
			ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 16})
			var all sync.WaitGroup
			for _, c := range claimsOf("name", 3) {
				all.Go(func() { _, _, _ = f.store.Acquire(ctx, c) })
			}
			all.Wait()
			if got := f.take(); len(got) != 4 || time.Since(began) != latency+time.Millisecond {
				t.Errorf("%q in %v, want a batch of 3 after 1 ms", got, time.Since(began))
			}
		})
	})
}

// TestKnownNames shows which requests the claims of names take: those with a
// row that the process does not know, or has not used for long, one more, and
// others none, also if they are refused.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		claims := claimsOf("name", 2)
		requests := func(store *dynamostore.Store) []string {
			f.store = store
			f.mustAcquire(t, claims...)
			return f.take()
		}
		if got := requests(f.store); len(got) != 3 || !strings.HasPrefix(got[1], "INSERT") {
			t.Errorf("new names: %q", got)
		}
		if got := requests(f.store); len(got) != 3 || !strings.HasPrefix(got[1], "UPDATE") {
			t.Errorf("known names: %q", got)
		}
		client := batching.Client(clientOf(f))
		other := dynamostore.New(client, table)
		if got := requests(other); len(got) != 6 || !strings.HasPrefix(got[1], "INSERT") || !strings.HasPrefix(got[4], "UPDATE") {
			t.Errorf("names of another process: %q", got)
		}
		if got := requests(other); len(got) != 3 || !strings.HasPrefix(got[1], "UPDATE") {
			t.Errorf("known names of another process: %q", got)
		}
		batching.Learn(client, "more", batching.MaxKnown)
		if got := requests(other); len(got) != 3 {
			t.Errorf("after many other names: %q", got)
		}
		batching.Learn(client, "others", 2*batching.MaxKnown)
		if got := requests(other); len(got) != 6 {
			t.Errorf("after so many that these are forgotten: %q", got)
		}
		for _, c := range claims {
			c.Token = "another"
		}
		if _ = f.acquire(t.Context(), claims...); len(f.take()) != 3 {
			t.Error("a refusal takes a request more")
		}
	})
}

// TestDeletedRow shows that a name is granted that the process knows, but whose
// row garbage collection has deleted.
func TestDeletedRow(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		claims := claimsOf("name", 3)
		f.mustAcquire(t, claims...)
		expect.Value(clientOf(f).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "name1"}},
		}}}}))(t)
		f.mustAcquire(t, claims...)
	})
}

// TestMemoryWithoutReturning shows that what a name remembers is not lost on a
// server that applies a claim and does not return the row, as some emulators
// do. The release would write the memory without it.
func TestMemoryWithoutReturning(t *testing.T) { // P5
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *fixture) {
		f.store = storeOf(split(f, func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			f.ServeHTTP(answer, r)
			_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(`"Item":`), []byte(`"Unknown":`)))
		}))
		claims := claimsOf("name", 2)
		f.mustAcquire(t, claims...)
		for _, c := range claims {
			memory := &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e:1", Until: time.Now().Add(time.Hour)}}}
			expect.Granted(f.store.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter}))(t)
		}
		time.Sleep(time.Second)
		for i, o := range f.acquire(t.Context(), claimsOf("name", 2)...) {
			if !o.ok || len(o.row.Memory.Completed) != 1 {
				t.Errorf("claim %d: %v, %v, %+v, want the completed event", i, o.ok, o.err, o.row)
			}
		}
	})
}

// byARN takes the ARN of the table for its name, as DynamoDB does except in
// PartiQL.
type byARN struct{ *fixture }

const tableARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/" + table

func (s byARN) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	body = bytes.ReplaceAll(body, []byte(`"TableName":"`+tableARN+`"`), []byte(`"TableName":"`+table+`"`))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	s.fixture.ServeHTTP(w, r)
}

// TestInDoubtAlone lists the claims that do not travel together, whatever
// servers make of them.
func TestInDoubtAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*driver.Claim){
		"dot":        func(c *driver.Claim) { c.Event = "a.b" },
		"index":      func(c *driver.Claim) { c.Event = "x[0]" },
		"name":       func(c *driver.Claim) { c.Event = "#x" },
		"value":      func(c *driver.Claim) { c.Event = ":x" },
		"quote":      func(c *driver.Claim) { c.Event = `x" IS MISSING --` },
		"parameter":  func(c *driver.Claim) { c.Event = "x?" },
		"line":       func(c *driver.Claim) { c.Event = "x\n" },
		"not ASCII":  func(c *driver.Claim) { c.Event = "é" },
		"large":      func(c *driver.Claim) { c.Holder = strings.Repeat("h", 17<<10) },
		"empty name": func(c *driver.Claim) { c.Name = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				claims := claimsOf("name", 3)
				change(claims[0])
				outcomes := f.acquire(t.Context(), claims...)
				if o := outcomes[0]; o.ok != (claims[0].Name != "") {
					t.Errorf("%v, %v", o.ok, o.err)
				}
				for _, o := range outcomes[1:] {
					if !o.ok || o.err != nil {
						t.Errorf("a neighbour: %v, %v", o.ok, o.err)
					}
				}
				if got := f.take(); !slices.Contains(got, "UpdateItem") {
					t.Errorf("%q, want one alone", got)
				}
			})
		})
	}
}

// TestDenied shows when requests do not travel together: if the action is
// denied or the table is an ARN, with one warning, and not if a name is.
func TestDenied(t *testing.T) {
	inFakeTime := func(t *testing.T, test func(*testing.T, *fixture, *bytes.Buffer)) {
		t.Helper()
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		inFakeTime(t, func(t *testing.T, f *fixture) { test(t, f, &log) })
	}
	for name, operation := range map[string]string{"request": "BatchExecuteStatement", "inserts": "PartiQLInsert"} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, f *fixture, log *bytes.Buffer) {
				f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if r.Operation == operation {
						return fakedynamo.Deny
					}
					return fakedynamo.None
				})
				f.mustAcquire(t, claimsOf("name", 25)...)
				f.take()
				f.mustAcquire(t, claimsOf("other", 25)...)
				if got := f.take(); len(got) != 25 || slices.Contains(got, "BatchExecuteStatement") {
					t.Errorf("%q, want 25 single writes", got)
				}
				if n := strings.Count(log.String(), "dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate"); n != 1 {
					t.Errorf("%d warnings: %s", n, log)
				}
			})
		})
	}
	t.Run("request, for names that are held", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, f *fixture, _ *bytes.Buffer) {
			f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
				if r.Operation == "BatchExecuteStatement" {
					return fakedynamo.Deny
				}
				return fakedynamo.None
			})
			holder := dynamostore.New(clientOf(f), table)
			for _, c := range claimsOf("name", 3) {
				c.Token = "another"
				expect.Granted(holder.Acquire(t.Context(), c))(t)
			}
			_ = f.acquire(t.Context(), claimsOf("name", 3)...)
			f.take()
			_ = f.acquire(t.Context(), claimsOf("name", 3)...)
			if got := f.take(); len(got) != 3 || slices.Contains(got, "BatchExecuteStatement") {
				t.Errorf("%q, want 3 single writes", got)
			}
		})
	})
	t.Run("ARN", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, f *fixture, log *bytes.Buffer) {
			f.store = dynamostore.New(batching.Client(clientOf(byARN{f})), tableARN)
			f.mustAcquire(t, claimsOf("name", 3)...)
			if got := f.take(); len(got) != 3 || slices.Contains(got, "BatchExecuteStatement") || strings.Count(log.String(), "by its ARN") != 1 {
				t.Errorf("%q, log %q, want 3 single writes and one warning", got, log)
			}
		})
	})
	t.Run("name", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, f *fixture, log *bytes.Buffer) {
			f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
				if r.Key == "name0" {
					return fakedynamo.Deny
				}
				return fakedynamo.None
			})
			_ = f.acquire(t.Context(), claimsOf("name", 3)...)
			f.take()
			f.mustAcquire(t, claimsOf("other", 3)...)
			if got := f.take(); len(got) != 4 || log.Len() > 0 {
				t.Errorf("%q, log %q, want one batch", got, log)
			}
		})
	})
}

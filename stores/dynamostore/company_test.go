package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/traffic"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// latency is that of a request to the endpoint of a companyFixture.
const latency = 5 * time.Millisecond

// companyFixture is a store that sends requests together, without a network.
type companyFixture struct {
	*fakedynamo.Server
	store *dynamostore.Store
	meter traffic.Meter

	mu   sync.Mutex
	sent []string // the operations, and the texts of PartiQL
}

func newCompanyFixture(t *testing.T) *companyFixture {
	t.Helper()
	f := &companyFixture{Server: fakedynamo.New()}
	client := clientOf(f)
	if err := dynamostore.EnsureTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	f.store = dynamostore.New(client, table).InBatches()
	f.sent = nil
	return f
}

// ServeHTTP implements http.Handler.
func (f *companyFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct{ Statements []struct{ Statement string } }
	_ = json.Unmarshal(body, &in)
	f.mu.Lock()
	f.sent = append(f.sent, operation)
	for _, s := range in.Statements {
		f.sent = append(f.sent, s.Statement)
	}
	f.mu.Unlock()
	defer f.meter.Begin(operation, max(1, len(in.Statements)))()
	time.Sleep(latency)
	f.Server.ServeHTTP(w, r)
}

// take returns what was sent, and forgets it.
func (f *companyFixture) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = nil
	return sent
}

// company runs all requests at the same time, in one batch.
func company(ctx context.Context, requests ...func(context.Context)) {
	ctx = invocation.WithBatch(ctx, &invocation.Batch{Claims: len(requests)})
	var all sync.WaitGroup
	for _, request := range requests {
		all.Go(func() { request(ctx) })
	}
	all.Wait()
}

func claimOf(name string) *driver.Claim {
	now := time.Now()
	return &driver.Claim{Name: name, Token: "token of " + name, Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
}

// outcome is the answer to a claim.
type outcome struct {
	row driver.Row
	ok  bool
	err error
}

// acquire claims all names together.
func (f *companyFixture) acquire(ctx context.Context, claims ...*driver.Claim) []outcome {
	outcomes := make([]outcome, len(claims))
	requests := make([]func(context.Context), len(claims))
	for i, c := range claims {
		requests[i] = func(ctx context.Context) {
			o := &outcomes[i]
			o.row, o.ok, o.err = f.store.Acquire(ctx, c)
		}
	}
	company(ctx, requests...)
	return outcomes
}

func (f *companyFixture) mustAcquire(t *testing.T, claims ...*driver.Claim) {
	t.Helper()
	for i, o := range f.acquire(t.Context(), claims...) {
		if o.err != nil || !o.ok {
			t.Fatalf("claim of %s: %v, %v, %+v", claims[i].Name, o.ok, o.err, o.row)
		}
	}
}

func claimsOf(names string, n int) []*driver.Claim {
	claims := make([]*driver.Claim, n)
	for i := range claims {
		claims[i] = claimOf(fmt.Sprint(names, i))
	}
	return claims
}

// inFakeTime runs a test with a companyFixture in fake time.
func inFakeTime(t *testing.T, test func(*testing.T, *companyFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newCompanyFixture(t)) })
}

// TestStatementTexts shows all texts that are sent, as the documents and the
// servers in package integration know them.
func TestStatementTexts(t *testing.T) {
	t.Parallel()
	const (
		insert   = `INSERT INTO "locks" VALUE {'lock': ?, 'ownerToken': ?, 'heldUntil': ?, 'stamp': ?, 'fence': ?, 'holder': ?, 'deleteAfter': ?`
		set      = `UPDATE "locks" SET ownerToken = ?, heldUntil = ?, stamp = ?, fence = ?, holder = ?, deleteAfter = ?`
		claim    = ` WHERE "lock" = ? AND rowFormat IS MISSING AND (((ownerToken IS MISSING OR heldUntil < ?) AND (stamp IS MISSING OR stamp < ?)) OR (ownerToken = ? AND heldUntil <= ? AND stamp <= ?))`
		event    = ` AND (completed."e:1" IS MISSING OR completed."e:1" < ?)`
		order    = ` AND (highestOrder IS MISSING OR highestOrder < ?)`
		old      = ` RETURNING ALL OLD *`
		released = ` REMOVE ownerToken REMOVE heldUntil REMOVE holder REMOVE event REMOVE payload`
		owner    = ` WHERE "lock" = ? AND rowFormat IS MISSING AND ownerToken = ?`
	)
	completed := []driver.CompletedEvent{{Event: "e:1", Until: time.Now()}}
	withPayload := []driver.CompletedEvent{{Event: "e:1", Payload: "p", Until: time.Now()}}
	for name, c := range map[string]struct {
		event, order, payload string
		memory                *driver.Memory
		cooldown              bool
		want                  []string
	}{
		"mutex":             {want: []string{insert + "}", set + " REMOVE event REMOVE payload" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + owner}},
		"order":             {order: "1", want: []string{insert + "}", set + " REMOVE event REMOVE payload" + claim + order + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + owner}},
		"event":             {event: "e:1", memory: &driver.Memory{Completed: completed}, want: []string{insert + ", 'event': ?}", set + ", event = ? REMOVE payload" + claim + event + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?" + released + " REMOVE marks REMOVE payloads REMOVE highestOrder REMOVE resultBody REMOVE resultEvent" + owner}},
		"event and order":   {event: "e:1", order: "1", memory: &driver.Memory{Completed: completed, HighestOrder: "1"}, want: []string{insert + ", 'event': ?}", set + ", event = ? REMOVE payload" + claim + event + order + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, highestOrder = ?" + released + " REMOVE marks REMOVE payloads REMOVE resultBody REMOVE resultEvent" + owner}},
		"payload":           {event: "e:1", payload: "p", memory: &driver.Memory{Completed: withPayload, Result: driver.Result{Event: "e:1", Body: []byte("1")}}, want: []string{insert + ", 'event': ?, 'payload': ?}", set + ", event = ?, payload = ?" + claim + event + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, payloads = ?, resultBody = ?, resultEvent = ?" + released + " REMOVE marks REMOVE highestOrder" + owner}},
		"payload and order": {event: "e:1", order: "1", payload: "p", memory: &driver.Memory{Completed: withPayload, Result: driver.Result{Event: "older"}, HighestOrder: "1"}, want: []string{insert + ", 'event': ?, 'payload': ?}", set + ", event = ?, payload = ?" + claim + event + order + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, payloads = ?, highestOrder = ?" + released + " REMOVE marks" + owner}},
		"cooldown":          {cooldown: true, want: []string{insert + "}", set + " REMOVE event REMOVE payload" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?, ownerToken = ?, heldUntil = ? REMOVE holder REMOVE event REMOVE payload" + owner}},
		"nothing completed": {memory: &driver.Memory{}, want: []string{insert + "}", set + " REMOVE event REMOVE payload" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + " REMOVE marks REMOVE completed REMOVE payloads REMOVE highestOrder REMOVE resultBody REMOVE resultEvent" + owner}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				claims := claimsOf("name", 2)
				for _, cl := range claims {
					cl.Event, cl.Order, cl.Payload = c.event, c.order, c.payload
				}
				f.mustAcquire(t, claims...)
				f.mustAcquire(t, claims...) // the names are known
				release := func(i int) func(context.Context) {
					return func(ctx context.Context) {
						s := &driver.Settlement{Name: claims[i].Name, Token: claims[i].Token, Memory: c.memory}
						if c.cooldown {
							s.Until = claims[i].Until
						}
						if _, ok, err := f.store.Settle(ctx, s); !ok || err != nil {
							t.Errorf("release: %v, %v", ok, err)
						}
					}
				}
				company(t.Context(), release(0), release(1))
				var want []string
				for _, text := range c.want {
					want = append(want, "BatchExecuteStatement", text, text)
				}
				if got := f.take(); !slices.Equal(got, want) {
					t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// paired sends each request of the suite that comes alone together with one for
// another name.
type paired struct{ *dynamostore.Store }

func (p paired) together(ctx context.Context, request func(context.Context)) {
	if invocation.BatchOf(ctx) != nil {
		request(ctx)
		return
	}
	company(ctx, request, func(ctx context.Context) {
		_, _, _ = p.Store.Acquire(ctx, claimOf(fmt.Sprint("neighbour/", time.Now().UnixNano())))
	})
}

// Acquire implements driver.Store.
func (p paired) Acquire(ctx context.Context, c *driver.Claim) (row driver.Row, ok bool, err error) {
	p.together(ctx, func(ctx context.Context) { row, ok, err = p.Store.Acquire(ctx, c) })
	return row, ok, err
}

// Settle implements driver.Store.
func (p paired) Settle(ctx context.Context, s *driver.Settlement) (row driver.Row, ok bool, err error) {
	p.together(ctx, func(ctx context.Context) { row, ok, err = p.Store.Settle(ctx, s) })
	return row, ok, err
}

func TestConformanceInCompany(t *testing.T) {
	for name, c := range map[string]struct {
		fault    fakedynamo.Fault
		noDetail bool
	}{"server": {}, "server without old items": {fakedynamo.OmitItem, true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			h := f.harness()
			h.NoDetail = c.noDetail
			h.Open = func(*testing.T) driver.Store { return paired{f.store.InBatches()} }
			locktest.Run(t, h)
		})
	}
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
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
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
		inFakeTime(t, func(t *testing.T, f *companyFixture) {
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
		inFakeTime(t, func(t *testing.T, f *companyFixture) {
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
// row that the process does not know one more, and others none.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
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
		other := dynamostore.New(clientOf(f), table).InBatches()
		if got := requests(other); len(got) != 6 || !strings.HasPrefix(got[1], "INSERT") || !strings.HasPrefix(got[4], "UPDATE") {
			t.Errorf("names of another process: %q", got)
		}
		if got := requests(other); len(got) != 3 || !strings.HasPrefix(got[1], "UPDATE") {
			t.Errorf("known names of another process: %q", got)
		}
	})
}

// TestDeletedRow shows that a name is granted that the process knows, but whose
// row garbage collection has deleted.
func TestDeletedRow(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		claims := claimsOf("name", 3)
		f.mustAcquire(t, claims...)
		_, err := clientOf(f).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "name1"}},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		f.mustAcquire(t, claims...)
	})
}

// clientWithoutReturning is the client of a server that ignores RETURNING, as
// some emulators do.
type clientWithoutReturning struct{ *dynamodb.Client }

func (c clientWithoutReturning) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out, err := c.Client.BatchExecuteStatement(ctx, in, options...)
	if err == nil {
		for i := range out.Responses {
			out.Responses[i].Item = nil
		}
	}
	return out, err
}

// TestMemoryWithoutReturning shows that what a name remembers is not lost on a
// server that applies a claim and does not return the row. The release would
// write the memory without it.
func TestMemoryWithoutReturning(t *testing.T) { // P5
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		f.store = dynamostore.New(clientWithoutReturning{clientOf(f)}, table).InBatches()
		claims := claimsOf("name", 2)
		f.mustAcquire(t, claims...)
		for _, c := range claims {
			memory := &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e:1", Until: time.Now().Add(time.Hour)}}}
			if _, ok, err := f.store.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter}); !ok || err != nil {
				t.Fatal(ok, err)
			}
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
type byARN struct{ *companyFixture }

const tableARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/" + table

func (s byARN) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	body = bytes.ReplaceAll(body, []byte(`"TableName":"`+tableARN+`"`), []byte(`"TableName":"`+table+`"`))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	s.companyFixture.ServeHTTP(w, r)
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
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
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

// TestRequestErrors shows that what is unknown for a request is unknown for
// each of its members.
func TestRequestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     fakedynamo.Fault
		unapplied bool
	}{
		"lost answer": {fakedynamo.ApplyThenDrop, false}, "lost request": {fakedynamo.DropBefore, false},
		"failed": {fakedynamo.ApplyThen500, false}, "throttled": {fakedynamo.Throttle, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if r.Operation == "BatchExecuteStatement" {
						return c.fault
					}
					return fakedynamo.None
				})
				claims := claimsOf("name", 25)
				for _, o := range f.acquire(t.Context(), claims...) {
					var e *driver.Error
					if !errors.As(o.err, &e) || e.Lasting || e.Unapplied != c.unapplied {
						t.Errorf("%v, %+v", o.ok, e)
					}
				}
				f.OnRequest(nil)
				f.mustAcquire(t, claims...) // whatever has become of them
			})
		})
	}
}

// TestDenied shows when requests do not travel together: if the action is
// denied or the table is an ARN, with one warning, and not if a name is.
func TestDenied(t *testing.T) {
	inFakeTime := func(t *testing.T, test func(*testing.T, *companyFixture, *bytes.Buffer)) {
		t.Helper()
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		inFakeTime(t, func(t *testing.T, f *companyFixture) { test(t, f, &log) })
	}
	for name, operation := range map[string]string{"request": "BatchExecuteStatement", "inserts": "PartiQLInsert"} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, f *companyFixture, log *bytes.Buffer) {
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
	t.Run("ARN", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, f *companyFixture, log *bytes.Buffer) {
			f.store = dynamostore.New(clientOf(byARN{f}), tableARN).InBatches()
			f.mustAcquire(t, claimsOf("name", 3)...)
			if got := f.take(); len(got) != 3 || slices.Contains(got, "BatchExecuteStatement") || strings.Count(log.String(), "by its ARN") != 1 {
				t.Errorf("%q, log %q, want 3 single writes and one warning", got, log)
			}
		})
	})
	t.Run("name", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, f *companyFixture, log *bytes.Buffer) {
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

// TestContextEndsInQueue shows that a claim whose caller has gone is not sent.
func TestContextEndsInQueue(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 16})
		short, cancel := context.WithTimeout(ctx, 500*time.Microsecond)
		defer cancel()
		var all sync.WaitGroup
		claims := claimsOf("name", 3)
		for i, c := range claims {
			all.Go(func() {
				ctx := ctx
				if i == 0 {
					ctx = short
				}
				_, ok, err := f.store.Acquire(ctx, c)
				if i == 0 && !errors.Is(err, context.DeadlineExceeded) || i > 0 && !ok {
					t.Errorf("claim %d: %v, %v", i, ok, err)
				}
			})
		}
		all.Wait()
		if f.Item(table, "name0") != nil || len(f.take()) != 3 {
			t.Errorf("the claim was sent: %v", f.Item(table, "name0"))
		}
	})
}

// lateContext has ended before anybody is told.
type lateContext struct {
	context.Context
	ended atomic.Bool
}

// Err implements context.Context.
func (c *lateContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestContextEndsAtDeparture shows that a claim whose context has ended is not
// sent even if its caller is still there.
func TestContextEndsAtDeparture(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		timed, cancel := context.WithTimeout(t.Context(), 10*latency)
		defer cancel()
		company(t.Context(), func(ctx context.Context) {
			late := &lateContext{Context: invocation.WithBatch(timed, invocation.BatchOf(ctx))}
			time.AfterFunc(100*time.Microsecond, func() { late.ended.Store(true) })
			if _, ok, err := f.store.Acquire(late, claimOf("name0")); ok || err == nil {
				t.Error("granted")
			}
		}, func(ctx context.Context) {
			time.Sleep(200 * time.Microsecond)
			if _, ok, err := f.store.Acquire(ctx, claimOf("name1")); !ok || err != nil {
				t.Error(ok, err)
			}
		})
		if f.Item(table, "name0") != nil {
			t.Error("the claim was sent")
		}
	})
}

// TestRequestLivesAsLongAsItsMembers shows that a request ends when the last of
// its callers has gone, and that each caller goes when its own context ends.
func TestRequestLivesAsLongAsItsMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hangs bool
		ends  []time.Duration
	}{
		"answered": {false, []time.Duration{latency / 2, time.Minute, 2 * latency}},
		"hangs":    {true, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				if c.hangs {
					f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Hang })
				}
				began := time.Now()
				requests := make([]func(context.Context), len(c.ends))
				for i, end := range c.ends {
					requests[i] = func(ctx context.Context) {
						ctx, cancel := context.WithTimeout(ctx, end)
						defer cancel()
						_, ok, err := f.store.Acquire(ctx, claimOf(fmt.Sprint("name", i)))
						want := min(end, latency)
						if c.hangs {
							want = end
						}
						if took := time.Since(began); took != want || ok != (!c.hangs && end > latency) {
							t.Errorf("claim %d ended after %v with %v, %v", i, took, ok, err)
						}
					}
				}
				company(t.Context(), requests...)
			})
		})
	}
}

// TestOneNameTwice shows that two claims of a name never meet in a request,
// which the service refuses.
func TestOneNameTwice(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		claims := claimsOf("name", 4)
		claims[1].Name = claims[0].Name
		granted := 0
		for _, o := range f.acquire(t.Context(), claims...) {
			if o.err != nil {
				t.Error(o.err)
			}
			if o.ok {
				granted++
			}
		}
		// The other claim goes alone, before or after the batch.
		batches, statements := 0, 0
		got := f.take()
		for _, sent := range got {
			if sent == "BatchExecuteStatement" {
				batches++
			}
			if strings.HasPrefix(sent, "INSERT") {
				statements++
			}
		}
		if granted != 3 || batches != 1 || statements != 3 {
			t.Errorf("%d claims of 3 names were granted, by %q; want a batch of 3 and one alone", granted, got)
		}
	})
}

// clientThatPanics is a client with an interceptor that panics.
type clientThatPanics struct{ *dynamodb.Client }

func (clientThatPanics) BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	panic("interceptor")
}

// TestClientThatPanics shows that a panic of the client reaches each record,
// whose goroutine recovers, and does not end the process.
func TestClientThatPanics(t *testing.T) { // F48
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		f.store = dynamostore.New(clientThatPanics{clientOf(f)}, table).InBatches()
		var requests []func(context.Context)
		for _, c := range claimsOf("name", 3) {
			requests = append(requests, func(ctx context.Context) {
				defer func() {
					if p := recover(); p != "interceptor" {
						t.Errorf("%s: recovered %v", c.Name, p)
					}
				}()
				_, _, err := f.store.Acquire(ctx, c)
				t.Errorf("%s: %v", c.Name, err)
			})
		}
		company(t.Context(), requests...)
	})
}

func TestInBatchesNeedsAClient(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "*dynamodb.Client") {
			t.Errorf("panic %q", text)
		}
	}()
	dynamostore.New(struct{ dynamostore.Client }{}, table).InBatches()
}

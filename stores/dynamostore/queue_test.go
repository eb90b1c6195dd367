package dynamostore_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestFullRequestsWaitForNobody shows that a full request leaves at once,
// however many others are under way. Otherwise most claims would run out of
// time where a table is slow.
func TestFullRequestsWaitForNobody(t *testing.T) { // F11
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		began := time.Now()
		f.mustAcquire(t, claimsOf("name", 40*25)...)
		if took := time.Since(began); took != latency {
			t.Errorf("the claims took %v, want %v", took, latency)
		}
	})
}

// TestHungRequestsHoldUpNobody shows that claims wait 10 ms at most for earlier
// requests, even if these have no answer.
func TestHungRequestsHoldUpNobody(t *testing.T) { // F11
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
			if slices.ContainsFunc(r.Keys, func(name string) bool { return strings.HasPrefix(name, "hangs") }) {
				return fakedynamo.Hang
			}
			return fakedynamo.None
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() { f.acquire(ctx, claimsOf("hangs"+string(rune('a'+i)), 2)...) })
			time.Sleep(time.Microsecond) // a request for each
		}
		began := time.Now()
		f.mustAcquire(t, claimsOf("name", 2)...)
		if took := time.Since(began); took != 10*time.Millisecond+latency {
			t.Errorf("the claims took %v, want %v", took, 10*time.Millisecond+latency)
		}
		all.Wait()
	})
}

// TestBatchesAtTheSameTime shows that the records of a batch find company while
// another batch of the process has requests under way.
func TestBatchesAtTheSameTime(t *testing.T) { // F39
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		var all sync.WaitGroup
		for _, names := range []string{"a", "b", "c", "d", "e"} {
			all.Go(func() { f.mustAcquire(t, claimsOf(names, 10)...) })
			time.Sleep(latency / 5)
		}
		all.Wait()
		got := slices.DeleteFunc(f.take(), func(s string) bool { return strings.Contains(s, " ") })
		if len(got) != 5 {
			t.Errorf("%q, want a request for each of 5 batches", got)
		}
	})
}

// clientThatEndsLate needs a second to end a request whose context has ended.
type clientThatEndsLate struct {
	*dynamodb.Client
	ended *bool
}

func (c clientThatEndsLate) BatchExecuteStatement(ctx context.Context, _ *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	<-ctx.Done()
	time.Sleep(time.Second)
	*c.ended = true
	return nil, ctx.Err()
}

// TestRequestEndsBeforeItsLastCaller shows that nothing of a request goes on
// after all claims have given up.
func TestRequestEndsBeforeItsLastCaller(t *testing.T) { // F17
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		ended := false
		f.store = dynamostore.New(clientThatEndsLate{clientOf(f), &ended}, table).InBatches()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, o := range f.acquire(ctx, claimsOf("name", 3)...) {
			if !errors.Is(o.err, context.DeadlineExceeded) {
				t.Errorf("%v, %v, want the end of the claim's own context", o.ok, o.err)
			}
		}
		if !ended {
			t.Error("the request goes on")
			time.Sleep(2 * time.Second)
		}
	})
}

// clientThatExits is a client of a test that fails while it is asked.
type clientThatExits struct{ *dynamodb.Client }

func (clientThatExits) BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	runtime.Goexit()
	return nil, nil
}

// TestClientThatExits shows that each claim has an answer if the client ends
// its goroutine: that it is unknown what became of the request.
func TestClientThatExits(t *testing.T) { // F18
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		f.store = dynamostore.New(clientThatExits{clientOf(f)}, table).InBatches()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		for _, o := range f.acquire(ctx, claimsOf("name", 3)...) {
			if e := (*driver.Error)(nil); !errors.As(o.err, &e) || e.Lasting || e.Unapplied || time.Since(began) > 0 {
				t.Errorf("%v, %v after %v", o.ok, o.err, time.Since(began))
			}
		}
	})
}

package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestRequests counts, on every server, the requests of what a lock can do.
func TestRequests(t *testing.T) {
	tests := map[string]func(*counter){
		"lock": countLock, "payload": countPayload, "several": countSeveral,
		"limit": countLimit, "transaction": countTransaction,
	}
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			s := backend.start(t)
			client := newTable(t, s)
			createTable(t, client, "payments", "payment")
			// The first requests to a server may take longer than an attempt may.
			if err := (rawLock{client}).cycle(t.Context(), "requests/first"); err != nil {
				t.Fatal(err)
			}
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					w := newWire(0)
					t.Cleanup(w.next.CloseIdleConnections)
					client := newClient(s.Endpoint, w)
					test(&counter{t, w, client, dynamostore.New(client, table), "requests/" + rand.Text()})
				})
			}
		})
	}
}

// counter counts the requests of each step of a test.
type counter struct {
	*testing.T
	wire   *wire
	client *dynamodb.Client
	store  *dynamostore.Store
	name   string
}

func (c *counter) locker(o lock.Options) *lock.Locker {
	o.Lease = lock.FixedLease(time.Minute)
	return newLocker(c, c.store, o)
}

// sends checks that a step sends that many requests, and how it ends. Those
// that a slow server made the step repeat do not count.
func (c *counter) sends(requests int64, step string, err, want error) {
	c.Helper()
	if n := c.wire.take() - c.wire.timedOut.Swap(0); n != requests {
		c.Errorf("%s: %d requests, want %d", step, n, requests)
	}
	if !errors.Is(err, want) {
		c.Fatalf("%s: %v, want %v", step, err, want)
	}
}

func countLock(c *counter) {
	locker, key := c.locker(lock.Options{}), lock.Key{Name: c.name, Event: "e1"}
	c.sends(2, "a cycle", locker.Do(c.Context(), key, nothing), nil)
	c.sends(1, "a completed event", locker.Do(c.Context(), key, nothing), lock.ErrCompleted)
	key.Event = "e2"
	_, err := locker.Acquire(c.Context(), key)
	c.sends(1, "acquire", err, nil)
	c.sends(1, "a held name", locker.Do(c.Context(), key, nothing), lock.ErrHeld)
}

// countPayload shows that the row that refuses an event also tells that its
// payload is another one, and that this is not waited for.
func countPayload(c *counter) {
	locker := c.locker(lock.Options{MaxWait: time.Minute})
	first := lock.Key{Name: c.name, Event: "e1", Payload: "pay 10"}
	other := first
	other.Payload = "pay 1000"
	refused := func(when string) {
		var mismatch *lock.PayloadMismatchError
		err := locker.Do(c.Context(), other, nothing)
		if !errors.As(err, &mismatch) {
			c.Errorf("another payload %s: %v, want a *lock.PayloadMismatchError", when, err)
		}
		c.sends(1, "another payload "+when, nil, nil)
	}
	lk, err := locker.Acquire(c.Context(), first)
	c.sends(1, "acquire", err, nil)
	refused("while held")
	c.sends(1, "complete", lk.Complete(), nil)
	refused("once completed")
	c.sends(1, "the same payload", locker.Do(c.Context(), first, nothing), lock.ErrCompleted)
}

func countSeveral(c *counter) {
	locker := c.locker(lock.Options{})
	keys := []lock.Key{{Name: c.name + "/c"}, {Name: c.name + "/a"}, {Name: c.name + "/b"}}
	set, err := locker.AcquireAll(c.Context(), keys...)
	c.sends(3, "three names", err, nil)
	c.sends(3, "complete them", set.Complete(), nil)
	_, err = locker.Acquire(c.Context(), keys[0])
	c.sends(1, "the last one", err, nil)
	_, err = locker.AcquireAll(c.Context(), keys...)
	c.sends(3+2, "the third is held", err, lock.ErrHeld)
}

func countLimit(c *counter) {
	const limit = 4
	locker := c.locker(lock.Options{})
	for held := range limit {
		lk, err := locker.AcquireOneOf(c.Context(), c.name, limit)
		between := max(1, min(c.wire.requests.Load()-c.wire.timedOut.Load(), int64(1+held))) // the order is random
		c.sends(between, fmt.Sprint("a slot, with held: ", held), err, nil)
		if held == 0 {
			c.sends(1, "release it", lk.Release(), nil)
			_, err := locker.AcquireOneOf(c.Context(), c.name, limit)
			c.sends(1, "the first slot", err, nil)
		}
	}
	_, err := locker.AcquireOneOf(c.Context(), c.name, limit)
	c.sends(limit, "all slots are held", err, lock.ErrHeld)
}

func countTransaction(c *counter) {
	payment := map[string]types.AttributeValue{"payment": &types.AttributeValueMemberS{Value: c.name}}
	handler := middleware.WithLock(itself, func(ctx context.Context, _ lock.Key) error {
		_, err := dynamostore.Transact(ctx, c.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("payments"), Item: payment, ConditionExpression: aws.String("attribute_not_exists(payment)")}},
		}})
		return err
	}, middleware.Store(c.store), middleware.Logger(discard))
	key := lock.Key{Name: c.name, Event: "e1"}
	c.sends(2, "a handled event", handler(c.Context(), key), nil)
	c.sends(1, "its duplicate", handler(c.Context(), key), nil)
	out, err := c.client.GetItem(c.Context(), &dynamodb.GetItemInput{TableName: aws.String("payments"), Key: payment, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		c.Errorf("the payment is not in its table: %v", err)
	}
}

package migration

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

// shop has both tables.
type shop struct {
	*bank
	client *dynamodb.Client
	reads  *reads
}

func newShop(t *testing.T) shop {
	client := dynamotest.New(map[string]string{"old": "id"})
	return shop{newBank(t), client, &reads{Client: client}}
}

// versions of the function, in the order in which they are deployed.
var versions = map[string]func(shop) handler{
	"its own put": shop.putFirst,
	"both":        func(s shop) handler { return s.locked(s.putFirst()) },
	"lock and question": func(s shop) handler {
		return s.locked(oldTable{s.reads, "old"}.unlessCompleted(s.pay))
	},
	"only the lock": func(s shop) handler { return s.locked(s.pay) },
}

func (s shop) locked(handle handler) handler {
	return middleware.WithLock(byID, handle, middleware.Store(dynamostore.New(s.client, dynamotest.LockTable)))
}

// putFirst is a handler as many wrote it: a conditional put, the work, and
// another write.
func (s shop) putFirst() handler {
	return func(ctx context.Context, p payment) error {
		err := s.put(ctx, p, "IN_PROGRESS", "attribute_not_exists(id)")
		if errors.As(err, new(*types.ConditionalCheckFailedException)) {
			if completed, err := (oldTable{s.client, "old"}).completed(ctx, p.ID); completed || err != nil {
				return err
			}
			return errors.New("in progress")
		}
		if err != nil {
			return err
		}
		if err := s.pay(ctx, p); err != nil {
			return err
		}
		return s.put(ctx, p, "COMPLETED", "attribute_exists(id)")
	}
}

func (s shop) put(ctx context.Context, p payment, status, condition string) error {
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("old"), ConditionExpression: &condition,
		Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: p.ID}, "status": &types.AttributeValueMemberS{Value: status}},
	})
	return err
}

// TestConditionalPutCutOver runs two versions at the same time.
func TestConditionalPutCutOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		safe          bool
	}{
		"the first deployment":   {"its own put", "both", true},
		"the second deployment":  {"both", "lock and question", true},
		"the third deployment":   {"lock and question", "only the lock", true},
		"the first one left out": {"its own put", "lock and question", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, all := newShop(t), payments(0, 20)
				s.deliverToAll(all, versions[c.before](s), versions[c.after](s))
				s.check(all, c.safe)
			})
		})
	}
}

// TestOldTableIsAskedOnce delivers what the old handler completed, what it left
// in progress when it was killed, and what it never saw.
func TestOldTableIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		completed, killed, unknown := payments(0, 1000), payments(1000, 1010), payments(1010, 1020)
		for _, p := range completed {
			if err := s.put(t.Context(), p, "COMPLETED", "attribute_not_exists(id)"); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range killed {
			if err := s.put(t.Context(), p, "IN_PROGRESS", "attribute_not_exists(id)"); err != nil {
				t.Fatal(err)
			}
		}
		handle := versions["lock and question"](s)
		for range 2 {
			s.deliver(handle, payments(0, 1020))
		}
		s.check(append(killed, unknown...), true)
		if len(s.paid) != len(killed)+len(unknown) {
			t.Errorf("%d payments were made, want %d", len(s.paid), len(killed)+len(unknown))
		}
		if s.reads.sent != 1020 {
			t.Errorf("%d reads of 1,020 payments that were delivered twice", s.reads.sent)
		}
	})
}

// TestOldTableDoesNotAnswer: a payment that nobody can ask about is not made,
// and comes again.
func TestOldTableDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.reads.err = errors.New("throttled")
		handle := versions["lock and question"](s)
		if err := s.invoke(handle, payment{"1"}); !errors.Is(err, s.reads.err) || len(s.paid) > 0 {
			t.Errorf("error %v, payments %v", err, s.paid)
		}
		s.reads.err = nil
		s.deliver(handle, payments(1, 2))
		s.check(payments(1, 2), true)
	})
}

// reads counts requests to read. They fail if err is set.
type reads struct {
	*dynamodb.Client
	sent int
	err  error
}

func (r *reads) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.sent++
	if r.err != nil {
		return nil, r.err
	}
	return r.Client.GetItem(ctx, in, opts...)
}

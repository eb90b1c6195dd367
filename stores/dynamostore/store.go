package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
)

// Client is what a Store needs of a *dynamodb.Client.
type Client interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Store implements [lock.Store] in one table. It is safe for concurrent use.
type Store struct {
	client  Client
	table   string
	options []func(*dynamodb.Options)
}

// New uses a client of yours. The client's own retries are switched off for each
// call, because the engine repeats requests itself, sooner than the SDK would.
func New(client Client, table string) *Store {
	return &Store{client: client, table: table, options: []func(*dynamodb.Options){
		func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} },
	}}
}

// The expressions, see the table in the package documentation. They are variables
// because requests point to them.
var (
	acquireUpdate = "SET lease = :token, expires = :expires, since = :stamp, " +
		"fence = if_not_exists(fence, :micros) + :one, holder = :holder, deleteAfter = :keep"
	acquireMutexUpdate = acquireUpdate + " REMOVE event" // of a holder that died
	acquireEventUpdate = acquireUpdate + ", event = :event"

	readable     = "attribute_not_exists(rowFormat)"
	below        = "(attribute_not_exists(since) OR since < :stamp)"
	acquireMutex = readable + " AND (" +
		"((attribute_not_exists(lease) OR expires < :now) AND " + below + ") " +
		"OR (lease = :token AND expires <= :expires AND since <= :stamp))"
	notDone           = " AND (attribute_not_exists(done.#event) OR done.#event < :millis)"
	notStale          = " AND (attribute_not_exists(top) OR top < :order)"
	acquireEvent      = acquireMutex + notDone
	acquireOrder      = acquireMutex + notStale
	acquireEventOrder = acquireMutex + notDone + notStale

	ifOwner       = readable + " AND lease = :token"
	renewUpdate   = "SET expires = :expires, deleteAfter = :keep"
	renewIf       = ifOwner + " AND expires <= :expires"
	releaseUpdate = "SET deleteAfter = :keep " + free
	raiseUpdate   = "SET since = :stamp, deleteAfter = :keep"
	raiseIf       = readable + " AND " + below
	abandonUpdate = raiseUpdate + " " + free
	abandonIf     = readable + " AND ((lease = :token AND since <= :stamp) OR (attribute_not_exists(lease) AND " + below + "))"
)

const free = "REMOVE lease, expires, holder, event"

// Acquire implements [lock.Store]. It asks for the row as it was before: the rest
// of what is there now it has written itself, and the former holder is told too.
func (s *Store) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	r := s.request(c.Name, &acquireMutexUpdate, &acquireMutex)
	r.str(":token", c.Token)
	r.str(":expires", timestamp(c.Until))
	r.str(":stamp", timestamp(c.Stamp))
	r.str(":now", timestamp(c.Now))
	r.str(":holder", c.Holder)
	r.num(":micros", c.Now.UnixMicro())
	r.num(":one", 1)
	r.keep(c.Keep)
	if c.Event != "" {
		r.str(":event", c.Event)
		r.num(":millis", c.Now.UnixMilli())
		r.in.ExpressionAttributeNames = map[string]string{"#event": c.Event}
		r.in.UpdateExpression, r.in.ConditionExpression = &acquireEventUpdate, &acquireEvent
	}
	if c.Order != "" {
		r.str(":order", c.Order)
		r.in.ConditionExpression = &acquireOrder
		if c.Event != "" {
			r.in.ConditionExpression = &acquireEventOrder
		}
	}
	r.in.ReturnValues = types.ReturnValueAllOld
	row, ok, err := s.update(ctx, &r.in)
	if ok {
		row = acquired(row, c)
	}
	return row, ok, err
}

// acquired is the row that c made of old.
func acquired(old lock.Row, c *lock.Claim) lock.Row {
	row := lock.Row{
		Token: c.Token, Since: c.Stamp, Until: c.Until, Event: c.Event, Holder: c.Holder,
		Fence: old.Fence + 1, Memory: old.Memory, Keep: c.Keep,
	}
	if old.Fence == 0 {
		row.Fence = c.Now.UnixMicro() + 1
	}
	if old.Token != c.Token { // else the claim met its own first copy
		row.Previous = old.Holder
	}
	return row
}

// Renew implements [lock.Store].
func (s *Store) Renew(ctx context.Context, n *lock.Renewal) (lock.Row, bool, error) {
	r := s.request(n.Name, &renewUpdate, &renewIf)
	r.str(":token", n.Token)
	r.str(":expires", timestamp(n.Until))
	r.keep(n.Keep)
	r.in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, &r.in)
}

// Release implements [lock.Store]. What is applied is not read back: the row is
// described by what was asked.
func (s *Store) Release(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	if t.Abandon {
		return s.abandon(ctx, t)
	}
	return s.free(ctx, t)
}

func (s *Store) free(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	r := s.request(t.Name, &releaseUpdate, &ifOwner)
	r.str(":token", t.Token)
	r.keep(t.Keep)
	if t.Memory != nil {
		r.record(t.Memory)
	}
	row, ok, err := s.update(ctx, &r.in)
	if ok {
		row.Keep = t.Keep
		if t.Memory != nil {
			row.Memory = *t.Memory
		}
	}
	return row, ok, err
}

// abandon frees the row if it is the token's, and raises its stamp, in one request that
// needs no answer. Where somebody else owns the row, or its stamp is higher already, a
// second one raises the stamp only; from then on no copy of the claim is granted, and
// one that was granted in between is known by its token, and freed.
func (s *Store) abandon(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	r := s.request(t.Name, &abandonUpdate, &abandonIf)
	r.str(":token", t.Token)
	r.str(":stamp", timestamp(t.Stamp))
	r.keep(t.Keep)
	if item, ok, err := s.send(ctx, &r.in); ok || err != nil {
		return s.answer(item, ok, err)
	}
	r = s.request(t.Name, &raiseUpdate, &raiseIf)
	r.str(":stamp", timestamp(t.Stamp))
	r.keep(t.Keep)
	r.in.ReturnValues = types.ReturnValueAllNew
	item, raised, err := s.send(ctx, &r.in)
	// Some servers do not return the item that failed a condition: then it may be ours.
	if err != nil || len(item) > 0 && str(item, "lease") != t.Token {
		return s.answer(item, raised, err)
	}
	row, freed, err := s.free(ctx, &lock.Settlement{Name: t.Name, Token: t.Token, Keep: t.Keep})
	return row, raised || freed, err
}

// Check implements [lock.Store]: it opens the connection and proves the
// credentials. A missing table or a denied action shows at the first acquire,
// because the one action that is allowed is a write.
func (s *Store) Check(ctx context.Context) error {
	c, ok := s.client.(interface {
		DescribeEndpoints(context.Context, *dynamodb.DescribeEndpointsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeEndpointsOutput, error)
	})
	if !ok {
		return nil
	}
	_, err := c.DescribeEndpoints(ctx, &dynamodb.DescribeEndpointsInput{}, s.options...)
	if err == nil || answered(err) {
		return nil // other servers do not know this call, but they are there
	}
	return s.classify(err)
}

func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) (lock.Row, bool, error) {
	return s.answer(s.send(ctx, in))
}

// send returns the item that the server tells, and whether the update was applied.
func (s *Store) send(ctx context.Context, in *dynamodb.UpdateItemInput) (map[string]types.AttributeValue, bool, error) {
	out, err := s.client.UpdateItem(ctx, in, s.options...)
	if err == nil {
		return out.Attributes, true, nil
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, false, nil
	}
	return nil, false, s.classify(err)
}

func (s *Store) answer(item map[string]types.AttributeValue, ok bool, err error) (lock.Row, bool, error) {
	if err != nil {
		return lock.Row{}, false, err
	}
	row, err := s.parse(item)
	return row, ok && err == nil, err
}

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

	acquireMutex = "attribute_not_exists(rowFormat) AND (" +
		"(attribute_not_exists(lease) AND (attribute_not_exists(since) OR since < :stamp)) " +
		"OR expires < :now OR (lease = :token AND expires <= :expires))"
	notDone           = " AND (attribute_not_exists(done.#event) OR done.#event < :millis)"
	notStale          = " AND (attribute_not_exists(top) OR top < :order)"
	acquireEvent      = acquireMutex + notDone
	acquireOrder      = acquireMutex + notStale
	acquireEventOrder = acquireMutex + notDone + notStale

	ifOwner       = "lease = :token"
	renewUpdate   = "SET expires = :expires, deleteAfter = :keep"
	renewIf       = ifOwner + " AND expires <= :expires"
	releaseUpdate = "REMOVE lease, expires, holder, event"
	abandonUpdate = "SET since = :stamp, deleteAfter = :keep " + releaseUpdate
	abandonIf     = ifOwner + " OR (attribute_not_exists(lease) AND (attribute_not_exists(since) OR since < :stamp))"
)

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
	r.num(":keep", c.Keep.Unix())
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
		Fence: old.Fence + 1, Memory: old.Memory,
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
	r.num(":keep", n.Keep.Unix())
	r.in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, &r.in)
}

// Release implements [lock.Store].
func (s *Store) Release(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	r := s.request(t.Name, &releaseUpdate, &ifOwner)
	r.str(":token", t.Token)
	var kept lock.Memory
	switch {
	case t.Abandon:
		r.in.UpdateExpression, r.in.ConditionExpression = &abandonUpdate, &abandonIf
		r.str(":stamp", timestamp(t.Stamp))
		r.num(":keep", t.Keep.Unix())
	case t.Memory != nil:
		kept = r.record(t)
	}
	row, ok, err := s.update(ctx, &r.in)
	if ok {
		row.Memory = kept
	}
	return row, ok, err
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
	out, err := s.client.UpdateItem(ctx, in, s.options...)
	if err == nil {
		row, err := s.parse(out.Attributes)
		return row, err == nil, err
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		row, err := s.parse(failed.Item)
		return row, false, err
	}
	return lock.Row{}, false, s.classify(err)
}

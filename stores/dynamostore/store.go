package dynamostore

import (
	"context"
	"errors"
	"strconv"

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

const (
	acquireUpdate = "SET lease = :token, expires = :expires, since = :stamp, fence = if_not_exists(fence, :micros) + :one, " +
		"holder = :holder, prev = if_not_exists(holder, :none), event = :event, deleteAfter = :keep"
	acquireFree = "attribute_not_exists(rowFormat) AND (" +
		"(attribute_not_exists(lease) AND (attribute_not_exists(since) OR since < :stamp)) " +
		"OR expires < :now OR (lease = :token AND expires <= :expires))"
	acquireNotDone  = " AND (attribute_not_exists(done.#event) OR done.#event < :millis)"
	acquireNotStale = " AND (attribute_not_exists(top) OR top < :order)"

	acquireEvent      = acquireFree + acquireNotDone
	acquireOrder      = acquireFree + acquireNotStale
	acquireEventOrder = acquireFree + acquireNotDone + acquireNotStale

	ifOwner       = "lease = :token"
	renewUpdate   = "SET expires = :expires, deleteAfter = :keep"
	renewIf       = ifOwner + " AND expires <= :expires"
	releaseUpdate = "REMOVE lease, expires, holder, prev, event"
	abandonUpdate = "SET since = :stamp, deleteAfter = :keep " + releaseUpdate
	abandonIf     = ifOwner + " OR (attribute_not_exists(lease) AND (attribute_not_exists(since) OR since < :stamp))"
)

// Acquire implements [lock.Store].
func (s *Store) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	v := newValues(11)
	v.str(":token", c.Token)
	v.str(":expires", timestamp(c.Until))
	v.str(":stamp", timestamp(c.Stamp))
	v.str(":now", timestamp(c.Now))
	v.num(":micros", c.Now.UnixMicro())
	v.num(":one", 1)
	v.str(":holder", c.Holder)
	v.str(":none", "")
	v.str(":event", c.Event)
	v.num(":keep", c.Keep.Unix())
	in := s.input(c.Name, acquireUpdate, acquireFree, v)
	if c.Event != "" {
		v.num(":millis", c.Now.UnixMilli())
		in.ExpressionAttributeNames = map[string]string{"#event": c.Event}
		in.ConditionExpression = aws.String(acquireEvent)
	}
	if c.Order != "" {
		v.str(":order", c.Order)
		in.ConditionExpression = aws.String(acquireOrder)
		if c.Event != "" {
			in.ConditionExpression = aws.String(acquireEventOrder)
		}
	}
	in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, in)
}

// Renew implements [lock.Store].
func (s *Store) Renew(ctx context.Context, r *lock.Renewal) (lock.Row, bool, error) {
	v := newValues(3)
	v.str(":token", r.Token)
	v.str(":expires", timestamp(r.Until))
	v.num(":keep", r.Keep.Unix())
	in := s.input(r.Name, renewUpdate, renewIf, v)
	in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, in)
}

// Release implements [lock.Store].
func (s *Store) Release(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	v := newValues(6)
	v.str(":token", t.Token)
	if t.Abandon {
		v.str(":stamp", timestamp(t.Stamp))
		v.num(":keep", t.Keep.Unix())
		return s.update(ctx, s.input(t.Name, abandonUpdate, abandonIf, v))
	}
	if t.Memory == nil {
		return s.update(ctx, s.input(t.Name, releaseUpdate, ifOwner, v))
	}
	update, kept := recordUpdate(t, v)
	row, ok, err := s.update(ctx, s.input(t.Name, update, ifOwner, v))
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

func (s *Store) input(name, update, condition string, v *values) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}},
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeValues:           v.m,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
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

// values builds ExpressionAttributeValues with two allocations instead of one per
// value: a cycle must not cost more than the raw SDK calls it consists of.
type values struct {
	m map[string]types.AttributeValue
	s []types.AttributeValueMemberS
	n []types.AttributeValueMemberN
}

func newValues(size int) *values {
	return &values{
		m: make(map[string]types.AttributeValue, size),
		s: make([]types.AttributeValueMemberS, 0, size),
		n: make([]types.AttributeValueMemberN, 0, 4),
	}
}

func (v *values) str(name, value string) {
	v.s = append(v.s, types.AttributeValueMemberS{Value: value})
	v.m[name] = &v.s[len(v.s)-1]
}

func (v *values) num(name string, value int64) {
	v.n = append(v.n, types.AttributeValueMemberN{Value: strconv.FormatInt(value, 10)})
	v.m[name] = &v.n[len(v.n)-1]
}

package dynamostore

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore/internal/expression"
)

// Client is the part of a *dynamodb.Client that a Store needs.
type Client interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Store implements [driver.Store] in one table. It is safe for concurrent use.
type Store struct {
	client  Client
	table   string
	options []func(*dynamodb.Options)
	// mute is whether the server has refused a claim and not returned the item that
	// refused it, as DynamoDB does.
	mute atomic.Bool
}

// Callers look for these by their methods, and tests skip what is not there.
var (
	_ driver.Coalescer = (*Store)(nil)
	_ driver.Line      = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store that uses client. Each call switches the client's own
// retries off, because package lock repeats requests itself, sooner than the
// SDK would.
func New(client Client, table string) *Store {
	return &Store{client: client, table: table, options: []func(*dynamodb.Options){
		func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} },
	}}
}

// The expressions. The table in the package documentation explains them.
//
// The fence is the stamp of the claim, because an expression has no maximum of
// two numbers. It rises all the same: a row's fence is never above its stamp,
// and only a claim with a higher stamp is granted to another owner.
const (
	readable  = expression.Readable
	below     = "(attribute_not_exists(stamp) OR stamp < :stamp)"
	acquireIf = readable + " AND (" +
		"((attribute_not_exists(ownerToken) OR (heldUntil < :now AND attribute_not_exists(interruptedFor))) AND " + below + ") " +
		"OR " + ownCopy + ")"
	ownCopy = "(ownerToken = :token AND heldUntil <= :until AND stamp <= :stamp)"
	// carryIf is the condition of a claim that takes over from a dead owner with an
	// event to keep.
	carryIf      = readable + " AND ((ownerToken = :dead AND heldUntil < :now AND " + below + ") OR " + ownCopy + ")"
	notCompleted = " AND (attribute_not_exists(completed.#event) OR completed.#event < :millis)"
	notStale     = " AND (attribute_not_exists(highestOrder) OR highestOrder < :order)"

	ifOwner       = expression.Owner
	renewUpdate   = "SET heldUntil = :until, deleteAfter = :deleteAfter"
	renewIf       = ifOwner + " AND heldUntil <= :until"
	releaseSet    = expression.Release
	cooldownSet   = releaseSet + ", ownerToken = :cooldown, cooldown = :token, heldUntil = :until"
	raiseUpdate   = "SET stamp = :stamp, deleteAfter = :deleteAfter"
	raiseIf       = readable + " AND " + below
	abandonUpdate = raiseUpdate + " " + removeOwner
	abandonIf     = readable + " AND ((ownerToken = :token AND stamp <= :stamp) OR (attribute_not_exists(ownerToken) AND " + below + "))"

	removeOwner = "REMOVE ownerToken, heldUntil, cooldown, " + work
	removeWork  = "REMOVE " + work
	work        = "holder, event, payload, takesMarks, interruptedFor"

	markUpdate      = "SET marks = if_not_exists(marks, :none) + :one"
	markIf          = ifOwner + " AND (attribute_not_exists(marks) OR marks >= :none)"
	markRaiseUpdate = markUpdate + ", stamp = :stamp"
	markRaiseIf     = markIf + " AND stamp < :stamp"
	closeUpdate     = "SET marks = :closed"
	unmarked        = " AND (attribute_not_exists(marks) OR (marks >= :none AND marks < :marks))"

	joinUpdate = "SET line = if_not_exists(line, :none) + :one"
	joinIf     = readable + " AND attribute_exists(ownerToken)"
)

// acquireIfs and carryIfs are the conditions of claims, by whether they have an
// event (1), and an order (2).
var (
	acquireIfs = [...]string{acquireIf, acquireIf + notCompleted, acquireIf + notStale, acquireIf + notCompleted + notStale}
	carryIfs   = [...]string{carryIf, carryIf + notCompleted, carryIf + notStale, carryIf + notCompleted + notStale}
)

// Acquire implements [driver.Store]. An expression cannot keep the event of a
// dead owner beside those of earlier ones, so a dead owner whose event is to be
// kept refuses the claim, and a second request takes over from that owner only.
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := s.acquire(ctx, c, nil)
	if !ok && err == nil && row.Leaves(c) && row.Judge(c) == driver.Granted {
		return s.acquire(ctx, c, &row)
	}
	return row, ok, err
}

// acquire sends a claim, which takes over from the owner of dead if that is not
// nil. It asks for the row as it was before: it knows what it wrote, and only
// the old row has the holder that died.
func (s *Store) acquire(ctx context.Context, c *driver.Claim, dead *driver.Row) (driver.Row, bool, error) {
	v := values{
		":token": text(c.Token), ":until": text(timestamp(c.Until)), ":stamp": text(timestamp(c.Stamp)), ":now": text(timestamp(c.Now)),
		":holder": text(c.Holder), ":fence": number(c.Stamp.UnixMicro()), ":deleteAfter": wholeSeconds(c.DeleteAfter),
	}
	conditions, has := &acquireIfs, 0
	if dead != nil {
		conditions = &carryIfs
	}
	if c.Event != "" {
		has |= 1
		v[":millis"] = number(c.Now.UnixMilli())
	}
	if c.Order != "" {
		has |= 2
		v[":order"] = text(c.Order)
	}
	in := s.input(c.Name, acquireUpdate(c, dead, v), conditions[has], v)
	if c.Event != "" {
		in.ExpressionAttributeNames = map[string]string{"#event": c.Event}
	}
	in.ReturnValues = types.ReturnValueAllOld
	row, ok, err := s.update(ctx, in)
	if ok {
		row.Take(c, c.Stamp)
	} else if err == nil && row.Unknown() { // only an item can refuse a claim
		s.mute.Store(true)
		row = driver.Row{Untold: true}
	}
	return row, ok, err
}

// acquireUpdates are the updates of claims, by which of the attributes optional
// the claim has. The others go, because the last holder may have left them.
var acquireUpdates = func() (updates [1 << len(optional)]string) {
	for has := range updates {
		set, remove := expression.Claim, " REMOVE cooldown"
		for i, attribute := range optional {
			if has>>i&1 == 1 {
				set += ", " + attribute + " = :" + attribute
			} else {
				remove += ", " + attribute
			}
		}
		updates[has] = set + remove
	}
	return updates
}()

// optional are the attributes that only some claims have.
var optional = [...]string{"event", "payload", "takesMarks", "interruptedFor"}

// acquireUpdate returns the update of a claim, and adds to v what it needs
// beside the values of every claim. What only some claims set stands in front,
// because these do not travel with others.
func acquireUpdate(c *driver.Claim, dead *driver.Row, v values) string {
	has := 0
	if c.Event != "" {
		has |= 1
		v[":event"] = text(c.Event)
	}
	if c.Payload != "" {
		has |= 2
		v[":payload"] = text(c.Payload)
	}
	if c.TakesMarks {
		has |= 4
		v[":takesMarks"] = number(1)
	}
	if c.InterruptedFor > 0 {
		has |= 8
		v[":interruptedFor"] = number(c.InterruptedFor.Milliseconds())
	}
	update := acquireUpdates[has]
	if c.Place != 0 {
		v[":place"] = number(c.Place)
		update = "SET served = :place, " + strings.TrimPrefix(update, "SET ")
	}
	if dead != nil {
		taken := *dead
		taken.Take(c, c.Stamp)
		v[":dead"], v[":interrupted"] = text(dead.Token), interruptedValue(taken.Memory.Interrupted)
		update = "SET interrupted = :interrupted, " + strings.TrimPrefix(update, "SET ")
	}
	return update
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	in := s.input(r.Name, renewUpdate, renewIf, values{
		":token": text(r.Token), ":until": text(timestamp(r.Until)), ":deleteAfter": wholeSeconds(r.DeleteAfter),
	})
	in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, in)
}

// Mark implements [driver.Coalescer]. If the row's stamp is not below that of
// the mark, a second request adds the mark only.
func (s *Store) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	if m.Close {
		in := s.input(m.Name, closeUpdate, ifOwner, values{":token": text(m.Token), ":closed": number(-1)})
		in.ReturnValues = types.ReturnValueAllNew
		return s.update(ctx, in)
	}
	v := values{":token": text(m.Token), ":none": number(0), ":one": number(1)}
	in := s.input(m.Name, markUpdate, markIf, maps.Clone(v))
	in.ReturnValues = types.ReturnValueAllNew
	raise := s.input(m.Name, markRaiseUpdate, markRaiseIf, v)
	raise.ReturnValues = types.ReturnValueAllNew
	v[":stamp"] = text(timestamp(m.Stamp))
	row, ok, err := s.update(ctx, raise)
	if ok || err != nil || !row.Unknown() && (row.Token != m.Token || row.Marks < 0) {
		return row, ok, err
	}
	return s.update(ctx, in)
}

// Settle implements [driver.Store]. It does not read the row back, because the
// request describes it.
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if t.Abandon {
		return s.abandon(ctx, t)
	}
	return s.release(ctx, t)
}

func (s *Store) release(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	row, ok, err := s.update(ctx, s.releaseInput(t))
	if ok {
		row = rowAfter(t)
	}
	return row, ok, err
}

// releaseInput returns the request that ends a lease.
func (s *Store) releaseInput(t *driver.Settlement) *dynamodb.UpdateItemInput {
	set, remove := releaseSet, removeOwner
	v := values{":token": text(t.Token), ":deleteAfter": wholeSeconds(t.DeleteAfter)}
	if !t.Until.IsZero() {
		set, remove = cooldownSet, removeWork
		v[":cooldown"], v[":until"] = text(t.CooldownToken), text(timestamp(t.Until))
	}
	if t.Memory != nil {
		set, remove = withMemory(t.Memory, set, remove, v)
	}
	condition := ifOwner
	if t.MarksBelow > 0 {
		condition += unmarked
		v[":none"], v[":marks"] = number(0), number(t.MarksBelow)
	}
	return s.input(t.Name, set+" "+remove, condition, v)
}

// rowAfter returns the row after t, as far as t describes it.
func rowAfter(t *driver.Settlement) driver.Row {
	row := driver.Row{Token: t.Token}
	row.Settle(t)
	return row
}

// abandon releases the row if the token owns it, and raises its stamp, in one
// request. If another token owns the row, or its stamp is higher already, a
// second request raises the stamp only. From then on no copy of the claim is
// granted. A copy that was granted in between is recognised by its token and
// released.
func (s *Store) abandon(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	item, ok, err := s.send(ctx, s.input(t.Name, abandonUpdate, abandonIf, values{
		":token": text(t.Token), ":stamp": text(timestamp(t.Stamp)), ":deleteAfter": wholeSeconds(t.DeleteAfter),
	}))
	if ok || err != nil {
		return s.answer(item, ok, err)
	}
	in := s.input(t.Name, raiseUpdate, raiseIf, values{":stamp": text(timestamp(t.Stamp)), ":deleteAfter": wholeSeconds(t.DeleteAfter)})
	in.ReturnValues = types.ReturnValueAllNew
	item, raised, err := s.send(ctx, in)
	// Some servers do not return the item after a failed condition, so it may be
	// ours.
	if err != nil || len(item) > 0 && str(item, "ownerToken") != t.Token {
		return s.answer(item, raised, err)
	}
	row, released, err := s.release(ctx, &driver.Settlement{Name: t.Name, Token: t.Token, DeleteAfter: t.DeleteAfter})
	return row, raised || released, err
}

// Join implements [driver.Line].
func (s *Store) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	in := s.input(name, joinUpdate, joinIf, values{":none": number(0), ":one": number(1)})
	in.ReturnValues = types.ReturnValueAllNew
	return s.update(ctx, in)
}

// Check implements [driver.Checker]: it finds credentials and opens the
// connection. Any answer will do, even a refusal. Wrong credentials, a missing
// table or a denied action show at the first acquire, because the only action
// that the function may be allowed is a write.
func (s *Store) Check(ctx context.Context) error {
	c, ok := s.client.(interface {
		DescribeEndpoints(context.Context, *dynamodb.DescribeEndpointsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeEndpointsOutput, error)
	})
	if !ok {
		return nil
	}
	_, err := c.DescribeEndpoints(ctx, &dynamodb.DescribeEndpointsInput{}, s.options...)
	if err == nil || awserror.Status(err) != 0 {
		return nil // a server that refuses or does not know this call has answered
	}
	return s.classify(err)
}

func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) (driver.Row, bool, error) {
	return s.answer(s.send(ctx, in))
}

// send returns the item of the server's answer, and whether the update was
// applied.
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

func (s *Store) answer(item map[string]types.AttributeValue, ok bool, err error) (driver.Row, bool, error) {
	if err != nil {
		return driver.Row{}, false, err
	}
	row, err := s.parse(item)
	row.Untold = err == nil && !ok && row.Unknown() && s.mute.Load()
	return row, ok && err == nil, err
}

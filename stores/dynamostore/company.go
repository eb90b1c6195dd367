package dynamostore

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// batchClient is what a client needs beyond a [Client] for [Store.InBatches]. A
// *dynamodb.Client has it.
type batchClient interface {
	Client
	BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error)
}

// InBatches returns a Store in the same table that sends the claims and
// releases of a batch of records together, up to 25 in one
// BatchExecuteStatement: for handlers of records, with a middleware.Concurrency
// of 200. A request that comes alone is sent immediately and as by s. See
// docs/GUIDE.md#many-locks-in-one-request.
//
// It needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate besides
// dynamodb:UpdateItem. If they are denied, if the server refuses a kind of
// statement, or if the table is given by an ARN, the Store warns once through
// slog and sends those requests by themselves. InBatches panics if the Store's
// client has no BatchExecuteStatement.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html.
func (s *Store) InBatches() *Store {
	client, ok := s.client.(batchClient)
	if !ok {
		panic("lambdalock: InBatches: the store's client has no BatchExecuteStatement: give dynamostore.New a *dynamodb.Client")
	}
	c := &company{queue: newQueue(client, s.options), table: s.table, seed: maphash.MakeSeed()}
	if strings.HasPrefix(s.table, "arn:") {
		c.switchOff(context.Background(), "the table is named by its ARN: give dynamostore.New the name of a table in this account, or leave InBatches out")
	}
	return &Store{client: s.client, table: s.table, options: s.options, company: c}
}

// company sends an UpdateItem of the store together with others, as PartiQL,
// and returns what UpdateItem would have. The rule is: in doubt, alone. Then
// nothing depends on how a server reads names, reports a refusal or denies an
// action.
type company struct {
	queue  *queue
	table  string
	shapes sync.Map // from update and condition to their shape
	seed   maphash.Seed

	mu            sync.Mutex
	recent, older map[uint64]bool // hashes of names that have a row; a mistake costs a request
	off           bool            // PartiQL is denied
	invalid       map[string]bool // texts of statements that the server takes only alone
}

// maxKnown is how many names recent has before they become the older ones.
const maxKnown = 1 << 14

// UpdateItem implements [Client].
func (c *company) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	batch := invocation.BatchOf(ctx)
	if batch == nil || batch.Claims < 2 || ctx.Err() != nil {
		return c.queue.client.UpdateItem(ctx, in, options...)
	}
	name := str(in.Key, "lock")
	out, err := (*dynamodb.UpdateItemOutput)(nil), errInDoubt
	var tried statement
	for _, tried = range c.statementsFor(name, in) {
		out, err = c.queue.send(ctx, &member{name: name, statement: tried.of(in), batch: batch})
		if err == nil && tried.returning && len(out.Attributes) <= 1 { // the memory of the row would be lost
			err = errInDoubt
		}
		if !errors.Is(err, errExists) {
			break
		}
		c.learn(name)
	}
	together := err
	if goesAlone(together) {
		out, err = c.queue.alone(ctx, batch, in, options...)
	}
	if err == nil {
		c.learn(name)
	}
	switch {
	case !isAllowed(err): // so it was not the statement
	case errors.Is(together, errDenied): // and not the name
		c.switchOff(ctx, "the table does not take them together: allow the function's role dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate on the table, or leave InBatches out")
	case errors.Is(together, errInvalid):
		c.avoid(ctx, tried.text, together)
	}
	return out, err
}

// statementsFor returns what to try together with others, in this order.
func (c *company) statementsFor(name string, in *dynamodb.UpdateItemInput) []statement {
	event, ok := in.ExpressionAttributeNames["#event"]
	if ok && !plainEvent.MatchString(event) || values(in.ExpressionAttributeValues).size() > maxCompanySize {
		return nil
	}
	s, ok := c.shape(*in.UpdateExpression, *in.ConditionExpression)
	known, off := c.knows(name)
	switch {
	case !ok || off:
		return nil
	case s.claim && !known:
		return c.taken(s.insert, s.update)
	}
	return c.taken(s.update)
}

// taken returns the statements before the first that the server takes only
// alone.
func (c *company) taken(all ...statement) []statement {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range all {
		if c.invalid[s.text] {
			return all[:i]
		}
	}
	return all
}

// avoid lets statements of that text be sent alone from now on, and warns of
// the first.
func (c *company) avoid(ctx context.Context, text string, why error) {
	c.mu.Lock()
	first := len(c.invalid) == 0
	if first {
		c.invalid = map[string]bool{}
	}
	c.invalid[text] = true
	c.mu.Unlock()
	if first {
		slog.WarnContext(ctx, "lambdalock: some requests of a batch are sent one by one, because the server does not take them together: leave InBatches out", "table", c.table, "statement", text, "error", why)
	}
}

// shape translates the few constant expressions of the store once each.
func (c *company) shape(update, condition string) (shape, bool) {
	key := [2]string{update, condition}
	if s, ok := c.shapes.Load(key); ok {
		return s.(shape), true
	}
	s, ok := shapeOf(c.table, update, condition)
	if ok {
		c.shapes.Store(key, s)
	}
	return s, ok
}

// knows reports whether the name has a row as far as this process knows, and
// whether requests no longer travel together.
func (c *company) knows(name string) (known, off bool) {
	h := maphash.String(c.seed, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent[h] || c.older[h], c.off
}

func (c *company) learn(name string) {
	h := maphash.String(c.seed, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent == nil || len(c.recent) == maxKnown {
		c.recent, c.older = map[uint64]bool{}, c.recent
	}
	c.recent[h] = true
}

// switchOff lets each request be sent by itself from now on, and warns once.
func (c *company) switchOff(ctx context.Context, why string) {
	c.mu.Lock()
	before := c.off
	c.off = true
	c.mu.Unlock()
	if !before {
		slog.WarnContext(ctx, "lambdalock: the requests of a batch are sent one by one, because "+why, "table", c.table)
	}
}

// Why a request goes on alone, or as another statement. It was not applied, or
// can be applied once more.
var (
	errExists  = errors.New("the name has a row")
	errInDoubt = errors.New("only a request by itself tells")
	errDenied  = errors.New("PartiQL is denied, or the name")
	errInvalid = errors.New("the server calls the statement or its values invalid")
)

// goesAlone reports whether an error is a reason to send a request by itself.
func goesAlone(err error) bool {
	return errors.Is(err, errInDoubt) || errors.Is(err, errExists) || errors.Is(err, errDenied) || errors.Is(err, errInvalid)
}

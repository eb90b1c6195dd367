package batching

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Client returns a client for [dynamostore.New] that sends the claims and
// releases of a batch of records together, up to 25 in one request. It passes
// everything else on to client, and a claim that comes alone at once.
//
// If the function may not send such requests, if the server refuses a kind of
// statement, or if the table is given by an ARN, the client warns once through
// slog and sends those requests by themselves.
func Client(client *dynamodb.Client) dynamostore.Client {
	return &front{
		Client: client, queue: queue{client: client, callers: map[*invocation.Batch]int{}},
		seed: maphash.MakeSeed(), shapes: map[kind]shape{}, single: map[string]bool{},
	}
}

// front sends an UpdateItem of a store together with others, as PartiQL, and
// returns what UpdateItem would have. The rule is: in doubt, alone. Then
// nothing depends on how a server reads names, reports a refusal or denies an
// action.
type front struct {
	*dynamodb.Client
	queue queue
	seed  maphash.Seed

	mu            sync.Mutex
	shapes        map[kind]shape
	recent, older map[uint64]bool // hashes of names that have a row; a mistake costs a request
	single        map[string]bool // tables, and texts of statements, whose requests go alone
}

// maxKnown is how many names recent has before they become the older ones.
const maxKnown = 1 << 14

// UpdateItem implements [dynamostore.Client].
func (f *front) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	batch := invocation.BatchOf(ctx)
	if batch == nil || batch.Claims < 2 || ctx.Err() != nil {
		return f.Client.UpdateItem(ctx, in, options...)
	}
	k, name := kindOf(in)
	out, err := (*dynamodb.UpdateItemOutput)(nil), errAlone
	var tried statement
	for range 2 { // an INSERT, and an UPDATE if the name has a row
		next, ok := f.choose(ctx, k, name, in)
		if !ok {
			break
		}
		tried = next
		out, err = f.queue.send(ctx, &member{name: name, statement: tried.of(in), options: options, batch: batch})
		if err == nil && tried.returning && len(out.Attributes) <= 1 { // the memory of the row would be lost
			err = errAlone
		}
		if !errors.Is(err, errExists) {
			break
		}
		f.learn(name)
	}
	together := err
	if errors.Is(together, errAlone) {
		out, err = f.queue.alone(ctx, batch, in, options...)
	}
	if err == nil {
		f.learn(name)
	}
	switch {
	case !isAllowed(err): // so it was not the statement
	case errors.Is(together, errDenied): // and not the name
		f.separate(ctx, k.table, "the table does not take them together: allow the function's role dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate on the table, or leave package batching out", "table", k.table)
	case errors.Is(together, errInvalid):
		f.separate(ctx, tried.text, "the server does not take this statement: leave package batching out", "table", k.table, "statement", tried.text, "error", together)
	}
	return out, err
}

// choose returns what to send together with others. It reports false if the
// request goes alone.
func (f *front) choose(ctx context.Context, k kind, name string, in *dynamodb.UpdateItemInput) (statement, bool) {
	event, ok := in.ExpressionAttributeNames["#event"]
	if !k.claims() && !k.releases() || ok && !plainEvent.MatchString(event) || size(in.ExpressionAttributeValues) > maxSize {
		return statement{}, false
	}
	if strings.HasPrefix(k.table, "arn:") {
		f.separate(ctx, k.table, "the table is named by its ARN: give dynamostore.New the name of a table in this account, or leave package batching out", "table", k.table)
		return statement{}, false
	}
	h := maphash.String(f.seed, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.shapes[k]
	if !ok {
		s = shapeOf(k)
		f.shapes[k] = s
	}
	next := s.update
	if k.claims() && !f.recent[h] && !f.older[h] {
		next = s.insert
	}
	return next, !f.single[k.table] && !f.single[next.text]
}

// learn notes that the name has a row.
func (f *front) learn(name string) {
	h := maphash.String(f.seed, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.recent == nil || len(f.recent) == maxKnown {
		f.recent, f.older = map[uint64]bool{}, f.recent
	}
	f.recent[h] = true
}

// separate lets the requests for a table, or those with the text of a
// statement, go alone from now on, and warns once of each.
func (f *front) separate(ctx context.Context, what, why string, args ...any) {
	f.mu.Lock()
	known := f.single[what]
	f.single[what] = true
	f.mu.Unlock()
	if !known {
		slog.WarnContext(ctx, "lambdalock: requests of a batch are sent one by one, because "+why, args...)
	}
}

// Why a request goes on alone, or as another statement. It was not applied, or
// can be applied once more.
var (
	errAlone   = errors.New("only a request by itself tells")
	errExists  = fmt.Errorf("%w: the name has a row", errAlone)
	errDenied  = fmt.Errorf("%w: PartiQL is denied, or the name", errAlone)
	errInvalid = fmt.Errorf("%w: the server calls the statement or its values invalid", errAlone)
)

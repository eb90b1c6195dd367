package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TransactClient is the part of a *dynamodb.Client that [Transact] needs.
type TransactClient interface {
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// maxActions is the service's limit on a transaction.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const maxActions = 100

// Transact writes the items of in and completes the event of the lock that ctx
// carries, in one DynamoDB transaction: all of it happens, or nothing does. So
// the writes happen exactly once, however often the event is delivered.
//
// Call it as the last thing in a handler under middleware.WithLock, or in the
// work of a lock.Locker, with the context of that work: afterwards the lock is
// free and the context has ended. It completes the innermost lock, whose key
// needs an Event or an Order: under a lock without, no duplicate is recognised,
// and inside the lock of an event it is refused. To keep a result for replay,
// use [TransactWithResult].
//
// The transaction may have up to 99 actions, in the account and Region of the
// lock table and none on the row of the lock. It is repeated after conflicts,
// throttling and lost answers. A ClientRequestToken of your own must be new for
// every call.
//
// The error tells what became of the lock. Unless an attempt had no answer,
// nothing was written:
//
//   - a *lock.LostError, or the cause of ctx: the lease or ctx has ended
//   - the client's own error, such as a *types.TransactionCanceledException
//     with the CancellationReasons of your actions: the lock is still held, so
//     try another transaction, or return nil to complete the event without one
//   - a *lock.StoreError: there was no time left. After an attempt without an
//     answer, the name stays held until the lease ends, and the next delivery
//     runs only if the transaction was not applied
//   - a [*driver.ConfigError]: there is no lock that a transaction can
//     complete, such as that of middleware.Latest and OnlyLatest, the client
//     asks another DynamoDB than that of the lock table, or a lock around the
//     innermost has an Event and that has none
func Transact(ctx context.Context, client TransactClient, in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	return transact(ctx, client, in, nil)
}

// TransactWithResult is Transact for a handler whose result is replayed to
// duplicates: it keeps the JSON of result, which must be what the handler
// returns, whatever middleware.RememberFor says of it. In a lambda.Handler,
// which returns JSON, pass that as a json.RawMessage: of a []byte it would keep
// a string in base64.
func TransactWithResult(ctx context.Context, client TransactClient, in *dynamodb.TransactWriteItemsInput, result any) (*dynamodb.TransactWriteItemsOutput, error) {
	body, err := json.Marshal(result)
	if err != nil {
		return nil, &driver.ConfigError{Reason: "dynamostore.TransactWithResult: the result has no JSON form", Err: err}
	}
	return transact(ctx, client, in, body)
}

func transact(ctx context.Context, client TransactClient, in *dynamodb.TransactWriteItemsInput, result []byte) (*dynamodb.TransactWriteItemsOutput, error) {
	if c, ok := client.(*dynamodb.Client); client == nil || ok && c == nil {
		return nil, wrongUse("the client is nil: give it the *dynamodb.Client that writes your items")
	}
	if in == nil {
		return nil, wrongUse("the transaction is nil: give it the items to write")
	}
	if n := len(in.TransactItems); n >= maxActions {
		return nil, wrongUse("the transaction has %d actions, and the completion of the event is one more: DynamoDB takes %d, so write at most %d", n, maxActions, maxActions-1)
	}
	held, ok := driver.FromContext(ctx)
	if !ok {
		return nil, wrongUse("the context carries no lock: pass on the context that the handler was given; under middleware.FailOpen there may be none")
	}
	store, err := storeOf(ctx, held)
	if err != nil {
		return nil, err
	}
	if c, ok := client.(*dynamodb.Client); ok && !store.sameRegion(c) {
		return nil, wrongUse("the client is for the Region %q, and the lock table is in another: a transaction cannot span Regions", c.Options().Region)
	}
	t := &transaction{store: store, client: client, clock: clock.From(ctx), in: *in, out: &dynamodb.TransactWriteItemsOutput{}}
	if aws.ToString(in.ClientRequestToken) == "" {
		t.in.ClientRequestToken = aws.String(t.clock.Text())
	}
	err = held.CompleteWith(ctx, result, t.send)
	switch {
	case err == nil:
		return t.out, nil
	case t.declined != nil && !t.unanswered:
		return nil, t.declined
	}
	return nil, err
}

func wrongUse(format string, args ...any) error {
	return &driver.ConfigError{Reason: "dynamostore.Transact: " + fmt.Sprintf(format, args...)}
}

// storeOf returns the Store that keeps the lock. A store that opens one at its
// first use, as middleware.DefaultStore does, has the method DynamoStore.
func storeOf(ctx context.Context, held driver.Lock) (*Store, error) {
	switch s := held.Store().(type) {
	case *Store:
		return s, nil
	case interface {
		DynamoStore(context.Context) (*Store, error)
	}:
		return s.DynamoStore(ctx)
	default:
		return nil, wrongUse("the lock is in a %T: only a lock in a DynamoDB table can be completed in a transaction", s)
	}
}

// sameRegion reports whether c asks the Region of the lock table, as far as
// that is known.
func (s *Store) sameRegion(c *dynamodb.Client) bool {
	own := s.region()
	return own == "" || own == c.Options().Region
}

// transaction is one call of Transact.
type transaction struct {
	store  *Store
	client TransactClient
	clock  clock.Clock
	in     dynamodb.TransactWriteItemsInput // the caller's
	out    *dynamodb.TransactWriteItemsOutput

	unanswered bool  // an attempt may have been applied
	declined   error // what the client reported about the caller's part
}

// send makes one attempt. It answers like [Store.Settle].
//
// An attempt can be repeated whatever has become of earlier ones: each removes
// the token on which all of them are conditional, so at most one is applied.
// The ClientRequestToken only lets DynamoDB say that an earlier one was.
func (t *transaction) send(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	in := t.in
	own := t.store.releaseInput(s)
	if t.writesRow(s.Name) {
		return driver.Row{}, false, wrongUse("one of the actions is on the row of the lock itself, which the completion writes: leave it out")
	}
	in.TransactItems = append(slices.Clip(in.TransactItems), types.TransactWriteItem{Update: &types.Update{
		TableName: own.TableName, Key: own.Key,
		UpdateExpression: own.UpdateExpression, ConditionExpression: own.ConditionExpression, ExpressionAttributeValues: own.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: own.ReturnValuesOnConditionCheckFailure,
	}})
	out, err := t.client.TransactWriteItems(ctx, &in, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if err == nil {
		if out != nil {
			t.out = out
		}
		return rowAfter(s), true, nil
	}
	row, err := t.explain(err)
	// A row's stamp never falls, so an older row may not be the lock's.
	if err == nil && row.Stamp.Before(s.Stamp) && t.store.owns(ctx, s) {
		return driver.Row{}, false, wrongUse("the client asks another DynamoDB than that of the lock table, where the lease lasts, so nothing was written: give it the client of the lock's store, or one with the same account, Region and endpoint")
	}
	e := (*driver.Error)(nil)
	t.unanswered = t.unanswered || errors.As(err, &e) && !e.Unapplied
	return row, false, err
}

// owns reports whether the token still owns the row. Its write changes nothing.
func (s *Store) owns(ctx context.Context, t *driver.Settlement) bool {
	_, ok, err := s.update(ctx, s.input(t.Name, "SET ownerToken = :token", ifOwner, values{":token": text(t.Token)}))
	return ok && err == nil
}

// writesRow reports whether an action of the caller is on the row of the lock.
// Both the action and the Store can also name their table by its ARN.
func (t *transaction) writesRow(name string) bool {
	return slices.ContainsFunc(t.in.TransactItems, func(i types.TransactWriteItem) bool {
		var table *string
		var key values
		switch {
		case i.Put != nil:
			table, key = i.Put.TableName, i.Put.Item
		case i.Update != nil:
			table, key = i.Update.TableName, i.Update.Key
		case i.Delete != nil:
			table, key = i.Delete.TableName, i.Delete.Key
		case i.ConditionCheck != nil:
			table, key = i.ConditionCheck.TableName, i.ConditionCheck.Key
		}
		named, own := aws.ToString(table), t.store.table
		return (named == own || strings.HasSuffix(named, ":table/"+own) || strings.HasSuffix(own, ":table/"+named)) && str(key, "lock") == name
	})
}

// explain returns the row that refused the completion, or what the error means.
// That row counts more than a refusal of the caller's writes: if an earlier
// attempt was applied, their conditions need not hold any more.
func (t *transaction) explain(err error) (driver.Row, error) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(t.in.TransactItems)+1 {
		return driver.Row{}, t.classify(err)
	}
	n := len(t.in.TransactItems)
	own, theirs := canceled.CancellationReasons[n], canceled.CancellationReasons[:n]
	if aws.ToString(own.Code) == "ConditionalCheckFailed" {
		return t.store.parse(own.Item)
	}
	canceled.CancellationReasons = theirs
	passing, conflict := true, true
	for _, r := range append(slices.Clip(theirs), own) {
		code := aws.ToString(r.Code)
		passing = passing && (code == "None" || passingReasons[code])
		conflict = conflict && (code == "None" || code == "TransactionConflict")
	}
	switch {
	case passing:
		return driver.Row{}, &driver.Error{Store: t.store.String(), Err: err, Answered: true, Unapplied: true, Conflict: conflict}
	case !lasting(own):
		return driver.Row{}, t.decline(err)
	}
	message := aws.ToString(own.Message)
	_, hint := blame("ValidationException", message)
	return driver.Row{}, &driver.Error{Lasting: true, Store: t.store.String(), Hint: hint, Err: fmt.Errorf("the completion of the event was refused: %s: %s", aws.ToString(own.Code), message), Answered: true, Unapplied: true}
}

// passingReasons are the reasons of a cancellation that pass by themselves.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html#API_TransactWriteItems_Errors
var passingReasons = map[string]bool{"TransactionConflict": true, "ThrottlingError": true, "ProvisionedThroughputExceeded": true}

// lasting reports whether a reason stands for something that a later attempt
// would meet too.
func lasting(r types.CancellationReason) bool {
	code := aws.ToString(r.Code)
	return code != "None" && !passingReasons[code]
}

// classify returns the [*driver.Error] for an answer that says nothing about
// the single items.
func (t *transaction) classify(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		if errors.As(err, new(smithy.InvalidParamsError)) || errors.As(err, new(*smithy.SerializationError)) {
			return t.decline(err) // it was not sent
		}
		return t.store.classify(err)
	}
	switch api.ErrorCode() {
	case "TransactionInProgressException": // an earlier attempt is still being applied
		return &driver.Error{Store: t.store.String(), Err: err}
	case "IdempotentParameterMismatchException":
		// The client writes maps in random order, and some servers take that for
		// another request: https://github.com/aws/aws-sdk-go-v2/issues/1900.
		if t.unanswered {
			t.in.ClientRequestToken = aws.String(t.clock.Text())
			return &driver.Error{Store: t.store.String(), Err: err}
		}
	}
	e := (*driver.Error)(nil)
	if known := t.store.classify(err); errors.As(known, &e) && !e.Lasting {
		return known
	}
	return t.decline(err)
}

// decline notes an error that the caller gets unchanged. If an earlier attempt
// may still be applied, the text says that it is not the last word.
func (t *transaction) decline(err error) error {
	t.declined = err
	if t.unanswered {
		err = errors.New("an attempt had no answer, and the next one was refused: " + err.Error())
	}
	return &driver.Error{Lasting: true, Store: t.store.String(), Err: err, Answered: errors.As(err, new(smithy.APIError)), Unapplied: true}
}

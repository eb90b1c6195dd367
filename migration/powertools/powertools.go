// Package powertools lets a function remember what its predecessor completed,
// if that used the idempotency of Powertools for AWS Lambda for Python or
// TypeScript with a DynamoDB table. The handler is wrapped twice:
//
//	old := powertools.Table[events.SQSMessage]{
//		Client:    client, // *dynamodb.Client
//		Name:      "idempotency",
//		Language:  powertools.Python,
//		Prefix:    "orders.app.process", // before the # in the ids of the table
//		Part:      func(m events.SQSMessage) any { return m.MessageId },
//		CutOver:   time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC),
//		Retention: time.Hour,
//	}
//	handler := middleware.EachSQSMessage(keyfuncs.SQSMessage, powertools.RecordHandler(old, handle))
//
// The lock decides first, so the old table is asked only for an event that the
// lock's row does not know:
//
//   - until CutOver, while the old version may run too, with two writes, which
//     also keep the event from the old version
//   - then, for Retention, with one read
//   - after that, not at all
//
// A Part that comes again on purpose, as a body may, needs the option
// middleware.Remember(old.Retention). Otherwise what is sent again after the
// old expiry is skipped.
//
// # Guarantees
//
// No event runs again that the old version completed, for as long as that would
// have remembered it, and none runs while the old version works on it. Until
// CutOver the same holds in the other direction, so that both versions can be
// deployed at once, and the old one brought back.
//
// # Not guaranteed
//
// After CutOver the old version must not run any more: it would not know what
// this one completes. An event whose old record neither ended nor says when it
// will (its function was killed, and had not called register_lambda_context or
// registerLambdaContext) is held until the record expires, as it was before.
//
// The old table learns what this version completes only from a handler that has
// returned. So an event that is completed without one has no record there: by
// middleware.OnInterrupted (Skip, or a question that says that it was done), by
// the command lambdalock complete, or by dynamostore.Transact if the process
// ends before its handler returns. The old version would run a duplicate of it.
// Where any of these is used, stop the old version before this one begins, with
// a CutOver in the past.
//
// # Errors
//
// An event that the old version works on fails with a *lock.HeldError, as if
// another invocation held its lock, so that the source delivers it again. One
// whose validated part differs from that of the record fails with a
// *lock.PayloadMismatchError. If the table does not answer, the handler does
// not run, and the event fails with a *lock.StoreError.
//
// Under middleware.Latest and OnlyLatest every event fails with a
// *lock.ConfigError: the handler may have to run again for other events, when
// the old table already has its own as completed.
//
// docs/MIGRATION.md of this module has the steps.
package powertools

import (
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Language is the language of the old function. The same event has another id
// in each.
type Language int

// The languages.
const (
	Python Language = iota + 1
	TypeScript
)

// Client is what a Table needs of a *dynamodb.Client. The actions are
// dynamodb:GetItem and, until CutOver, dynamodb:UpdateItem.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Table describes the idempotency table of the old function. The fields up to
// Retention are required.
type Table[E any] struct {
	Client   Client
	Name     string
	Language Language
	// Prefix is what the ids of the table have before the #: for Python the names
	// of Lambda function, module and decorated function, such as
	// orders.app.handler; for TypeScript that of the Lambda function; for both the
	// key prefix, if the old function sets one.
	Prefix string
	// Part returns what the old function hashed of an event: what its
	// event_key_jmespath or eventKeyJmesPath selects, or all of it. The value is
	// encoded by encoding/json. Numbers must look as they do in the event, so
	// return them as json.Number or, like anything else that is JSON already, as
	// json.RawMessage. Nil: the event has no such part, and no old record.
	Part func(E) any
	// CutOver is when the old version certainly does not run any more, and will
	// not be brought back.
	CutOver time.Time
	// Retention is the expires_after_seconds or expiresAfterSeconds of the old
	// function: an hour, unless it says otherwise.
	Retention time.Duration

	// Validation returns what payload_validation_jmespath or
	// payloadValidationJmesPath selects, as Part does. Nil: the old function does
	// not validate payloads.
	Validation func(E) any
	// SortKey is the attribute that has the id if the table has a sort key, and
	// PartitionKey the value of the partition key, such as idempotency#orders.
	SortKey, PartitionKey string
	// Attributes has the names of attributes that the old function renamed, by
	// their defaults: id, status, expiration, in_progress_expiration, data,
	// validation.
	Attributes map[string]string
	// Hash is the hash function of the ids. Nil: MD5.
	Hash func() hash.Hash
}

// Handler wraps a handler with a result. If the old version completed the
// event, its stored result is returned, decoded by encoding/json. The wrapped
// handler must run under a lock of package middleware. Handler panics if
// handler, or a required field of t, is missing.
//
// Until CutOver a result without an error completes the event in the old table,
// as it does in Powertools: also an HTTP response with a status of 500 and
// above, which a retry then gets again.
func Handler[E, R any](t Table[E], handler func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	t.check(handler == nil)
	return wrap(t, handler, t.decode)
}

// RecordHandler wraps a handler without a result, such as one for each record
// of a batch. It does what [Handler] does, but for the stored result, which it
// ignores.
func RecordHandler[E any](t Table[E], handler func(context.Context, E) error) func(context.Context, E) error {
	t.check(handler == nil)
	ignore := func(*record, any) error { return nil } // Python may have written NaN, which JSON does not have
	wrapped := wrap(t, func(ctx context.Context, event E) (json.RawMessage, error) { return nil, handler(ctx, event) }, ignore)
	return func(ctx context.Context, event E) error {
		_, err := wrapped(ctx, event)
		return err
	}
}

// wrap wraps a handler. decode decodes the stored result.
func wrap[E, R any](t Table[E], handler func(context.Context, E) (R, error), decode func(*record, any) error) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (result R, err error) {
		r, err := t.enter(ctx, event)
		if err != nil {
			return result, err
		}
		if r.completed {
			return result, decode(r, &result)
		}
		defer t.release(ctx, r)
		if result, err = handler(ctx, event); err == nil {
			t.complete(ctx, r, result)
		}
		return result, err
	}
}

// check panics if a field, or the handler, is missing.
func (t *Table[E]) check(noHandler bool) {
	for field, missing := range map[string]bool{
		"the handler": noHandler, "Client": t.Client == nil, "Name": t.Name == "", "Prefix": t.Prefix == "", "Part": t.Part == nil,
		"Language": t.Language != Python && t.Language != TypeScript, "CutOver": t.CutOver.IsZero(), "Retention": t.Retention <= 0,
		"PartitionKey, which a table with a SortKey needs,": (t.SortKey == "") != (t.PartitionKey == ""),
	} {
		if missing {
			panic(fmt.Sprintf("lambdalock: powertools: %s is missing or wrong: docs/MIGRATION.md says what goes there", field))
		}
	}
}

package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

var order = lock.Key{Name: "order/17", Event: "17"}

// acquire returns a lock on order with a lease of a minute.
func (b *bank) acquire(t *testing.T, l *lock.Locker) *lock.Lock {
	t.Helper()
	lk := expect.Value(l.Acquire(t.Context(), order))(t)
	return lk
}

// wantBalances checks the accounts "a" and "b", which had 100 each.
func (b *bank) wantBalances(t *testing.T, a, bb string) {
	t.Helper()
	if gotA, gotB := b.balance("a"), b.balance("b"); gotA != a || gotB != bb {
		t.Errorf("balances %s and %s, want %s and %s", gotA, gotB, a, bb)
	}
}

var hundred = map[string]string{"a": "100", "b": "100"}

// TestTransact: two requests, and the event is completed with the writes.
func TestTransact(t *testing.T) { // F53
	t.Parallel()
	for name, token := range map[string]*string{"": nil, "with an empty token": aws.String(""), "with its own token": aws.String("mine")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l, before := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)}), b.Requests()
				lk := b.acquire(t, l)
				in := transfer("a", "b", "30")
				in.TransactItems = append(make([]types.TransactWriteItem, 0, 10), in.TransactItems...)
				in.ClientRequestToken = token
				out, err := dynamostore.Transact(lk.Context(), b.client, in)
				if err != nil || awsmiddleware.GetRawResponse(out.ResultMetadata) == nil { // it is not the client's
					t.Fatal(out, err)
				}
				if err := errors.Join(lk.Complete(), lk.Release()); err != nil {
					t.Errorf("the lock's own end: %v", err)
				}
				if n := b.Requests() - before; n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
				b.wantBalances(t, "70", "130")
				if lk.Context().Err() == nil {
					t.Error("the context goes on although the lock is free")
				}
				if row := b.Item(table, "/order/17"); row["ownerToken"] != nil || row["completed"] == nil {
					t.Errorf("row %v", row)
				}
				if _, err := l.Acquire(t.Context(), order); !errors.Is(err, lock.ErrCompleted) {
					t.Errorf("a duplicate: %v", err)
				}
				if len(in.TransactItems) != 2 || in.TransactItems[:3][2].Update != nil || in.ClientRequestToken != token {
					t.Errorf("the caller's input has become %+v", in)
				}
			})
		})
	}
}

// TestTransactDeclined: a transaction that is refused for a reason of the
// caller's changes nothing, and the work goes on.
func TestTransactDeclined(t *testing.T) { // F53
	t.Parallel()
	for name, c := range map[string]struct {
		in    func() *dynamodb.TransactWriteItemsInput
		code  string
		codes []string
	}{
		"condition": {in: func() *dynamodb.TransactWriteItemsInput {
			in := transfer("b", "a", "1")
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: "c"}}, ConditionExpression: aws.String("attribute_exists(account)"),
			}})
			return in
		}, code: "TransactionCanceledException", codes: []string{"None", "None", "ConditionalCheckFailed"}},
		"attribute":      {in: func() *dynamodb.TransactWriteItemsInput { return transfer("a", "nobody", "1") }, code: "TransactionCanceledException", codes: []string{"None", "ValidationError"}},
		"one item twice": {in: func() *dynamodb.TransactWriteItemsInput { return transfer("a", "a", "1") }, code: "ValidationException"},
		"table": {in: func() *dynamodb.TransactWriteItemsInput {
			in := transfer("a", "b", "1")
			in.TransactItems[0].Update.TableName = aws.String("missing")
			return in
		}, code: "ResourceNotFoundException"},
		"no table": {in: func() *dynamodb.TransactWriteItemsInput {
			in := transfer("a", "b", "1")
			in.TransactItems[0].Update.TableName = nil
			return in
		}},
		"action without a kind": {in: func() *dynamodb.TransactWriteItemsInput {
			return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{}}}
		}, code: "ValidationException"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
				lk, began, before := b.acquire(t, l), time.Now(), b.Requests()
				_, err := dynamostore.Transact(lk.Context(), b.client, c.in())
				var api smithy.APIError
				if err == nil || errors.As(err, new(*lock.StoreError)) || errors.As(err, &api) != (c.code != "") || c.code != "" && api.ErrorCode() != c.code {
					t.Fatalf("error %v, want %s", err, c.code)
				}
				if time.Since(began) != 0 || b.Requests()-before > 1 {
					t.Errorf("%d requests in %v: it was repeated", b.Requests()-before, time.Since(began))
				}
				var canceled *types.TransactionCanceledException
				if errors.As(err, &canceled) {
					var codes []string
					for _, r := range canceled.CancellationReasons {
						codes = append(codes, aws.ToString(r.Code))
					}
					if fmt.Sprint(codes) != fmt.Sprint(c.codes) {
						t.Errorf("reasons %q, want those of the caller's actions, %q", codes, c.codes)
					}
				}
				b.wantBalances(t, "100", "100")
				if lk.Context().Err() != nil || b.Item(table, "/order/17")["ownerToken"] == nil {
					t.Error("the lock has ended")
				}
				if _, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30")); err != nil {
					t.Errorf("another transaction: %v", err)
				}
				b.wantBalances(t, "70", "130")
			})
		})
	}
}

// TestTransactDeclinedThenEnded: after a refusal the lock ends as the handler
// decides.
func TestTransactDeclinedThenEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end       func(*lock.Lock) error
		completed bool
	}{
		"complete": {func(lk *lock.Lock) error { return lk.Complete() }, true},
		"release":  {(*lock.Lock).Release, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
				lk := b.acquire(t, l)
				if _, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "101")); !errors.As(err, new(*types.TransactionCanceledException)) {
					t.Fatal(err)
				}
				expect.Must(t, c.end(lk))
				next, err := l.Acquire(t.Context(), order)
				if errors.Is(err, lock.ErrCompleted) != c.completed {
					t.Errorf("the next delivery: %v", err)
				}
				if err == nil {
					_ = next.Release()
				}
				b.wantBalances(t, "100", "100")
			})
		})
	}
}

// TestTransactAfterTakeover: a holder that lost its lease writes nothing.
func TestTransactAfterTakeover(t *testing.T) { // F21
	t.Parallel()
	for name, c := range map[string]struct {
		next   func(*lock.Lock) error // what the next holder does before
		amount string
		lost   bool
		omit   bool
	}{
		"held by another":                           {next: func(*lock.Lock) error { return nil }, amount: "30"},
		"held by another, and the own condition":    {next: func(*lock.Lock) error { return nil }, amount: "101"},
		"released by another":                       {next: (*lock.Lock).Release, amount: "30"},
		"completed by another":                      {next: func(lk *lock.Lock) error { return lk.Complete() }, amount: "30"},
		"held by another, the server shows no rows": {next: func(*lock.Lock) error { return nil }, amount: "30", omit: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
				late := b.acquire(t, l)
				time.Sleep(61 * time.Second)
				expect.Must(t, c.next(b.acquire(t, l)))
				before := b.Item(table, "/order/17")
				if c.omit {
					b.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.OmitItem })
				}
				_, err := dynamostore.Transact(context.WithoutCancel(late.Context()), b.client, transfer("a", "b", c.amount))
				if lost := (*lock.LostError)(nil); !errors.As(err, &lost) || lost.Key != order {
					t.Errorf("%v, want a LostError", err)
				}
				b.wantBalances(t, "100", "100")
				if after := b.Item(table, "/order/17"); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the row has become %v", after)
				}
			})
		})
	}
}

// TestTransactElsewhere: the client asks another DynamoDB than that of the lock
// table, such as that of another test. The lease is not lost, and the code is
// wrong.
func TestTransactElsewhere(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*testing.T, *bank){
		"it has no such row": func(*testing.T, *bank) {},
		"it has an older one": func(t *testing.T, elsewhere *bank) {
			expect.Must(t, elsewhere.acquire(t, elsewhere.locker(t, lock.Options{})).Complete())
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, elsewhere := newBank(t, hundred), newBank(t, hundred)
				before(t, elsewhere)
				lk := b.acquire(t, b.locker(t, lock.Options{}))
				_, err := dynamostore.Transact(lk.Context(), elsewhere.client, transfer("a", "b", "30"))
				if !errors.As(err, new(*driver.ConfigError)) || !strings.Contains(err.Error(), "asks another DynamoDB than that of the lock table") {
					t.Errorf("%v, want a ConfigError about the client", err)
				}
				elsewhere.wantBalances(t, "100", "100")
				expect.Value(dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30")))(t)
				b.wantBalances(t, "70", "130")
			})
		})
	}
}

// TestTransactOnUnreadableRow: somebody has spoiled the row, so that nobody can
// tell who owns it. The store has failed then, and no lease is lost.
func TestTransactOnUnreadableRow(t *testing.T) { // F41
	t.Parallel()
	b := newBank(t, hundred)
	lk := b.acquire(t, b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)}))
	put(t, &fixture{client: b.client}, "/order/17", "SET ownerToken = :time, fence = :huge")
	var failed *lock.StoreError
	if _, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30")); !errors.As(err, &failed) || errors.Is(err, lock.ErrLost) || !strings.Contains(err.Error(), "fence") {
		t.Errorf("%v, want a StoreError about the row", err)
	}
	b.wantBalances(t, "100", "100")
}

// TestTransactAfterTheContext: nothing is sent once the context has ended, so
// that nothing is left open.
func TestTransactAfterTheContext(t *testing.T) { // F15
	t.Parallel()
	for name, c := range map[string]struct {
		lost bool
		want error
	}{
		"the lease has ended":   {true, lock.ErrLost},
		"the work was canceled": {false, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
				lk := b.acquire(t, l)
				ctx, cancel := context.WithCancel(lk.Context())
				if c.lost {
					time.Sleep(time.Minute)
				}
				cancel()
				before := b.Requests()
				if _, err := dynamostore.Transact(ctx, b.client, transfer("a", "b", "30")); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if n := b.Requests() - before; n != 0 {
					t.Errorf("%d requests", n)
				}
				if err := lk.Release(); err != nil {
					t.Errorf("Release: %v", err)
				}
			})
		})
	}
}

// TestTransactFaults: whatever happens to the first attempts, the writes happen
// once.
func TestTransactFaults(t *testing.T) { // F5, F6, F8, F9
	t.Parallel()
	type faults []fakedynamo.Fault
	for name, c := range map[string]struct {
		faults   faults
		newToken bool // DynamoDB does not recognise the repeated attempt
		lost     bool
		least    time.Duration // that the store is left alone
		most     time.Duration // zero: any
	}{
		"no answer":              {faults: faults{fakedynamo.DropBefore}},
		"lost answer":            {faults: faults{fakedynamo.ApplyThenDrop}},
		"error after the fact":   {faults: faults{fakedynamo.ApplyThen500}},
		"throttled":              {faults: faults{fakedynamo.Throttle, fakedynamo.Throttle}, least: 200 * time.Millisecond},
		"conflict":               {faults: faults{fakedynamo.Conflict, fakedynamo.Conflict}, most: 75 * time.Millisecond},
		"in progress":            {faults: faults{fakedynamo.ApplyThenDrop, fakedynamo.InProgress, fakedynamo.InProgress}},
		"one after the other":    {faults: faults{fakedynamo.DropBefore, fakedynamo.Throttle, fakedynamo.Conflict, fakedynamo.ApplyThenDrop, fakedynamo.Conflict, fakedynamo.InProgress}},
		"hangs":                  {faults: faults{fakedynamo.Hang}},
		"lost answer, not known": {faults: faults{fakedynamo.ApplyThenDrop}, newToken: true},
		"lost answer, not known, without the row": {faults: faults{fakedynamo.ApplyThenDrop, fakedynamo.OmitItem}, newToken: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
				lk, before := b.acquire(t, l), b.Requests()
				b.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if i := r.N - before; i < len(c.faults) {
						return c.faults[i]
					}
					return fakedynamo.None
				})
				client := &tokens{Client: b.client, fresh: c.newToken}
				began := time.Now()
				out, err := dynamostore.Transact(lk.Context(), client, transfer("a", "b", "30"))
				if d := time.Since(began); d < c.least || c.most > 0 && d > c.most {
					t.Errorf("it took %v, want %v to %v", d, c.least, c.most)
				}
				if (out == nil) != (err != nil) || errors.Is(err, lock.ErrLost) != c.lost || err != nil && !c.lost {
					t.Errorf("%v, %v", out, err)
				}
				b.wantBalances(t, "70", "130")
				if n := b.Requests() - before; n != max(len(c.faults), 2) && n != len(c.faults)+1 {
					t.Errorf("%d requests for %d faults", n, len(c.faults))
				}
				for _, token := range client.sent {
					if token != client.sent[0] {
						t.Errorf("the attempts have the tokens %q", client.sent)
					}
				}
				b.OnRequest(nil)
				if _, err := l.Acquire(t.Context(), order); !errors.Is(err, lock.ErrCompleted) {
					t.Errorf("a duplicate: %v", err)
				}
			})
		})
	}
}

// tokens is a client that notes the tokens of transactions. With fresh, it
// sends each attempt with another one, so that DynamoDB takes none for a
// repetition.
type tokens struct {
	*dynamodb.Client
	fresh bool
	sent  []string
}

func (c *tokens) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.sent = append(c.sent, aws.ToString(in.ClientRequestToken))
	if c.fresh {
		in.ClientRequestToken = aws.String(fmt.Sprint(len(c.sent)))
	}
	return c.Client.TransactWriteItems(ctx, in, opts...)
}

// TestTokenOfEachCall: two calls have different tokens, so that the second is
// not taken for the first.
func TestTokenOfEachCall(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	client := &tokens{Client: b.client}
	l := b.locker(t, lock.Options{})
	for _, event := range []string{"1", "2"} {
		lk := expect.Value(l.Acquire(t.Context(), lock.Key{Name: "n", Event: event}))(t)
		expect.Value(dynamostore.Transact(lk.Context(), client, transfer("a", "b", "30")))(t)
	}
	b.wantBalances(t, "40", "160")
	if len(client.sent) != 2 || client.sent[0] == client.sent[1] || client.sent[0] == "" {
		t.Errorf("tokens %q", client.sent)
	}
}

// TestTransactMistakenForAnother: a server that compares the bytes of requests
// takes a repeated attempt for another transaction.
func TestTransactMistakenForAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []fakedynamo.Fault
		own    string
		failed bool
	}{
		"after a lost answer":                 {faults: []fakedynamo.Fault{fakedynamo.ApplyThenDrop}},
		"after a lost answer, own token":      {faults: []fakedynamo.Fault{fakedynamo.ApplyThenDrop}, own: "mine"},
		"the caller's token was used already": {own: "used", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, hundred)
				lk, before := b.acquire(t, b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})), b.Requests()
				b.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if i := r.N - before; i < len(c.faults) {
						return c.faults[i]
					}
					return fakedynamo.None
				})
				in := transfer("a", "b", "30")
				if c.own != "" {
					in.ClientRequestToken = &c.own
				}
				client := &bytewise{Client: b.client, used: map[string]bool{"used": true}}
				_, err := dynamostore.Transact(lk.Context(), client, in)
				if c.failed {
					if !errors.As(err, new(*types.IdempotentParameterMismatchException)) || errors.As(err, new(*lock.StoreError)) || lk.Context().Err() != nil {
						t.Errorf("%v, want the client's error, and a lock that goes on", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
				}
				b.wantBalances(t, "70", "130")
			})
		})
	}
}

// bytewise refuses every token that was sent before.
type bytewise struct {
	*dynamodb.Client
	used map[string]bool
}

func (c *bytewise) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if c.used[*in.ClientRequestToken] {
		return nil, &types.IdempotentParameterMismatchException{}
	}
	c.used[*in.ClientRequestToken] = true
	return c.Client.TransactWriteItems(ctx, in, opts...)
}

// TestDeclinedAfterNoAnswer: while an attempt may still be applied, a refusal
// of the caller's condition is not the last word, so no handler may take it for
// one.
func TestDeclinedAfterNoAnswer(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	lk, before := b.acquire(t, b.locker(t, lock.Options{})), b.Requests()
	b.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.N == before {
			return fakedynamo.DropBefore
		}
		return fakedynamo.None
	})
	_, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "101"))
	if !errors.As(err, new(*lock.StoreError)) || errors.As(err, new(*types.TransactionCanceledException)) {
		t.Errorf("%v, want a StoreError that does not say that the condition failed", err)
	}
	if text := err.Error(); !strings.Contains(text, "ConditionalCheckFailed") || !strings.Contains(text, "had no answer") {
		t.Errorf("%v does not tell people why, and that it may have been applied", err)
	}
	if b.Item(table, "/order/17")["ownerToken"] == nil {
		t.Error("the lock was released")
	}
}

// knowsARN finds the lock table by its ARN too, as DynamoDB does.
type knowsARN struct{ dynamostore.Client }

func (c knowsARN) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	named := *in
	named.TableName = aws.String(table)
	return c.Client.UpdateItem(ctx, &named, o...)
}

// TestTransactWrongUse: a mistake in the code is named before anything is sent.
func TestTransactWrongUse(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	lk := b.acquire(t, b.locker(t, lock.Options{}))
	ctx := lk.Context()
	inMemory := b.acquire(t, newLocker(t, memstore.New(), lock.Options{})).Context()
	wrapped := dynamostore.New(struct{ *dynamodb.Client }{b.client}, table)
	behind := b.acquire(t, newLocker(t, wrapped, lock.Options{Namespace: "wrapped"})).Context()
	const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/" + table
	byARN := b.acquire(t, newLocker(t, dynamostore.New(knowsARN{newBank(t, hundred).client}, arn), lock.Options{})).Context()
	broken := b.acquire(t, newLocker(t, lazy{b.store, nil}, lock.Options{Namespace: "lazy"})).Context()
	many := func(n int) *dynamodb.TransactWriteItemsInput {
		in := &dynamodb.TransactWriteItemsInput{}
		for i := range n {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
				TableName: aws.String("accounts"), Item: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}},
			}})
		}
		return in
	}
	onRow := func(table string) types.TransactWriteItem {
		key := map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "/order/17"}}
		switch table {
		case "put":
			return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("locks"), Item: key}}
		case "delete":
			return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: key}}
		case "check":
			return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("locks"), Key: key, ConditionExpression: aws.String("attribute_exists(stamp)")}}
		}
		return types.TransactWriteItem{Update: &types.Update{TableName: &table, Key: key, UpdateExpression: aws.String("REMOVE x")}}
	}
	together := expect.Value(b.locker(t, lock.Options{Namespace: "together"}).AcquireAll(t.Context(), order, lock.Key{Name: "another"}))(t)
	elsewhere := dynamodb.New(b.client.Options(), func(o *dynamodb.Options) { o.Region = "us-east-1" })
	nowhere := dynamodb.New(b.client.Options(), func(o *dynamodb.Options) { o.Region = "" })
	before := b.Requests()
	for name, c := range map[string]struct {
		ctx    context.Context
		client dynamostore.TransactClient
		in     *dynamodb.TransactWriteItemsInput
		want   string
	}{
		"no client":            {ctx, nil, transfer("a", "b", "1"), "the client is nil"},
		"nil client":           {ctx, (*dynamodb.Client)(nil), transfer("a", "b", "1"), "the client is nil"},
		"no input":             {ctx, b.client, nil, "the transaction is nil"},
		"100 actions":          {ctx, b.client, many(100), "the transaction has 100 actions, and the completion of the event is one more: DynamoDB takes 100, so write at most 99"},
		"no lock":              {t.Context(), b.client, transfer("a", "b", "1"), "the context carries no lock"},
		"no lock inside one":   {driver.NewContext(ctx, nil), b.client, transfer("a", "b", "1"), "the context carries no lock"},
		"another store":        {inMemory, b.client, transfer("a", "b", "1"), "the lock is in a *memstore.Store"},
		"a lock of several":    {together.Context(), b.client, transfer("a", "b", "1"), "was locked together with others"},
		"a store without open": {broken, b.client, transfer("a", "b", "1"), "cannot be opened"},
		"another Region":       {ctx, elsewhere, transfer("a", "b", "1"), `the client is for the Region "us-east-1"`},
		"no Region":            {ctx, nowhere, transfer("a", "b", "1"), `the client is for the Region ""`},
		"Region, wrapped":      {behind, elsewhere, transfer("a", "b", "1"), `the client is for the Region "us-east-1"`},
		"an update of the row": {ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow("locks")}}, "on the row of the lock itself"},
		"the row, by its ARN":  {ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow(arn)}}, "on the row of the lock itself"},
		"a Store of an ARN":    {byARN, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow(table)}}, "on the row of the lock itself"},
		"a put of the row":     {ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow("put")}}, "on the row of the lock itself"},
		"a delete of the row":  {ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow("delete")}}, "on the row of the lock itself"},
		"a check of the row":   {ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{onRow("check")}}, "on the row of the lock itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dynamostore.Transact(c.ctx, c.client, c.in)
			if !errors.As(err, new(*driver.ConfigError)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want a ConfigError with %q", err, c.want)
			}
		})
	}
	if _, err := dynamostore.TransactWithResult(ctx, b.client, transfer("a", "b", "1"), func() {}); !errors.As(err, new(*driver.ConfigError)) {
		t.Errorf("a result without JSON: %v", err)
	}
	if n := b.Requests() - before; n != 0 || ctx.Err() != nil {
		t.Fatalf("%d requests were sent, and the context has ended: %v", n, ctx.Err())
	}
	if _, err := dynamostore.Transact(ctx, b.client, many(99)); err != nil {
		t.Errorf("99 actions: %v", err)
	}
}

// TestTransactBesideTheLock: an item with the key of the lock's row is the
// caller's if it is in another table, and so are other rows of the lock table.
func TestTransactBesideTheLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, key string }{
		"another table": {"my-locks", "/order/17"},
		"another row":   {table, "/order/18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, hundred)
			expect.Must(t, dynamostore.EnsureTable(t.Context(), b.client, "my-locks"))
			lk := b.acquire(t, b.locker(t, lock.Options{}))
			in := transfer("a", "b", "30")
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
				TableName: &c.table, Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: c.key}},
			}})
			if _, err := dynamostore.Transact(lk.Context(), b.client, in); err != nil {
				t.Error(err)
			}
			b.wantBalances(t, "70", "130")
			if b.Item(c.table, c.key) == nil {
				t.Error("the item was not written")
			}
		})
	}
}

// TestTransactBothRefused: while another request is at the lock's row, the
// caller's condition fails. The caller hears of its own condition, and the
// transaction is not repeated.
func TestTransactBothRefused(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, hundred)
			lk := b.acquire(t, b.locker(t, lock.Options{}))
			client := &cancels{codes: []string{"None", "ConditionalCheckFailed", own}}
			_, err := dynamostore.Transact(lk.Context(), client, transfer("a", "b", "30"))
			var canceled *types.TransactionCanceledException
			if !errors.As(err, &canceled) || errors.As(err, new(*lock.StoreError)) || len(canceled.CancellationReasons) != 2 || client.requests != 1 {
				t.Errorf("%v after %d requests, want the caller's reasons after 1", err, client.requests)
			}
			if lk.Context().Err() != nil {
				t.Error("the lock has ended")
			}
		})
	}
}

// cancels is a client that cancels every transaction for these reasons.
type cancels struct {
	codes    []string
	requests int
}

func (c *cancels) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.requests++
	canceled := &types.TransactionCanceledException{}
	for i := range c.codes {
		canceled.CancellationReasons = append(canceled.CancellationReasons, types.CancellationReason{Code: &c.codes[i]})
	}
	return nil, canceled
}

// TestTransactTwice: a lock that has ended completes no second transaction, and
// nobody is told that its writes happened.
func TestTransactTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*bank, *lock.Lock) error
		is   error
		want string
	}{
		"after a transaction": {end: func(b *bank, lk *lock.Lock) error {
			_, err := dynamostore.Transact(lk.Context(), b.client, &dynamodb.TransactWriteItemsInput{})
			return err
		}, want: "has ended already"},
		"after Complete": {end: func(_ *bank, lk *lock.Lock) error { return lk.Complete() }, want: "has ended already"},
		"after Release":  {end: func(_ *bank, lk *lock.Lock) error { return lk.Release() }, is: lock.ErrReleased},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, hundred)
			lk := b.acquire(t, b.locker(t, lock.Options{}))
			expect.Must(t, c.end(b, lk))
			before := b.Requests()
			out, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30"))
			if out != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v, want %v %s", out, err, c.is, c.want)
			}
			if n := b.Requests() - before; n != 0 {
				t.Errorf("%d requests", n)
			}
			b.wantBalances(t, "100", "100")
		})
	}
}

// TestTransactInsideASet: under the locks of several names, the event has a
// lock of its own, which the transaction completes.
func TestTransactInsideASet(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	l := b.locker(t, lock.Options{})
	set := expect.Value(l.AcquireAll(t.Context(), lock.Key{Name: "account/a"}, lock.Key{Name: "account/b"}))(t)
	lk := expect.Value(l.Acquire(set.Context(), order))(t)
	if _, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "1")); err != nil {
		t.Error(err)
	}
	if err := set.Context().Err(); err != nil {
		t.Errorf("the set has ended with the transaction: %v", err)
	}
	expect.OK(t, set.Complete())
	b.wantBalances(t, "99", "101")
}

// lazy is a store that opens another one at its first use.
type lazy struct {
	driver.Store
	store *dynamostore.Store
}

func (l lazy) DynamoStore(context.Context) (*dynamostore.Store, error) {
	if l.store == nil {
		return nil, &driver.ConfigError{Reason: "cannot be opened"}
	}
	return l.store, nil
}

// TestTransactOnOtherTables: errors of the lock's own part are not the
// caller's.
func TestTransactOnOtherTables(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	lk := b.acquire(t, newLocker(t, lazy{b.store, dynamostore.New(b.client, "accounts")}, lock.Options{})) // has another key
	_, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30"))
	if !errors.As(err, new(*lock.StoreError)) || !strings.Contains(err.Error(), `the table needs a partition key named "lock"`) || errors.As(err, new(*types.TransactionCanceledException)) {
		t.Errorf("%v, want a StoreError about the table's key", err)
	}
	b.wantBalances(t, "100", "100")
}

// TestTransactWithoutReasons: a server may cancel without saying why.
func TestTransactWithoutReasons(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	lk := b.acquire(t, b.locker(t, lock.Options{}))
	if _, err := dynamostore.Transact(lk.Context(), silent{}, transfer("a", "b", "30")); !errors.As(err, new(*types.TransactionCanceledException)) {
		t.Errorf("%v, want the client's error", err)
	}
	if out, err := dynamostore.Transact(lk.Context(), mute{b.client}, transfer("a", "b", "30")); out == nil || err != nil {
		t.Errorf("a client without output: %v, %v", out, err)
	}
}

// silent cancels without reasons.
type silent struct{}

func (silent) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return nil, &types.TransactionCanceledException{}
}

// mute returns no output.
type mute struct{ *dynamodb.Client }

func (c mute) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	_, err := c.Client.TransactWriteItems(ctx, in, opts...)
	return nil, err
}

// TestTransactNested: the innermost lock is completed, and the outer one by
// its own wrapper.
func TestTransactNested(t *testing.T) {
	t.Parallel()
	b := newBank(t, hundred)
	l := b.locker(t, lock.Options{})
	outer := expect.Value(l.Acquire(t.Context(), lock.Key{Name: "customer/jane"}))(t)
	inner := expect.Value(l.Acquire(outer.Context(), order))(t)
	expect.Value(dynamostore.Transact(inner.Context(), b.client, transfer("a", "b", "30")))(t)
	if b.Item(table, "/order/17")["ownerToken"] != nil || b.Item(table, "/customer/jane")["ownerToken"] == nil {
		t.Error("not exactly the innermost lock has ended")
	}
	expect.OK(t, errors.Join(inner.Complete(), outer.Complete()))
}

// TestTransactTooLate: a call with a context that has ended sends nothing, so
// that the name can be released.
func TestTransactTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, hundred)
		l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := b.acquire(t, l)
		ctx, cancel := context.WithCancel(lk.Context())
		cancel()
		if _, err := dynamostore.Transact(ctx, b.client, transfer("a", "b", "30")); !errors.Is(err, context.Canceled) || errors.As(err, new(*lock.StoreError)) {
			t.Errorf("error %v", err)
		}
		if err := lk.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
		b.acquire(t, l)
		b.wantBalances(t, "100", "100")
	})
}

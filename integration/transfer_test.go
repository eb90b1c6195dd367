package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestTransferExactlyOnce makes transfers between accounts on every server,
// over connections that lose a tenth of the requests and of the answers and
// delay another tenth, with holders that die and others that take over. Each is
// delivered again and again. The test of package dynamostore does more of this,
// in fake time.
func TestTransferExactlyOnce(t *testing.T) {
	const (
		parallel = 8
		opening  = 1_000_000
	)
	transfers := 400
	if testing.Short() {
		transfers = 40
	}
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			s := backend.start(t)
			client := newTable(t, s)
			openAccounts(t, client, opening)
			next := make(chan int, transfers)
			for i := range transfers {
				next <- i
			}
			close(next)
			want := map[string]int{"a": opening, "b": opening, "c": opening}
			var seen outcomes
			var wg sync.WaitGroup
			for range parallel {
				lossy, wait := newLossyWire(10)
				defer lossy.next.CloseIdleConnections()
				p := payer{client: newClient(s.Endpoint, lossy), seen: &seen}
				p.locker = newLocker(t, dynamostore.New(p.client, table), lock.Options{
					Lease: lock.FixedLease(crashLease), Grace: crashLease / 10, CompleteWithin: 5 * time.Second, // a holder that died is soon replaced
				})
				wg.Go(func() {
					for i := range next {
						p.deliver(t, i)
					}
					wait()
				})
			}
			wg.Wait()
			t.Log(&seen)
			for i := range transfers {
				from, to, amount := move(i)
				want[from] -= amount
				want[to] += amount
			}
			for account, balance := range want {
				if got := balanceOf(t, client, account); got != strconv.Itoa(balance) {
					t.Errorf("%s has %s, want %d", account, got, balance)
				}
			}
		})
	}
}

// move returns what a transfer does.
func move(i int) (from, to string, amount int) {
	names := []string{"a", "b", "c"}
	return names[i%3], names[(i+1+i/3%2)%3], 1 + i
}

// payer is a function that makes transfers.
type payer struct {
	client *dynamodb.Client
	locker *lock.Locker
	seen   *outcomes
}

// outcomes counts how deliveries ended.
type outcomes struct{ made, skipped, held, diedBefore, diedAfter, failed atomic.Int64 }

// String implements fmt.Stringer.
func (c *outcomes) String() string {
	made, skipped, held := c.made.Load(), c.skipped.Load(), c.held.Load()
	before, after, failed := c.diedBefore.Load(), c.diedAfter.Load(), c.failed.Load()
	return fmt.Sprintf("%d deliveries: %d made the transfer, %d skipped as completed, %d refused as held, %d died before and %d after the transaction, %d without an answer in time",
		made+skipped+held+before+after+failed, made, skipped, held, before, after, failed)
}

// deliver delivers a transfer until it is acknowledged, and then once more.
// Every fifth time, the holder dies before or after its transaction.
func (p payer) deliver(t *testing.T, i int) {
	acknowledged := 0
	for tries := 0; acknowledged < 2; tries++ {
		if tries == 50 {
			t.Errorf("transfer %d was not made after %d tries", i, tries)
			return
		}
		err := p.handle(t.Context(), i)
		switch {
		case err == nil:
			p.seen.made.Add(1)
			acknowledged++
		case errors.Is(err, lock.ErrCompleted):
			p.seen.skipped.Add(1)
			acknowledged++
		case errors.Is(err, lock.ErrHeld):
			p.seen.held.Add(1)
			_ = delayFor(t.Context(), 200*time.Millisecond)
		case errors.Is(err, errDiedBefore):
			p.seen.diedBefore.Add(1)
		case errors.Is(err, errDiedAfter):
			p.seen.diedAfter.Add(1)
		default:
			p.seen.failed.Add(1)
		}
	}
}

var (
	errDiedBefore = errors.New("the process died before its transaction")
	errDiedAfter  = errors.New("the process died after its transaction")
)

func (p payer) handle(ctx context.Context, i int) error {
	lk, err := p.locker.Acquire(ctx, lock.Key{Name: fmt.Sprint("transfer/", i), Event: strconv.Itoa(i)})
	if err != nil {
		return err
	}
	dies := rand.IntN(10)
	if dies == 0 {
		return errDiedBefore // and releases nothing
	}
	from, to, amount := move(i)
	if _, err = dynamostore.Transact(lk.Context(), p.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		changeBalance(from, "-", amount), changeBalance(to, "+", amount),
	}}); err != nil {
		return errors.Join(err, lk.Release())
	}
	if dies == 1 {
		return errDiedAfter
	}
	return nil
}

func changeBalance(account, operator string, amount int) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression: aws.String("SET balance = balance " + operator + " :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":amount": &types.AttributeValueMemberN{Value: strconv.Itoa(amount)},
		},
	}}
}

func openAccounts(t *testing.T, client *dynamodb.Client, balance int) {
	t.Helper()
	createTable(t, client, "accounts", "account")
	for _, account := range []string{"a", "b", "c"} {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: account}, "balance": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func balanceOf(t *testing.T, client *dynamodb.Client, account string) string {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: account}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := out.Item["balance"].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestTransferExactlyOnce makes transfers between accounts on every server,
// over connections that lose a tenth of the requests and of the answers, with
// holders that die and others that take over. Each is delivered again and
// again. The test of package dynamostore does more of this, in fake time.
func TestTransferExactlyOnce(t *testing.T) {
	const (
		transfers = 40
		parallel  = 8
		opening   = 1000
	)
	for _, backend := range backends {
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
			var wg sync.WaitGroup
			for range parallel {
				lossy := &lossyWire{next: newTransport()}
				t.Cleanup(lossy.next.CloseIdleConnections)
				p := payer{client: newClient(s.Endpoint, lossy)}
				p.locker = newLocker(t, dynamostore.New(p.client, table), lock.Options{
					Lease: lock.FixedLease(crashLease), Grace: crashLease / 10, CompleteWithin: 5 * time.Second, // a holder that died is soon replaced
				})
				wg.Go(func() {
					for i := range next {
						p.deliver(t, i)
					}
				})
			}
			wg.Wait()
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
		case errors.Is(err, lock.ErrCompleted), err == nil:
			acknowledged++
		case errors.Is(err, lock.ErrHeld):
			_ = delayFor(t.Context(), 200*time.Millisecond)
		}
	}
}

var errDied = errors.New("the process died")

func (p payer) handle(ctx context.Context, i int) error {
	lk, err := p.locker.Acquire(ctx, lock.Key{Name: fmt.Sprint("transfer/", i), Event: strconv.Itoa(i)})
	if err != nil {
		return err
	}
	dies := rand.IntN(10)
	if dies == 0 {
		return errDied // and releases nothing
	}
	from, to, amount := move(i)
	if _, err = dynamostore.Transact(lk.Context(), p.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		changeBalance(from, "-", amount), changeBalance(to, "+", amount),
	}}); err != nil {
		return errors.Join(err, lk.Release())
	}
	if dies == 1 {
		return errDied
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
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("accounts"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("account"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute("account")},
	})
	for _, account := range []string{"a", "b", "c"} {
		_, put := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: account}, "balance": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)},
		}})
		err = errors.Join(err, put)
	}
	if err != nil {
		t.Fatal(err)
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

// lossyWire loses every tenth request and every tenth answer.
type lossyWire struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (w *lossyWire) RoundTrip(r *http.Request) (*http.Response, error) {
	dice := rand.IntN(10)
	if dice == 0 {
		return nil, errConnectionLost
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil && dice == 1 {
		resp.Body.Close() // unread, so the connection is closed with it
		return nil, errConnectionLost
	}
	return resp, err
}

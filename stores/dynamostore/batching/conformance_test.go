package batching_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// paired sends each request of the suite that comes alone together with one for
// another name.
type paired struct{ *dynamostore.Store }

func (p paired) together(ctx context.Context, request func(context.Context)) {
	if invocation.BatchOf(ctx) != nil {
		request(ctx)
		return
	}
	company(ctx, request, func(ctx context.Context) {
		_, _, _ = p.Store.Acquire(ctx, claimOf(fmt.Sprint("neighbour/", time.Now().UnixNano())))
	})
}

// Acquire implements driver.Store.
func (p paired) Acquire(ctx context.Context, c *driver.Claim) (row driver.Row, ok bool, err error) {
	p.together(ctx, func(ctx context.Context) { row, ok, err = p.Store.Acquire(ctx, c) })
	return row, ok, err
}

// Settle implements driver.Store.
func (p paired) Settle(ctx context.Context, s *driver.Settlement) (row driver.Row, ok bool, err error) {
	p.together(ctx, func(ctx context.Context) { row, ok, err = p.Store.Settle(ctx, s) })
	return row, ok, err
}

func TestConformanceInCompany(t *testing.T) {
	for name, c := range map[string]struct {
		fault    fakedynamo.Fault
		noDetail bool
	}{"server": {}, "server without old items": {fakedynamo.OmitItem, true}} {
		t.Run(name, func(t *testing.T) {
			server := fakedynamo.New()
			client := clientOf(server)
			expect.Must(t, dynamostore.EnsureTable(t.Context(), client, table))
			server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			keyOf := func(name string) map[string]types.AttributeValue {
				return map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}}
			}
			locktest.Run(t, locktest.Harness{
				NoDetail: c.noDetail,
				Open:     func(*testing.T) driver.Store { return paired{dynamostore.New(batching.Client(client), table)} },
				MakeNewer: func(t *testing.T, _ driver.Store, name string) {
					expect.Value(client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
						TableName: aws.String(table), Key: keyOf(name), UpdateExpression: aws.String("SET rowFormat = :one"),
						ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
					}))(t)
				},
				Save: func(t *testing.T, _ driver.Store, name string) func() {
					item := keyOf(name)
					maps.Copy(item, expect.Value(client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: keyOf(name)}))(t).Item)
					return func() {
						expect.Value(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item}))(t)
					}
				},
			})
		})
	}
}

// TestSimulationInCompany plays histories with a store that sends each request
// together with another one. A seed need not replay exactly, because nothing
// decides which of the two is the first in the request.
func TestSimulationInCompany(t *testing.T) { // F1 to F6, F9, F14, F18 to F21, F44
	t.Parallel()
	c := simulation.Config{Histories: 20, Share: 10}
	if testing.Short() {
		c.Histories = 2
	}
	simulation.Faults(t, func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		server := fakedynamo.New()
		client := func(id uint64) *dynamodb.Client {
			return clientOver(&fault.Transport{Next: fault.InProcess{Handler: server}, Dialect: fault.DynamoDB, Plan: h.Plan(id), Late: h.Late})
		}
		expect.Must(t, dynamostore.EnsureTable(context.Background(), client(simulation.Watcher), table))
		return func(id uint64) driver.Store { return paired{dynamostore.New(batching.Client(client(id)), table)} }
	}, c)
}

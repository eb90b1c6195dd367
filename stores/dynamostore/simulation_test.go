package dynamostore_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

func openTable(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	return openTableOf(t, h, fakedynamo.New())
}

// openTableOf opens a table of an embedded endpoint. Each request of the SDK
// meets faults of its own.
func openTableOf(t *testing.T, h *simulation.History, server http.Handler) func(uint64) driver.Store {
	client := func(id uint64) *dynamodb.Client {
		return clientOver(&fault.Transport{Next: fault.InProcess{Handler: server}, Dialect: fault.DynamoDB, Plan: h.Plan(id), Late: h.Late})
	}
	expect.Must(t, dynamostore.EnsureTable(context.Background(), client(simulation.Watcher), "locks"))
	return func(id uint64) driver.Store { return dynamostore.New(client(id), "locks") }
}

func TestSimulation(t *testing.T) { // F1 to F6, F9, F14, F18 to F21, F44
	t.Parallel()
	simulation.Run(t, openTable, simulation.Config{Histories: 20, Share: 10})
}

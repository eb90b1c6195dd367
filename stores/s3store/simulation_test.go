package s3store_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// openService opens S3 in this process. Each request of the SDK meets faults
// of its own: a step of the store takes up to eight.
func openService(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
	server := startServer(bucket)
	return func(client uint64) driver.Store {
		transport := &fault.Transport{Next: server, Dialect: fault.S3, Plan: h.Plan(client), Late: h.Late}
		return s3store.New(server.client(func(o *s3.Options) {
			o.HTTPClient = &http.Client{Transport: transport}
		}), bucket, "locks")
	}
}

func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	simulation.Run(t, openService, simulation.Config{Histories: 10, Share: 20, ServerClock: true})
}

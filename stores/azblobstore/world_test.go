package azblobstore_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/fakeblob"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
)

// openService opens Azure in this process. Each request of the SDK meets faults
// of its own: a step of the store takes up to eight.
func openService(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	service := fakeblob.New()
	return func(client uint64) driver.Store {
		options := &container.ClientOptions{}
		options.Transport = &http.Client{Transport: &fault.Transport{
			Next: fault.InProcess{Handler: service}, Dialect: fault.Azure, Plan: h.Plan(client), Late: h.Late,
		}}
		c, err := container.NewClientWithNoCredential("https://account.blob.core.windows.net/c", options)
		if err != nil {
			t.Fatal(err)
		}
		return azblobstore.New(c, "locks")
	}
}

// TestSimulation runs whole invocations over Azure in this process.
func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F43, F44
	simulation.Run(t, openService, simulation.Config{Histories: simulation.Tenth(20), Share: 20, ServerClock: true}).MustVary(t)
}

// TestSimulationOfClocks lets the clients' clocks be hours apart: only the
// service's counts.
func TestSimulationOfClocks(t *testing.T) { // F14
	simulation.Run(t, openService, simulation.Config{Histories: simulation.Tenth(20), Share: 20, ServerClock: true, Skew: 10 * time.Hour})
}

func TestCrowd(t *testing.T) {
	simulation.Crowd(t, openService, simulation.Config{Histories: 2, Share: 100})
}

// TestSimulationIsItsSeed shows that a seed brings the same history back.
func TestSimulationIsItsSeed(t *testing.T) {
	simulation.Twice(t, openService, simulation.Config{Histories: 2, Share: 100, ServerClock: true, Skew: 10 * time.Hour})
}

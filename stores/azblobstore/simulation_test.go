package azblobstore_test

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
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
		c := expect.Value(container.NewClientWithNoCredential("https://account.blob.core.windows.net/c", options))(t)
		return azblobstore.New(c, "locks")
	}
}

func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F43, F44
	simulation.Run(t, openService, simulation.Config{Histories: 20, Share: 20, ServerClock: true})
}

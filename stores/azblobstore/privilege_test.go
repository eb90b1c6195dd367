package azblobstore_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
)

// TestCallsAreThoseShipped runs the conformance suite and checks that its
// requests need the data actions that STORES.md names, and no others.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
func TestCallsAreThoseShipped(t *testing.T) { // F40
	service := azuretest.NewFake()
	client := service.Container()
	store := azblobstore.New(client, "locks/")
	t.Run("suite", func(t *testing.T) {
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return store }, Advance: service.Advance})
	})
	expect.Must(t, store.Check(t.Context()))
	actions := map[string]string{"get": "blobs/read", "list": "blobs/read", "put": "blobs/write"}
	var needed []string
	for _, op := range service.Requests() {
		action, ok := actions[op]
		if !ok {
			t.Fatalf("a request %q, which needs another action", op)
		}
		if !slices.Contains(needed, action) {
			needed = append(needed, action)
		}
	}
	slices.Sort(needed)
	text := expect.Value(os.ReadFile("../../docs/STORES.md"))(t)
	if want := "with the data actions `" + strings.Join(needed, "` and `") + "`"; !strings.Contains(string(text), want) {
		t.Errorf("STORES.md does not say %q", want)
	}
}

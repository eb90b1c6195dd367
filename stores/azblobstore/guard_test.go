package azblobstore_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// at returns the blobs of a service with another address.
func at(t *testing.T, address string, s *azuretest.Fake) objectstore.Objects {
	client := expect.Value(container.NewClientWithNoCredential(address, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: s}}))(t)
	return azblobstore.NewObjects(client, "")
}

func TestServerIsProbed(t *testing.T) {
	t.Parallel()
	for address, probed := range map[string]bool{
		"https://a.blob.core.windows.net/c":         false,
		"https://a.z7.blob.storage.azure.net/c":     false,
		"https://a.blob.core.chinacloudapi.cn/c":    false,
		"https://a.blob.core.usgovcloudapi.net/c":   false,
		"http://127.0.0.1:10000/account/c":          true,
		"https://blobs.example.com/account/c":       true,
		"https://core.windows.net.example.com/a/c":  true,
		"https://a.blob.core.windows.net.evil/ac/c": true,
	} {
		f := azuretest.NewFake()
		o := at(t, address, f)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { _, _ = o.Put(t.Context(), string(rune('a'+i)), nil, "") })
		}
		wg.Wait()
		if n := len(f.Requests()); n != 4 && !probed || n != 44 && probed {
			t.Errorf("%s: %d requests", address, n)
		}
	}
}

func TestServerIgnoresConditions(t *testing.T) {
	t.Parallel()
	f := azuretest.NewFake()
	f.Blind = true
	o := at(t, "http://127.0.0.1:10000/account/c", f)
	for range 2 {
		if _, err := o.Put(t.Context(), "k", nil, ""); !errors.As(err, new(*driver.ConfigError)) {
			t.Errorf("got %v, want a *driver.ConfigError", err)
		}
	}
	f.Blind = false
	if _, err := o.Put(t.Context(), "k", nil, ""); err != nil {
		t.Errorf("the server was mended: %v", err)
	}
}

// TestCheck probes a server that may ignore conditions, and only that.
func TestCheck(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int{"https://a.blob.core.windows.net/c": 0, "http://127.0.0.1:10000/account/c": 40} {
		f := azuretest.NewFake()
		o := at(t, address, f)
		for range 2 {
			if err := o.(driver.Checker).Check(t.Context()); err != nil || len(f.Requests()) != want {
				t.Errorf("%s: %d requests, error %v, want %d", address, len(f.Requests()), err, want)
			}
		}
	}
}

// TestProbeIsRepeated: a probe without an answer proves nothing.
func TestProbeIsRepeated(t *testing.T) {
	t.Parallel()
	f := azuretest.NewFake()
	o := at(t, "http://127.0.0.1:10000/account/c", f)
	f.Plan.Plan(http.MethodPut, fault.DropBefore, fault.DropBefore, fault.DropBefore, fault.DropBefore)
	if _, err := o.Put(t.Context(), "k", nil, ""); err == nil {
		t.Error("a put whose probe had no answer was sent")
	}
	if _, err := o.Put(t.Context(), "k", nil, ""); err != nil || !slices.Contains(f.Requests(), "get") {
		t.Errorf("the next put: %v", err)
	}
}

// TestProbeIsWaitedFor: the first put's probe hangs, the second gives up, the
// third probes in its turn, and the fourth need not any more.
func TestProbeIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := azuretest.NewFake()
		o := at(t, "http://127.0.0.1:10000/account/c", f)
		f.Plan.Plan(http.MethodPut, fault.Hang, fault.Hang, fault.Hang, fault.Hang)
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i, patience := range []time.Duration{2 * time.Second, time.Second, time.Hour, time.Hour} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, errs[i] = o.Put(ctx, string(rune('a'+i)), nil, "")
			})
			synctest.Wait()
		}
		wg.Wait()
		for i, fails := range []bool{true, true, false, false} {
			if (errs[i] != nil) != fails || fails && !errors.Is(errs[i], context.DeadlineExceeded) {
				t.Errorf("put %d: %v", i, errs[i])
			}
		}
		if n := len(f.Requests()); n != 40+2 { // the first race did not arrive
			t.Errorf("%d requests, want 42: %v", n, f.Requests())
		}
	})
}

// Package azuretest has the services on which the tests of this module run.
package azuretest

import (
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/fakeblob"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

// Service is a container of its own for a test.
type Service struct {
	*container.Client
	Advance func(time.Duration) // moves the clock that clients see
	Pass    func(time.Duration) // lets time pass for leases too
}

// OnServices runs a test on the fake, and on Azurite if LAMBDALOCK_AZURITE has
// its endpoint, such as http://127.0.0.1:10000/devstoreaccount1. So both give
// the same answers.
func OnServices(t *testing.T, test func(*testing.T, *Service)) {
	t.Run("fake", func(t *testing.T) {
		f := NewFake()
		test(t, &Service{Client: f.Container(), Advance: f.Advance, Pass: f.Advance})
	})
	t.Run("Azurite", func(t *testing.T) {
		endpoint := os.Getenv("LAMBDALOCK_AZURITE")
		if endpoint == "" {
			t.Skip("LAMBDALOCK_AZURITE, the endpoint of an Azurite, is not set")
		}
		t.Parallel()
		test(t, azurite(t, endpoint))
	})
}

// Fake is Azure in this process, and a transport to it. Requests meet the
// faults of a plan.
type Fake struct {
	*fakeblob.Service
	Plan fault.Script

	mu      sync.Mutex
	instead map[string]Transport
}

// NewFake returns Azure without blobs.
func NewFake() *Fake { return &Fake{Service: fakeblob.New(), instead: map[string]Transport{}} }

// Do implements policy.Transporter.
func (f *Fake) Do(r *http.Request) (*http.Response, error) {
	op := fault.Azure.Op(r)
	f.mu.Lock()
	answer := f.instead[op]
	delete(f.instead, op)
	f.mu.Unlock()
	if answer != nil {
		return answer(r)
	}
	client := &http.Client{Transport: &fault.Transport{Next: fault.InProcess{Handler: f}, Dialect: fault.Azure, Plan: &f.Plan, Late: &fault.Kept{}}}
	return client.Do(r)
}

// Next has the next request of an operation answered in place of the service.
func (f *Fake) Next(op string, answer Transport) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead[op] = answer
}

// Container returns a client of the container that the service has.
func (f *Fake) Container() *container.Client {
	options := &container.ClientOptions{}
	options.Transport = f
	options.Retry = policy.RetryOptions{RetryDelay: time.Hour} // a retry by the SDK would be noticed
	c, err := container.NewClientWithNoCredential("https://fake.blob.core.windows.net/c", options)
	if err != nil {
		panic(err)
	}
	return c
}

// The account and the key that every Azurite has.
// https://learn.microsoft.com/azure/storage/common/storage-use-azurite
const (
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

func azurite(t *testing.T, endpoint string) *Service {
	credential, err := container.NewSharedKeyCredential(azuriteAccount, azuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	s := &shifted{written: map[string]time.Duration{}}
	client, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+strings.ToLower(rand.Text()), credential,
		&container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		t.Fatalf("Azurite at %s: %v", endpoint, err)
	}
	return &Service{Client: client, Advance: s.advance, Pass: time.Sleep}
}

// shifted is a transport that moves the clock of a service. It cannot move the
// clock that ends leases.
type shifted struct {
	mu      sync.Mutex
	offset  time.Duration
	written map[string]time.Duration // the offset when a blob was written, by path and ETag
}

func (s *shifted) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

func (s *shifted) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	blob := r.URL.Path + " " + answer.Header.Get("ETag")
	if r.Method == http.MethodPut && answer.StatusCode == http.StatusCreated {
		s.written[blob] = s.offset
	}
	written, known := s.written[blob]
	if !known { // it was written just now, and the writer has no answer yet
		written = s.offset
	}
	for name, offset := range map[string]time.Duration{"Date": s.offset, "Last-Modified": written} {
		if t, err := http.ParseTime(answer.Header.Get(name)); err == nil {
			answer.Header.Set(name, t.Add(offset).Format(http.TimeFormat))
		}
	}
	return answer, nil
}

// Transport is a client's transport that answers as it is told.
type Transport func(*http.Request) (*http.Response, error)

// Do implements policy.Transporter.
func (t Transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// Answering returns a transport whose every answer is that one.
func Answering(status int, code, message string) Transport {
	return func(r *http.Request) (*http.Response, error) {
		header := http.Header{"X-Ms-Error-Code": {code}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(message)), Request: r}, nil
	}
}

package delivery_test

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// opener makes what the locks of a history are kept in, and returns how an
// environment opens it.
type opener func(*testing.T) func() driver.Store

func inMemory(*testing.T) func() driver.Store {
	s := memstore.New()
	return func() driver.Store { return s }
}

// inDynamoDB keeps the locks in a table of the embedded endpoint.
func inDynamoDB(t *testing.T) func() driver.Store {
	const table = "locks"
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: &http.Client{Transport: fault.InProcess{Handler: fakedynamo.New()}},
		BaseEndpoint: aws.String("http://localhost"), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	expect.Must(t, dynamostore.EnsureTable(t.Context(), client, table))
	return func() driver.Store { return dynamostore.New(client, table) }
}

// inObjects keeps the locks in objects. Each environment remembers what it
// knows of them.
func inObjects(*testing.T) func() driver.Store {
	b := &shelf{objects: map[string]objectstore.Object{}}
	return func() driver.Store { return objectstore.New(b) }
}

// shelf is a service of objects whose clock is right and shows whole seconds.
type shelf struct {
	mu      sync.Mutex
	objects map[string]objectstore.Object
	writes  int
}

func (*shelf) String() string { return "shelf" }

func (*shelf) now() time.Time { return time.Now().Truncate(time.Second) }

func (b *shelf) Get(_ context.Context, key string) (objectstore.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return o, objectstore.ErrNotExist
	}
	o.Body, o.Now = slices.Clone(o.Body), b.now()
	return o, nil
}

func (b *shelf) Put(_ context.Context, key string, body []byte, version string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects[key].Version != version {
		return "", objectstore.ErrChanged
	}
	b.writes++
	o := objectstore.Object{Body: slices.Clone(body), Version: strconv.Itoa(b.writes), Modified: b.now()}
	b.objects[key] = o
	return o.Version, nil
}

func (b *shelf) Keys(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		b.mu.Lock()
		keys := slices.Collect(maps.Keys(b.objects))
		b.mu.Unlock()
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

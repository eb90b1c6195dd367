package integration_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	region = "eu-central-1"
	table  = "locks"
)

// tableServers are the servers of DynamoDB, for tests of what only that store
// has. All others run on backends. [useAccount] replaces both.
var tableServers = []tableServer{
	{"embedded", embedded},
	{"dynoxide", servers.Dynoxide},
	{"DynamoDBLocal", servers.DynamoDBLocal},
}

type tableServer struct {
	name  string
	start func(testing.TB) servers.Server
}

// embedded serves the module's own endpoint on loopback, so that other
// processes reach it like any other server.
func embedded(tb testing.TB) servers.Server {
	srv := httptest.NewServer(fakedynamo.New())
	tb.Cleanup(srv.Close)
	return servers.Server{Name: "embedded endpoint", Endpoint: srv.URL}
}

// embeddedElsewhere serves the endpoint in a process of its own.
func embeddedElsewhere(tb testing.TB) servers.Server {
	s := servers.Server{Name: "embedded endpoint"}
	c := startChild(tb, "serve", task{Who: s.Name})
	tb.Cleanup(func() {
		_ = c.stdin.Close()
		_ = c.cmd.Wait()
	})
	c.read(&s.Endpoint)
	return s
}

// serve is the part of that process. It ends with its parent.
func serve(task) error {
	srv := httptest.NewServer(fakedynamo.New())
	defer srv.Close()
	if err := json.NewEncoder(os.Stdout).Encode(srv.URL); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// newTransport keeps idle connections as the library's own client does. It
// opens at most 40, because the kernel resets some of more than 50 that a
// server written in Java (its backlog) has not accepted yet.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 64, 40
	return t
}

// newClient returns a client with the settings of the library's own, through
// rt.
func newClient(endpoint string, rt http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       region,
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient:   plainBodies{http.Client{Transport: rt}},
		Retryer:      aws.NopRetryer{},
	})
}

// plainBodies hides that a request's body can write itself. The SDK closes the
// body once the answer has begun; a transport that looks for its end only then
// gives up the connection (https://github.com/aws/smithy-go/pull/218). The
// tests that call a store without package lock would see that.
type plainBodies struct{ http.Client }

// Do implements the SDK's HTTPClient.
func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Client.Do(r)
}

// newTable creates the lock table and returns a client for it.
func newTable(tb testing.TB, s servers.Server) *dynamodb.Client {
	tb.Helper()
	rt := newTransport()
	tb.Cleanup(rt.CloseIdleConnections)
	client := newClient(s.Endpoint, rt)
	if err := dynamostore.EnsureTable(tb.Context(), client, table); err != nil {
		tb.Fatalf("%s: %v", s.Name, err)
	}
	return client
}

// createTable creates a table with a key of type String, and waits until it can
// be used.
func createTable(tb testing.TB, client *dynamodb.Client, name, key string, tags ...types.Tag) {
	tb.Helper()
	_, err := client.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, Tags: tags,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute(key)},
	})
	if err == nil {
		err = dynamodb.NewTableExistsWaiter(client).Wait(tb.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

var discard = slog.New(slog.DiscardHandler)

func newLocker(tb testing.TB, store driver.Store, o lock.Options) *lock.Locker {
	tb.Helper()
	o.Logger = discard
	l, err := lock.New(store, &o)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

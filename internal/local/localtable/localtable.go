// Package localtable gives a function that runs locally its lock table: an
// embedded one on a DynamoDB-compatible endpoint on the loopback interface, or
// one in the AWS account that this process uses.
package localtable

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Table is a lock table for the functions that this process starts.
type Table struct {
	// URL is the address of an embedded table's endpoint.
	URL string
	// Client asks the table's endpoint as this process.
	Client *dynamodb.Client
	// Env is what a process needs in its environment to use the table, except the
	// credentials of an account.
	Env []string
	// Credentials returns the variables with which Lambda gives a process its
	// credentials. They may expire, so each process should get those of its own
	// start. Nil: they are in Env.
	Credentials func() ([]string, error)

	server *http.Server // nil: the table is not embedded
	claims claims
}

// Start serves an endpoint that holds one empty lock table, and keeps the
// Claims of each invocation until they are asked for.
func Start(ctx context.Context, name string) (*Table, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lambdalock: serve a local lock table: %w", err)
	}
	t := &Table{claims: claims{of: map[string][]fakedynamo.Update{}}}
	return t, t.serve(ctx, listener, name, t.claims.note)
}

// Serve is like Start, but on a listener, which Close closes, and keeps no
// Claims.
func Serve(ctx context.Context, listener net.Listener, name string) (*Table, error) {
	t := &Table{}
	return t, t.serve(ctx, listener, name, nil)
}

// serve creates the table, unless its name is none, and then serves it.
func (t *Table) serve(ctx context.Context, listener net.Listener, name string, note func(fakedynamo.Update)) error {
	address := listener.Addr().String()
	if host, port, _ := net.SplitHostPort(address); net.ParseIP(host).IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	t.URL = "http://" + address
	endpoint := fakedynamo.New()
	endpoint.OnUpdate = note
	t.server = &http.Server{Handler: endpoint, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = t.server.Serve(listener) }() // ends with Close
	t.Client = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(t.URL),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	t.Env = append(variables(t.Client, name), "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=")
	if err := dynamostore.EnsureTable(ctx, t.Client, name); err != nil {
		t.Close()
		return err
	}
	return nil
}

// InAccount returns the table of that name in the account and the Region of a
// client, whether or not the table exists.
func InAccount(client *dynamodb.Client, name string) *Table {
	return &Table{
		Client: client, Env: variables(client, name),
		Credentials: func() ([]string, error) { return retrieve(client) },
	}
}

// variables returns what a process needs in its environment to find a table.
func variables(client *dynamodb.Client, name string) []string {
	o := client.Options()
	env := []string{dynamostore.TableVariable + "=" + name, "AWS_REGION=" + o.Region}
	if o.BaseEndpoint != nil {
		env = append(env, "AWS_ENDPOINT_URL_DYNAMODB="+*o.BaseEndpoint)
	}
	return env
}

func retrieve(client *dynamodb.Client) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a program may ask for a fingerprint
	defer cancel()
	c, err := client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return []string{
		"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken,
	}, nil
}

// Close ends the endpoint of an embedded table, which is gone then.
func (t *Table) Close() {
	if t.server != nil {
		_ = t.server.Close()
	}
}

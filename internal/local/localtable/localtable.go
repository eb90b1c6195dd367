// Package localtable gives local runs a lock table: one without AWS, on an embedded
// DynamoDB-compatible endpoint on the loopback interface, or one of the account that
// this process uses.
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

// Table is a lock table on an endpoint of its own.
type Table struct {
	// URL is the endpoint's address.
	URL string
	// Env is what a process needs in its environment to use the table.
	Env    []string
	server *http.Server
	watch  *watch
}

// Start serves an endpoint that holds one empty lock table.
func Start(ctx context.Context, name string) (*Table, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lambdalock: serve a local lock table: %w", err)
	}
	t := &Table{URL: "http://" + listener.Addr().String(), watch: &watch{next: fakedynamo.New(), asked: map[string]map[string]*tries{}}}
	t.server = &http.Server{Handler: t.watch, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = t.server.Serve(listener) }() // ends with Close
	t.Env = []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + t.URL, dynamostore.TableVariable + "=" + name,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=",
	}
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(t.URL),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	if err := dynamostore.EnsureTable(ctx, client, name); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close ends the endpoint; the table is gone with it.
func (t *Table) Close() { _ = t.server.Close() }

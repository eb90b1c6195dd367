package commandtest

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Table is a lock table on the loopback interface that fails on demand.
type Table struct {
	*fakedynamo.Server
	Store *dynamostore.Store
	URL   string
	Env   []string // with which a command uses the table
	Close func()   // lets it answer no more
}

// NewTable returns an empty lock table.
func NewTable(t *testing.T, name string) *Table {
	t.Helper()
	s := fakedynamo.New()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	if err := dynamostore.EnsureTable(t.Context(), client, name); err != nil {
		t.Fatal(err)
	}
	return &Table{
		Server: s, Store: dynamostore.New(client, name), URL: server.URL, Close: server.Close,
		Env: []string{
			"AWS_ENDPOINT_URL_DYNAMODB=" + server.URL, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
			"LAMBDALOCK_STORE=", "LOCK_NAMESPACE=", "LOCK_TABLE_NAME=" + name,
		},
	}
}

package dynamostore

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TableVariable is the environment variable that names the table of [Open] and,
// by default, of package middleware.
const TableVariable = "LOCK_TABLE_NAME"

// credentialsTimeout bounds the search for credentials outside Lambda, where
// the last place to look is a metadata service that may not exist.
const credentialsTimeout = 2 * time.Second

// Open returns a Store with its own client, made from the default AWS
// configuration. An empty table means the one named in LOCK_TABLE_NAME. The
// error is a [*driver.ConfigError] if there is no table name, no Region or no
// credentials, and a temporary [*driver.Error] if the credentials do not come
// before ctx ends, or within 2 s.
func Open(ctx context.Context, table string) (*Store, error) {
	if table == "" {
		table = os.Getenv(TableVariable)
	}
	if table == "" {
		return nil, &driver.ConfigError{Reason: "no lock table: set the environment variable " + TableVariable + " to the table's name, or use middleware.Store(middleware.DefaultStore(table)); in a test, use middleware.Store(memstore.New())"}
	}
	client, err := NewClient(ctx)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, table: table}, nil
}

// NewClient returns a client with the same configuration as Open's, for
// [EnsureTable] and for clients in front of it, such as package batching's.
func NewClient(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(httpClient()))
	if err != nil {
		return nil, &driver.ConfigError{Reason: "the AWS configuration cannot be read", Err: err}
	}
	if cfg.Region == "" {
		return nil, &driver.ConfigError{Reason: "no AWS Region: set AWS_REGION"}
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	_, err = cfg.Credentials.Retrieve(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // they may be there, but not yet
		return nil, &driver.Error{
			Store: "DynamoDB", Unapplied: true, Err: err,
			Hint: "the AWS credentials did not come in time: if there are none, set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; if they come from a program or a role that is assumed, raise the function's timeout",
		}
	case err != nil:
		return nil, &driver.ConfigError{Reason: "no AWS credentials: in Lambda the function's role provides them, elsewhere set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", Err: err}
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), nil
}

// httpClient keeps as many idle connections as a batch has locks in flight.
// With the SDK's default of 10, the others would connect again, each with a TLS
// handshake.
func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64
	})
}

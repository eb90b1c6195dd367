package storeurl

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// credentialsTimeout bounds the search for credentials, where the last place to
// look is a metadata service that may not exist.
const credentialsTimeout = 2 * time.Second

// serviceTimeout is how long a service that keeps no locks may take to answer.
const serviceTimeout = 10 * time.Second

// tableName is the name of a table, or its ARN.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
var tableName = regexp.MustCompile(`^(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/)?[A-Za-z0-9_.-]{3,255}$`)

func openDynamoDB(ctx context.Context, rest string) (driver.Store, error) {
	client, table, err := dynamoDB(ctx, rest)
	if err != nil {
		return nil, err
	}
	return dynamostore.New(client, table), nil
}

// DynamoDB returns a client and the name of the table that the URL names. The
// error is a *driver.ConfigError, also if the URL is that of another store.
func DynamoDB(ctx context.Context, text string) (*dynamodb.Client, string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if !strings.EqualFold(scheme, "dynamodb") {
		return nil, "", wrong("the store's URL names no table, but %q: write dynamodb://TABLE", scheme+"://")
	}
	return dynamoDB(ctx, rest)
}

func dynamoDB(ctx context.Context, rest string) (*dynamodb.Client, string, error) {
	table, query, _ := strings.Cut(rest, "?")
	table = strings.TrimSuffix(table, "/")
	switch {
	case table == "":
		return nil, "", wrong("the store's URL names no table: write dynamodb://TABLE")
	case strings.Contains(table, "@"):
		return nil, "", wrong("the store's URL has credentials: leave them out, and set AWS_PROFILE or the other AWS variables")
	case !tableName.MatchString(table):
		return nil, "", wrong("%q is not the name of a DynamoDB table: write dynamodb://TABLE, and the Region as ?region=REGION", table)
	}
	p, err := parse(query, "region", "endpoint")
	if err != nil {
		return nil, "", err
	}
	cfg, err := awsConfig(ctx, p)
	if err != nil {
		return nil, "", err
	}
	return dynamodb.NewFromConfig(cfg), table, nil
}

// OfTable returns the URL of a table in a Region. It has the endpoint of
// another URL, if that is of DynamoDB too. The error is a *driver.ConfigError:
// what is not the name of a table might be more of a URL.
func OfTable(table, region, other string) (string, error) {
	if !tableName.MatchString(table) {
		return "", wrong("%q is not the name of a DynamoDB table", table)
	}
	values := url.Values{"region": {region}}
	if endpoint := tableParameters(other).Get("endpoint"); endpoint != "" {
		values.Set("endpoint", endpoint)
	}
	return "dynamodb://" + table + "?" + values.Encode(), nil
}

// Region returns the Region in the URL of a table, or "" if it has none.
func Region(text string) string { return tableParameters(text).Get("region") }

// tableParameters returns the parameters in the URL of a table. A malformed one
// has none, which Open reports.
func tableParameters(text string) url.Values {
	scheme, rest, _ := strings.Cut(text, "://")
	_, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil || !strings.EqualFold(scheme, "dynamodb") {
		return nil
	}
	return values
}

// AWS returns the configuration for other services of AWS in a Region, or in
// its own one if region is empty. The error is a *driver.ConfigError.
func AWS(ctx context.Context, region string) (aws.Config, error) {
	cfg, err := awsConfig(ctx, parameters{"region": region})
	cfg.Retryer = func() aws.Retryer { return retry.NewStandard() }
	cfg.HTTPClient = awshttp.NewBuildableClient().WithTimeout(serviceTimeout)
	return cfg, err
}

// awsConfig returns the default configuration with the URL's Region and
// endpoint. The engine repeats requests, so the SDK does not.
func awsConfig(ctx context.Context, p parameters) (aws.Config, error) {
	if err := checkEndpoint(p["endpoint"]); err != nil {
		return aws.Config{}, err
	}
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient()),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	}
	if p["region"] != "" {
		options = append(options, config.WithRegion(p["region"]))
	}
	if p["endpoint"] != "" {
		options = append(options, config.WithBaseEndpoint(p["endpoint"]))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, &driver.ConfigError{Reason: "the AWS configuration cannot be read", Err: err}
	}
	if cfg.Region == "" {
		return aws.Config{}, wrong("no AWS Region: set AWS_REGION, or add ?region=REGION to the store's URL")
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, &driver.ConfigError{Reason: "no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", Err: err}
	}
	return cfg, nil
}

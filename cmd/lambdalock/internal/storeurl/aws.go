package storeurl

import (
	"cmp"
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

// serviceTimeout is how long a service that keeps no locks may take to answer.
const serviceTimeout = 10 * time.Second

// tableName is the name of a table, or its ARN.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
var tableName = regexp.MustCompile(`^(?:arn:[a-z-]+:dynamodb:([a-z0-9-]+):[0-9]+:table/)?[A-Za-z0-9_.-]{3,255}$`)

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
	// A request to another Region does not find the table of an ARN.
	switch region := regionOf(table); {
	case region == "":
	case p["region"] == "":
		p["region"] = region
	case p["region"] != region:
		return nil, "", wrong("the ARN of the table is of %s, and the store's URL has ?region=%s: leave that out", region, p["region"])
	}
	cfg, err := awsConfig(ctx, p)
	if err != nil {
		return nil, "", err
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = p.endpoint(o.BaseEndpoint) }), table, nil
}

// regionOf returns the Region in the ARN of a table, or "" of a name.
func regionOf(table string) string {
	if parts := tableName.FindStringSubmatch(table); parts != nil {
		return parts[1]
	}
	return ""
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
func Region(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	table, _, _ := strings.Cut(rest, "?")
	return cmp.Or(tableParameters(text).Get("region"), regionOf(strings.TrimSuffix(table, "/")))
}

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

// awsConfig returns the default configuration with the URL's Region. The engine
// repeats requests, so the SDK does not. The URL's endpoint is for the client
// of the store: credentials come from elsewhere.
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
	return load(ctx, options...)
}

// endpoint returns the URL's endpoint, or another one if it has none.
func (p parameters) endpoint(other *string) *string {
	if e, ok := p["endpoint"]; ok {
		return &e
	}
	return other
}

package dynamostore_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// put writes to the row of key by hand.
func put(t *testing.T, f *fixture, key, update string) {
	t.Helper()
	values := map[string]types.AttributeValue{}
	for name, v := range map[string]types.AttributeValue{
		":one":  &types.AttributeValueMemberN{Value: "1"},
		":huge": &types.AttributeValueMemberN{Value: "12345678901234567890"},
		":time": &types.AttributeValueMemberS{Value: "9999-11-21T08:15:30.000000Z"},
	} {
		if strings.Contains(update, name) {
			values[name] = v
		}
	}
	expect.Value(f.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: key}},
		UpdateExpression: &update, ExpressionAttributeValues: values,
	}))(t)
}

func TestEnsureTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t) // which has called EnsureTable
	if err := dynamostore.EnsureTable(t.Context(), f.client, table); err != nil {
		t.Errorf("a second call: %v", err)
	}
	ttl, err := f.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "deleteAfter" {
		t.Errorf("TTL: %+v, %v", ttl, err)
	}
}

// TestEnsureTableTwiceAtOnce shows that it makes no difference whether another
// process ensures the same table, also between the requests.
func TestEnsureTableTwiceAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := dynamostore.EnsureTable(t.Context(), atOnce{f.client}, "at-once"); err != nil {
		t.Error(err)
	}
	if err := dynamostore.EnsureTable(t.Context(), enabling{f.client}, table); err != nil {
		t.Errorf("while the TTL is being enabled: %v", err)
	}
}

// atOnce is a client that is slower than another one.
type atOnce struct{ *dynamodb.Client }

func (c atOnce) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	out, err := c.Client.DescribeTimeToLive(ctx, in, options...)
	return out, cmp.Or(err, dynamostore.EnsureTable(ctx, c.Client, *in.TableName))
}

// enabling is a client of a server that takes its time to enable a TTL.
type enabling struct{ *dynamodb.Client }

func (c enabling) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	out, err := c.Client.DescribeTimeToLive(ctx, in, options...)
	if err == nil && out.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		out.TimeToLiveDescription.TimeToLiveStatus = types.TimeToLiveStatusEnabling
	}
	return out, err
}

func TestEnsureTableRefusesOtherTables(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	createTable(t, f, "other-key", "id")
	createTable(t, f, "other-ttl", "lock")
	expect.Value(f.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("other-ttl"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	}))(t)
	for name, c := range map[string]struct {
		client dynamostore.TableClient
		within string
	}{
		"other-key":           {f.client, "partition key"},
		"sort-key":            {withSortKey{f.client}, "no sort key"},
		"other-ttl":           {f.client, `"ttl"`},
		"other-ttl, enabling": {enabling{f.client}, `"ttl"`},
	} {
		t.Run(name, func(t *testing.T) {
			table, _, _ := strings.Cut(name, ",")
			if err := dynamostore.EnsureTable(t.Context(), c.client, table); !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), c.within) {
				t.Errorf("got %v, want a ConfigError that says %q", err, c.within)
			}
		})
	}
}

// withSortKey is a client whose tables have a sort key.
type withSortKey struct{ *dynamodb.Client }

func (c withSortKey) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.Client.DescribeTable(ctx, in, options...)
	if err == nil {
		out.Table.KeySchema = append(out.Table.KeySchema, types.KeySchemaElement{AttributeName: aws.String("event"), KeyType: types.KeyTypeRange})
	}
	return out, err
}

func TestEnsureTableDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, op := range []string{"CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"} {
		t.Run(op, func(t *testing.T) {
			f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
				if r.Operation == op {
					return fakedynamo.Deny
				}
				return fakedynamo.None
			})
			if err := dynamostore.EnsureTable(t.Context(), f.client, "denied-"+op); err == nil || !strings.Contains(err.Error(), op) {
				t.Errorf("got %v, want an error that names the operation", err)
			}
		})
	}
}

func createTable(t *testing.T, f *fixture, name, key string) {
	t.Helper()
	expect.Value(f.client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	}))(t)
}

func TestOpen(t *testing.T) {
	f := newFixture(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", f.url)
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_PROFILE", "")
	set := func(t *testing.T, table, region, id string) {
		t.Setenv("LOCK_TABLE_NAME", table)
		t.Setenv("AWS_REGION", region)
		t.Setenv("AWS_DEFAULT_REGION", "")
		t.Setenv("AWS_ACCESS_KEY_ID", id)
		t.Setenv("AWS_SECRET_ACCESS_KEY", id)
	}
	for name, c := range map[string]struct{ table, region, id, within string }{
		"no table":       {"", "eu-central-1", "id", "LOCK_TABLE_NAME"},
		"no region":      {table, "", "id", "AWS_REGION"},
		"no credentials": {table, "eu-central-1", "", "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, c.table, c.region, c.id)
			if _, err := dynamostore.Open(t.Context(), ""); !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), c.within) {
				t.Errorf("got %v, want a ConfigError that says %q", err, c.within)
			}
		})
	}
	set(t, table, "eu-central-1", "id")
	s := expect.Value(dynamostore.Open(t.Context(), ""))(t)
	l := expect.Value(lock.New(s, nil))(t)
	expect.OK(t, l.Do(patience.Context(t), lock.Key{Name: "n"}, func(context.Context) error { return nil }))
	t.Setenv("AWS_PROFILE", "missing")
	if _, err := dynamostore.Open(t.Context(), ""); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("unreadable configuration: %v", err)
	}
}

// TestSlowCredentials shows that credentials which come late do not count as
// missing: nothing was sent, and a later try may succeed.
func TestSlowCredentials(t *testing.T) { // F10, F11
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_REGION": "eu-central-1", "AWS_PROFILE": "slow",
		"AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "config"),
	} {
		t.Setenv(name, value)
	}
	for seconds, limit := range map[string]time.Duration{"1": 50 * time.Millisecond, "3": time.Hour} {
		expect.Must(t, os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte("[profile slow]\ncredential_process = sleep "+seconds+"\n"), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := dynamostore.Open(ctx, "locks")
		cancel()
		var e *driver.Error
		if !errors.As(err, &e) || e.Lasting || e.Answered || !e.Unapplied || !strings.Contains(e.Hint, "in time") {
			t.Errorf("%s s, within %v: %#v", seconds, limit, err)
		}
	}
}

package fakedynamo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestTableOperationsWithSDK(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := newClient(t, New())
	create := &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	}
	created, err := client.CreateTable(ctx, create)
	if err != nil || created.TableDescription.TableStatus != types.TableStatusActive {
		t.Fatalf("CreateTable: %v, %v", created, err)
	}
	var exists *types.ResourceInUseException
	if _, err := client.CreateTable(ctx, create); !errors.As(err, &exists) {
		t.Errorf("second CreateTable: %v", err)
	}
	out := expect.Value(client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("locks")}))(t)
	table := out.Table
	if table.TableStatus != types.TableStatusActive || !reflect.DeepEqual(table.KeySchema, create.KeySchema) || !reflect.DeepEqual(table.AttributeDefinitions, create.AttributeDefinitions) {
		t.Errorf("DescribeTable = %+v", table)
	}
	ttl := &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("locks"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	}
	expect.Value(client.UpdateTimeToLive(ctx, ttl))(t)
	described, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("locks")})
	if err != nil || described.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *described.TimeToLiveDescription.AttributeName != "ttl" {
		t.Errorf("DescribeTimeToLive: %+v, %v", described, err)
	}
	endpoints, err := client.DescribeEndpoints(ctx, &dynamodb.DescribeEndpointsInput{})
	if err != nil || !strings.HasPrefix(*endpoints.Endpoints[0].Address, "127.0.0.1:") {
		t.Errorf("DescribeEndpoints: %+v, %v", endpoints, err)
	}
	create.TableName = aws.String("fences")
	expect.Value(client.CreateTable(ctx, create))(t)
	if names := expect.Value(client.ListTables(ctx, &dynamodb.ListTablesInput{}))(t).TableNames; !slices.Equal(names, []string{"fences", "locks"}) {
		t.Errorf("ListTables = %v", names)
	}
	var unknown smithy.APIError
	if _, err := client.ListBackups(ctx, &dynamodb.ListBackupsInput{}); !errors.As(err, &unknown) || unknown.ErrorCode() != "UnknownOperationException" {
		t.Errorf("ListBackups: %v", err)
	}
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := func(name, enabled string) string {
		return `{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"` + name + `","Enabled":` + enabled + `}}`
	}
	want := map[string]any{"TimeToLiveDescription": map[string]any{"TimeToLiveStatus": "DISABLED"}}
	if _, answer := send(t, s, "DescribeTimeToLive", `{"TableName":"locks"}`); !reflect.DeepEqual(answer, want) {
		t.Errorf("DescribeTimeToLive = %v", answer)
	}
	steps := []struct{ body, want string }{
		{`{"TableName":"locks"}`, "fakedynamo does not support UpdateTimeToLive"},
		{spec("", "true"), "fakedynamo does not support UpdateTimeToLive"},
		{spec("ttl", "false"), "fakedynamo does not support UpdateTimeToLive"},
		{spec("ttl", "true"), ""},
		{spec("ttl", "true"), "TimeToLive is already enabled"},
	}
	for _, step := range steps {
		_, answer := send(t, s, "UpdateTimeToLive", step.body)
		if message, _ := answer["message"].(string); !strings.Contains(message, step.want) || (step.want == "") != (message == "") {
			t.Errorf("%s: %v, want %q", step.body, answer, step.want)
		}
	}
}

func TestCreateTableRefusals(t *testing.T) {
	t.Parallel()
	valid := locksTable("other")
	const unsupported = "fakedynamo does not support tables other than"
	cases := []struct{ name, body, want string }{
		{"name too short", locksTable("ab"), "Invalid table/index name."},
		{"character in name", locksTable("a b c"), "Invalid table/index name."},
		{"no key", `{"TableName":"other"}`, unsupported},
		{"nameless key", strings.ReplaceAll(valid, `"id"`, `""`), unsupported},
		{"no definition", `{"TableName":"other","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`, unsupported},
		{"number key", strings.Replace(valid, `"AttributeType":"S"`, `"AttributeType":"N"`, 1), unsupported},
		{"key not defined", strings.Replace(valid, `"id"`, `"ix"`, 1), unsupported},
		{"provisioned", strings.Replace(valid, "PAY_PER_REQUEST", "PROVISIONED", 1), unsupported},
		{"index", strings.Replace(valid, `{`, `{"GlobalSecondaryIndexes":[{}],`, 1), `fakedynamo does not support the member "GlobalSecondaryIndexes"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, answer := send(t, New(), "CreateTable", c.body)
			if message, _ := answer["message"].(string); status != 400 || !strings.Contains(message, c.want) {
				t.Errorf("%d %v, want %q", status, answer, c.want)
			}
		})
	}
}

func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, operation, body, kind, message string }{
		{"unknown operation", "Query", `{}`, coralType + "UnknownOperationException", ""},
		{"not JSON", "UpdateItem", `{`, coralType + "SerializationException", ""},
		{"not JSON for a table operation", "DescribeTable", `[]`, coralType + "SerializationException", ""},
		{"wrong type", "UpdateItem", `{"TableName":5}`, coralType + "SerializationException", "TableName"},
		{"number as a number", "UpdateItem", `{"ExpressionAttributeValues":{":a":{"N":5}}}`, coralType + "SerializationException", "number"},
		{"not Base64", "UpdateItem", `{"ExpressionAttributeValues":{":a":{"B":"!"}}}`, coralType + "SerializationException", "base64"},
		{"unsupported member", "UpdateItem", `{"Expected":{}}`, validateType + "ValidationException", `fakedynamo does not support the member "Expected"`},
		{"no table", "UpdateItem", `{"TableName":"none","Key":{"id":{"S":"k"}}}`, dynamoType + "ResourceNotFoundException", "Table: none not found"},
		{"no table to describe", "DescribeTable", `{"TableName":"none"}`, dynamoType + "ResourceNotFoundException", "Requested resource not found: Table: none not found"},
		{"no table for time to live", "DescribeTimeToLive", `{"TableName":"none"}`, dynamoType + "ResourceNotFoundException", "Table: none"},
		{"no table to change", "UpdateTimeToLive", `{"TableName":"none","TimeToLiveSpecification":{"AttributeName":"a","Enabled":true}}`, dynamoType + "ResourceNotFoundException", "Table: none"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, answer := send(t, New(), c.operation, c.body)
			message, _ := answer["message"].(string)
			if status != 400 || answer["__type"] != c.kind || !strings.Contains(message, c.message) {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

func TestRequestsWithoutHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
	r.Header.Set("X-Amz-Target", targetPrefix+"UpdateItem")
	if status, answer := serve(t, s, r); status != 400 || answer["__type"] != coralType+"MissingAuthenticationTokenException" {
		t.Errorf("without Authorization: %d %v", status, answer)
	}
	r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 …")
	r.Header.Set("X-Amz-Target", "UpdateItem")
	if status, answer := serve(t, s, r); status != 400 || answer["__type"] != coralType+"UnknownOperationException" {
		t.Errorf("without the target's prefix: %d %v", status, answer)
	}
	if n := s.Requests(); n != 0 {
		t.Errorf("Requests() = %d", n)
	}
}

func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("the connection was not closed")
		}
	}()
	send(t, New(), "UpdateItem", strings.Repeat(" ", maxRequestBytes+1))
}

func TestItem(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if s.Item("none", "k") != nil || s.Item("locks", "k") != nil {
		t.Error("Item returns something that is not there")
	}
	put(t, s, `{"s":{"S":"x"},"m":{"M":{"y":{"B":"YQ=="}}}}`)
	changed := s.Item("locks", "k")
	changed["m"].(map[string]any)["M"].(map[string]any)["y"] = "z"
	wantItem(t, s, `{"id":{"S":"k"},"s":{"S":"x"},"m":{"M":{"y":{"B":"YQ=="}}}}`)
}

// TestConcurrentUpdates: concurrent requests on one item take effect one after
// the other.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := newClient(t, s)
	var winners int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				in := increment()
				in.ReturnValues = types.ReturnValueAllOld
				out, err := client.UpdateItem(context.WithoutCancel(t.Context()), in)
				if err != nil {
					t.Error(err)
					return
				}
				if out.Attributes == nil { // the item was new
					mu.Lock()
					winners++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if count(s) != "200" || s.Requests() != 200 || winners != 1 {
		t.Errorf("n = %s after %d requests, item created %d times", count(s), s.Requests(), winners)
	}
}

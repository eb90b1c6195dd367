package fakedynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// newServer returns a server with the table "locks", whose partition key is
// "id".
func newServer(t testing.TB) *Server {
	t.Helper()
	s := New()
	status, answer := send(t, s, "CreateTable", locksTable("locks"))
	if status != http.StatusOK {
		t.Fatalf("CreateTable: %d %v", status, answer)
	}
	return s
}

func locksTable(name string) string {
	return `{"TableName":"` + name + `","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`
}

// send gives the server one request and decodes its answer, after checking
// that it has the headers of every answer.
func send(t testing.TB, s *Server, operation, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 …")
	return serve(t, s, r)
}

func serve(t testing.TB, s *Server, r *http.Request) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); got != "application/x-amz-json-1.0" {
		t.Errorf("Content-Type = %q", got)
	}
	if got := w.Header().Get("x-amzn-RequestId"); got == "" {
		t.Errorf("x-amzn-RequestId = %q", got)
	}
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(w.Body.Bytes())), 10)
	if got := w.Header().Get("X-Amz-Crc32"); got != sum {
		t.Errorf("X-Amz-Crc32 = %q, want %q", got, sum)
	}
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("answer %q: %v", w.Body, err)
	}
	return w.Code, answer
}

// updateItem sends an UpdateItem for the item "k" of the table "locks" whose
// other members are given.
func updateItem(t testing.TB, s *Server, members string) (int, map[string]any) {
	t.Helper()
	return send(t, s, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"k"}},`+members+`}`)
}

// put makes "k" the item with these attributes.
func put(t testing.TB, s *Server, attributes string) {
	t.Helper()
	s.mu.Lock()
	delete(s.tables["locks"].items, "k")
	s.mu.Unlock()
	var values map[string]json.RawMessage
	expect.Must(t, json.Unmarshal([]byte(attributes), &values))
	if len(values) == 0 {
		return
	}
	names, placeholders := map[string]string{}, map[string]json.RawMessage{}
	var sets []string
	for name, v := range values {
		n := strconv.Itoa(len(sets))
		names["#"+n], placeholders[":"+n] = name, v
		sets = append(sets, "#"+n+" = :"+n)
	}
	status, answer := updateItem(t, s, fmt.Sprintf(`"UpdateExpression":"SET %s","ExpressionAttributeNames":%s,"ExpressionAttributeValues":%s`,
		strings.Join(sets, ","), marshal(t, names), marshal(t, placeholders)))
	if status != http.StatusOK {
		t.Fatalf("put %s: %v", attributes, answer)
	}
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	text := expect.Value(json.Marshal(v))(t)
	return string(text)
}

// wantItem checks what the item "k" consists of.
func wantItem(t testing.TB, s *Server, want string) {
	t.Helper()
	if got := s.Item("locks", "k"); !reflect.DeepEqual(got, decoded(t, want)) {
		t.Errorf("item = %s, want %s", marshal(t, got), want)
	}
}

// newClient returns an SDK client of a server on the loopback interface.
func newClient(t testing.TB, s *Server) *dynamodb.Client {
	t.Helper()
	endpoint := httptest.NewServer(s)
	t.Cleanup(endpoint.Close)
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint.URL),
		Region:       "us-east-1",
		Retryer:      aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
}

// increment is a request that counts in the attribute "n" of the item "k".
func increment() *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:        aws.String("locks"),
		Key:              map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "k"}},
		UpdateExpression: aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":zero": &types.AttributeValueMemberN{Value: "0"},
			":one":  &types.AttributeValueMemberN{Value: "1"},
		},
	}
}

// count is what increment has counted.
func count(s *Server) string {
	n, _ := s.Item("locks", "k")["n"].(map[string]any)
	text, _ := n["N"].(string)
	return text
}

// decoded returns the JSON object in text.
func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	expect.Must(t, json.Unmarshal([]byte(text), &v))
	return v
}

package fault_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const tableName = "locks"

// clientOver returns a client of DynamoDB over a transport.
func clientOver(rt http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: &http.Client{Transport: rt}, BaseEndpoint: aws.String("http://localhost"),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), Retryer: aws.NopRetryer{},
	})
}

func newTable(t *testing.T) *fakedynamo.Server {
	t.Helper()
	server := fakedynamo.New()
	expect.Must(t, dynamostore.EnsureTable(t.Context(), clientOver(fault.InProcess{Handler: server}), tableName))
	return server
}

// TestTransport shows what each fault means for a store on the SDK, and for
// the table.
func TestTransport(t *testing.T) {
	inEachMeaning(t, func(t *testing.T, m meaning, plan fault.Plan) {
		server, late := newTable(t), &fault.Copies{}
		store := dynamostore.New(clientOver(&fault.Transport{Next: fault.InProcess{Handler: server}, Dialect: fault.DynamoDB, Plan: plan, Late: late}), tableName)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		start := time.Now()
		row, ok, err := store.Acquire(ctx, claim())
		m.check(t, time.Since(start), err)
		if ok != (err == nil) || ok && row.Token != "t" {
			t.Errorf("granted %v, error %v, row %+v", ok, err, row)
		}
		if n := server.Requests(); n != m.applied {
			t.Errorf("applied %d times, want %d", n, m.applied)
		}
		late.Wait()
		if n := server.Requests(); n != m.applied+m.late {
			t.Errorf("applied %d times in the end, want %d", n, m.applied+m.late)
		}
		if item := server.Item(tableName, "n"); (item != nil) != (m.applied+m.late > 0) {
			t.Errorf("the table has %v", item)
		}
	})
}

// TestTransaction shows that the SDK takes the refusals of a transaction for
// those of DynamoDB.
func TestTransaction(t *testing.T) {
	put := func(item string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(tableName), Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: item}}}}
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("a"), put("b")}}
	for f, reasons := range map[fault.Fault][2]string{fault.Throttle: {"ThrottlingError", "ThrottlingError"}, fault.Conflict: {"TransactionConflict", "None"}} {
		client := clientOver(&fault.Transport{Next: fault.InProcess{Handler: newTable(t)}, Dialect: fault.DynamoDB, Plan: timed{Fault: f}})
		var canceled *types.TransactionCanceledException
		if _, err := client.TransactWriteItems(t.Context(), in); !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2 ||
			*canceled.CancellationReasons[0].Code != reasons[0] || *canceled.CancellationReasons[1].Code != reasons[1] {
			t.Errorf("%v: %v", f, err)
		}
	}
	client := clientOver(&fault.Transport{Next: fault.InProcess{Handler: newTable(t)}, Dialect: fault.DynamoDB, Plan: timed{Fault: fault.Deny}})
	if _, err := client.TransactWriteItems(t.Context(), in); err == nil || !strings.Contains(err.Error(), "not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:us-east-1:123456789012:table/locks") {
		t.Errorf("deny: %v", err)
	}
}

// TestReadsMeetNoConflict shows that a conflict is none of the answers to a
// read.
func TestReadsMeetNoConflict(t *testing.T) {
	client := clientOver(&fault.Transport{Next: fault.InProcess{Handler: newTable(t)}, Dialect: fault.DynamoDB, Plan: timed{Fault: fault.Conflict}})
	_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "a"}}})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ProvisionedThroughputExceededException" {
		t.Errorf("got %v", err)
	}
	for name, dialect := range map[string]fault.Dialect{"S3": fault.S3, "Azure": fault.Azure} {
		for method, status := range map[string]int{http.MethodGet: http.StatusServiceUnavailable, http.MethodPut: 0} {
			_, got := answerOf(t, dialect, fault.Conflict, method)
			if conflict := got == http.StatusConflict || got == http.StatusPreconditionFailed; conflict != (method == http.MethodPut) || status != 0 && got != status {
				t.Errorf("%s: %s has the status %d", name, method, got)
			}
		}
	}
}

// answerOf returns what a client gets that meets a fault.
func answerOf(t *testing.T, dialect fault.Dialect, f fault.Fault, method string) (body string, status int) {
	t.Helper()
	tr := &fault.Transport{
		Next: fault.InProcess{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "content") })}, Dialect: dialect, Plan: timed{Fault: f},
	}
	r := expect.Value(http.NewRequestWithContext(t.Context(), method, "http://localhost/bucket/key", nil))(t)
	answer := expect.Value(tr.RoundTrip(r))(t)
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if cut := errors.Is(err, io.ErrUnexpectedEOF) && errors.Is(err, fault.ErrInjected); cut != (f == fault.Truncate) || !cut && err != nil {
		t.Errorf("%v: %v", f, err)
	}
	return string(read), answer.StatusCode
}

// TestTruncate shows that the client has half of the answer and then the end
// of the connection.
func TestTruncate(t *testing.T) {
	if body, status := answerOf(t, fault.S3, fault.Truncate, http.MethodGet); body != "con" || status != http.StatusOK {
		t.Errorf("got %d with %q", status, body)
	}
}

// TestDate shows that every answer bears the transport's time, also those that
// the server did not give.
func TestDate(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		skew := 90 * time.Second
		for _, f := range []fault.Fault{fault.None, fault.Throttle} {
			tr := &fault.Transport{
				Next: fault.InProcess{Handler: http.NotFoundHandler()}, Dialect: fault.S3, Plan: timed{Fault: f},
				Date: func() time.Time { return time.Now().Add(skew) },
			}
			r := expect.Value(http.NewRequestWithContext(t.Context(), http.MethodPut, "http://localhost/", bytes.NewReader([]byte("x"))))(t)
			answer := expect.Value(tr.RoundTrip(r))(t)
			_ = answer.Body.Close()
			if at, err := http.ParseTime(answer.Header.Get("Date")); err != nil || time.Until(at) != skew {
				t.Errorf("%v: dated %v, error %v", f, at, err)
			}
		}
	})
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/lock"
)

// deployedFunction starts Lambda and SQS with the function thumbnails, which
// locks in the table orders-locks, with one that has no table, one that has
// something else, and one that is denied. It returns the variables that lead
// there, and calls note with each action.
func deployedFunction(t *testing.T, note func(action string)) []string {
	t.Helper()
	const queue = "arn:aws:sqs:eu-central-1:123456789012:uploads"
	answers := []struct{ path, action, text string }{
		{"/configuration", "lambda:GetFunctionConfiguration", `{"FunctionName":"thumbnails","FunctionArn":"arn:aws:lambda:eu-central-1:123456789012:function:thumbnails","Timeout":10,
			"Environment":{"Variables":{"LOCK_TABLE_NAME":"orders-locks"}}}`},
		{"/concurrency", "lambda:GetFunctionConcurrency", `{}`},
		{"/aliases", "lambda:ListAliases", `{"Aliases":[]}`},
		{"/policy", "lambda:GetPolicy", ""},
		{"function:thumbnails", "lambda:GetResourcePolicy", `{"Policy":"{\"Statement\":[{\"Principal\":{\"Service\":[\"events.amazonaws.com\"]}}]}"}`},
		{"/event-invoke-config", "lambda:GetFunctionEventInvokeConfig", `{"DestinationConfig":{"OnFailure":{"Destination":"arn:aws:sqs:eu-central-1:123456789012:failed"}}}`},
		{"/event-source-mappings", "lambda:ListEventSourceMappings", `{"EventSourceMappings":[{"UUID":"14e0db71","EventSourceArn":"` + queue + `","State":"Enabled","FunctionResponseTypes":["ReportBatchItemFailures"]}]}`},
		{"AmazonSQS.GetQueueUrl", "sqs:GetQueueUrl", `{"QueueUrl":"https://sqs/123456789012/uploads"}`},
		{"AmazonSQS.GetQueueAttributes", "sqs:GetQueueAttributes", `{"Attributes":{"VisibilityTimeout":"30","MessageRetentionPeriod":"345600","RedrivePolicy":"{\"maxReceiveCount\":5}"}}`},
		{"GetQueueAttributes of the dead-letter queue", "sqs:GetQueueAttributes", `{"Attributes":{"QueueArn":"arn:aws:sqs:eu-central-1:123456789012:orders-dlq","ApproximateNumberOfMessages":"2"}}`},
		{"AmazonSQS.ReceiveMessage", "sqs:ReceiveMessage", `{"Messages":[
			{"MessageId":"059f36b4","ReceiptHandle":"1","Body":"{\"order\":\"4711\"}","Attributes":{"DeadLetterQueueSourceArn":"arn:aws:sqs:eu-central-1:123456789012:orders"}},
			{"MessageId":"2e1424d4","ReceiptHandle":"2","Body":"{\"order\":\"4712\"}","Attributes":{"DeadLetterQueueSourceArn":"arn:aws:sqs:eu-central-1:123456789012:orders"}}]}`},
		{"AmazonSQS.ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility", `{"Successful":[{"Id":"0"},{"Id":"1"}],"Failed":[]}`},
	}
	var received atomic.Bool // the only messages
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, name, _ := strings.Cut(r.URL.Path, "/functions/"); name {
		case "plain/configuration":
			_, _ = w.Write([]byte(`{"FunctionName":"plain","Timeout":10}`))
			return
		case "odd/configuration":
			_, _ = w.Write([]byte(`{"FunctionName":"odd","Environment":{"Variables":{"LOCK_TABLE_NAME":"locks?endpoint=http://127.0.0.1:1"}}}`))
			return
		case "denied/configuration":
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"Message":"User: arn:aws:iam::123456789012:user/on-call is not authorized to perform: lambda:GetFunctionConfiguration on resource: denied"}`))
			return
		}
		asked := strings.TrimSuffix(r.URL.Path, "/") + r.Header.Get("X-Amz-Target")
		body, _ := io.ReadAll(r.Body)
		if strings.HasSuffix(asked, ".GetQueueAttributes") && !strings.Contains(string(body), "VisibilityTimeout") { // doctor asks for it
			asked += " of the dead-letter queue"
		}
		if strings.HasSuffix(asked, ".ReceiveMessage") && received.Swap(true) {
			_, _ = w.Write([]byte(`{}`))
			return
		}
		for _, a := range answers {
			if strings.HasSuffix(asked, a.path) && (strings.Contains(asked, "thumbnails/") || !strings.Contains(asked, "/functions/")) {
				if note(a.action); a.text == "" { // there is none
					break
				}
				_, _ = w.Write([]byte(a.text))
				return
			}
		}
		w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"Message":"Function not found"}`))
	}))
	t.Cleanup(server.Close)
	return []string{"AWS_ENDPOINT_URL_LAMBDA=" + server.URL, "AWS_ENDPOINT_URL_SQS=" + server.URL}
}

// TestFunctionFlag: every command finds the table and the namespace of a
// deployed function, whatever the shell has for others.
func TestFunctionFlag(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "orders-locks")
	in := func(namespace string) func(*lock.Options) { return func(o *lock.Options) { o.Namespace = namespace } }
	rowtest.Complete(t, s.Store, lock.Key{Name: "cat", Event: "e1"}, nil, in("thumbnails"))
	rowtest.Complete(t, s.Store, lock.Key{Name: "cat", Event: "e2"}, nil, in("plain"))
	rowtest.Complete(t, s.Store, lock.Key{Name: "order/4711", Event: "4711"}, nil, in("thumbnails"))
	rowtest.Acquire(t, s.Store, "f request 1", time.Hour, lock.Key{Name: "held"}, in("thumbnails"))
	env := slices.Concat(s.Env, deployedFunction(t, func(string) {}), []string{"LOCK_TABLE_NAME=", "LAMBDALOCK_STORE=", "LOCK_NAMESPACE=elsewhere"})
	const (
		arn   = "arn:aws:lambda:eu-central-1:123456789012:function:thumbnails"
		store = "dynamodb://orders-locks"
	)
	for name, c := range map[string]struct {
		args   []string
		status int
		says   []string
	}{
		"show":                      {[]string{"show", "--function", "thumbnails", "cat"}, 0, []string{"thumbnails/cat", "e1"}},
		"by its ARN":                {[]string{"show", "--function", arn, "cat"}, 0, []string{"thumbnails/cat"}},
		"instead of another store":  {[]string{"show", "--store", "dynamodb://other", "--function", "thumbnails", "cat"}, 0, []string{"thumbnails/cat"}},
		"list":                      {[]string{"list", "--function", "thumbnails", "--all"}, 0, []string{"thumbnails/cat", "thumbnails/held"}},
		"explain":                   {[]string{"explain", "--function", "thumbnails", "--name", "cat", "--event", "e1"}, 0, []string{"thumbnails/cat", "skip: completed"}},
		"redrive":                   {[]string{"redrive", "--function", "thumbnails", "--dry-run", "--name", "order/{{.order}}", "--event", "{{.order}}", "orders-dlq"}, 1, []string{"completed at ", "1 deleted, 0 sent, 1 left"}},
		"redrive, no rows":          {[]string{"redrive", "--store", "dynamodb://orders-locks", "--namespace", "thumbnail", "--unknown", "--yes", "orders-dlq"}, 1, []string{"the namespace thumbnail has no rows, so --unknown would send what was completed, too"}},
		"exec":                      {[]string{"exec", "--function", "thumbnails", "--key", "held", "true"}, 1, []string{"held by f request 1"}},
		"forget":                    {[]string{"forget", "--function", "thumbnails", "--yes", "cat", "e3"}, 1, []string{"thumbnails/cat does not remember e3"}},
		"release":                   {[]string{"release", "--function", "thumbnails", "--yes", "cat"}, 1, []string{"nobody holds thumbnails/cat"}},
		"no table, no store":        {[]string{"show", "--function", "plain", "cat"}, 64, []string{"function plain has no LOCK_TABLE_NAME", "--store"}},
		"no table, but a store":     {[]string{"show", "--function", "plain", "--store", store, "cat"}, 0, []string{"plain/cat", "e2"}},
		"no table, and a namespace": {[]string{"show", "--function", "plain", "--store", store, "--namespace", "thumbnails", "cat"}, 0, []string{"thumbnails/cat"}},
		"a table that is a URL":     {[]string{"show", "--function", "odd", "cat"}, 64, []string{"correct LOCK_TABLE_NAME of function odd"}},
		"no such function":          {[]string{"show", "--function", "nobody", "cat"}, 64, []string{"Lambda function nobody does not exist"}},
		"denied":                    {[]string{"show", "--function", "denied", "cat"}, 69, []string{"lambda:GetFunctionConfiguration was denied"}},
		"exec, no such function":    {[]string{"exec", "--function", "nobody", "--key", "k", "true"}, 64, []string{"Lambda function nobody does not exist"}},
		"exec, denied":              {[]string{"exec", "--function", "denied", "--key", "k", "true"}, 69, []string{"was denied"}},
		"doctor, no such function":  {[]string{"doctor", "--function", "nobody"}, 64, []string{"Lambda function nobody does not exist"}},
		"doctor":                    {[]string{"doctor", "--function", "thumbnails"}, 0, []string{"warning  visibilityTimeout"}},
		"doctor, no table":          {[]string{"doctor", "--function", "plain"}, 0, []string{"warning  place", "has no LOCK_TABLE_NAME", "by default in the namespace plain"}},
		"doctor, a URL":             {[]string{"doctor", "--function", "odd"}, 1, []string{"error    place", "not set up rightly: place"}},
		"doctor, denied":            {[]string{"doctor", "--function", "denied"}, 69, []string{"was denied"}},
		"doctor, no such table":     {[]string{"doctor", "--store", "dynamodb://orders-lock"}, 1, []string{"error  write  who set the table's name", "Here there is orders-locks", "not set up rightly: write"}},
		"doctor, nothing":           {[]string{"doctor"}, 64, []string{"no store"}},
		"doctor, no answer":         {[]string{"doctor", "--store", "dynamodb://orders-locks?endpoint=http://127.0.0.1:1"}, 69, []string{"connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commandtest.Run(t, env, c.args...).Expect(t, c.status, c.says...)
		})
	}
	t.Run("doctor, the worst first", func(t *testing.T) {
		t.Parallel()
		_, first, _ := strings.Cut(commandtest.Run(t, env, "doctor", "--function", "thumbnails").Stdout, "\n")
		if !strings.HasPrefix(first, "warning ") {
			t.Errorf("the first line is %s", first)
		}
	})
	t.Run("acknowledged, misspelt", func(t *testing.T) {
		t.Parallel()
		r := commandtest.Run(t, env, "doctor", "--function", "odd", "--acknowledge", "visibilitytimeout,place")
		r.Expect(t, 1, "--acknowledge visibilitytimeout leaves out nothing: there is no such warning", "--acknowledge place leaves out nothing: it is an error")
	})
	t.Run("acknowledged", func(t *testing.T) {
		t.Parallel()
		r := commandtest.Run(t, env, "doctor", "--function", "thumbnails", "--acknowledge", "visibilityTimeout")
		if r.Expect(t, 0); strings.Contains(r.String(), "warning") {
			t.Error(r)
		}
	})
}

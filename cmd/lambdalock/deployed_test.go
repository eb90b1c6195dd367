package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// deployedFunction starts Lambda and SQS with the function thumbnails, which
// locks in the table orders-locks, and returns the variables that lead there.
// It calls note with each action.
func deployedFunction(t *testing.T, note func(action string)) []string {
	t.Helper()
	const queue = "arn:aws:sqs:eu-central-1:123456789012:uploads"
	answers := []struct{ path, action, text string }{
		{"/configuration", "lambda:GetFunctionConfiguration", `{"FunctionName":"thumbnails","FunctionArn":"arn:aws:lambda:eu-central-1:123456789012:function:thumbnails","Timeout":10,
			"Environment":{"Variables":{"LOCK_TABLE_NAME":"orders-locks"}}}`},
		{"/aliases", "lambda:ListAliases", `{"Aliases":[]}`},
		{"/policy", "lambda:GetPolicy", `{"Policy":"{\"Statement\":[{\"Principal\":{\"Service\":\"events.amazonaws.com\"}}]}"}`},
		{"/event-invoke-config", "lambda:GetFunctionEventInvokeConfig", `{"DestinationConfig":{"OnFailure":{"Destination":"arn:aws:sqs:eu-central-1:123456789012:failed"}}}`},
		{"/event-source-mappings", "lambda:ListEventSourceMappings", `{"EventSourceMappings":[{"UUID":"14e0db71","EventSourceArn":"` + queue + `","State":"Enabled","FunctionResponseTypes":["ReportBatchItemFailures"]}]}`},
		{"AmazonSQS.GetQueueUrl", "sqs:GetQueueUrl", `{"QueueUrl":"https://sqs/123456789012/uploads"}`},
		{"AmazonSQS.GetQueueAttributes", "sqs:GetQueueAttributes", `{"Attributes":{"VisibilityTimeout":"30","MessageRetentionPeriod":"345600","RedrivePolicy":"{\"maxReceiveCount\":5}"}}`},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := strings.TrimSuffix(r.URL.Path, "/") + r.Header.Get("X-Amz-Target")
		for _, a := range answers {
			if strings.HasSuffix(asked, a.path) && !strings.Contains(asked, "/nobody/") {
				note(a.action)
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

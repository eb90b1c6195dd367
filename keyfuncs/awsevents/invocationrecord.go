package awsevents

import "encoding/json"

// InvocationRecord is what Lambda sends to a destination about an asynchronous
// invocation, or about a batch of a stream or queue that it gave up.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html,
// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html.
type InvocationRecord struct {
	Version        string `json:"version"`
	Timestamp      string `json:"timestamp"`
	RequestContext struct {
		RequestID              string `json:"requestId"` // the same for all attempts
		FunctionARN            string `json:"functionArn"`
		Condition              string `json:"condition"` // Success, RetriesExhausted, EventAgeExceeded and others
		ApproximateInvokeCount int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	RequestPayload  json.RawMessage `json:"requestPayload,omitempty"`  // the event; empty for a batch
	ResponseContext json.RawMessage `json:"responseContext,omitempty"` // empty if the function did not run
	ResponsePayload json.RawMessage `json:"responsePayload,omitempty"` // the result or error; empty for a batch
}

package deadletter

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// nowhere says why a message that came from no queue stays, and what to do. An
// event of an asynchronous invocation went to the function itself: from a queue
// the function would get another event, with the message in it.
func (m *Message) nowhere() string {
	var record struct {
		RequestPayload json.RawMessage `json:"requestPayload"`
		RequestContext struct {
			FunctionARN string `json:"functionArn"`
		} `json:"requestContext"`
		Kinesis  json.RawMessage `json:"KinesisBatchInfo"`
		DynamoDB json.RawMessage `json:"DDBStreamBatchInfo"`
	}
	_ = json.Unmarshal([]byte(aws.ToString(m.sqs.Body)), &record) // another body has no such members
	const deliver = "invoke it with --invocation-type Event and "
	const then = ", then delete the message"
	switch f := record.RequestContext.FunctionARN; {
	case record.Kinesis != nil || record.DynamoDB != nil:
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		return "it says which records of a stream failed, and has none of them: read them from the stream by their sequence numbers, before it drops them"
	case record.RequestPayload != nil && f != "":
		// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
		return "it is an asynchronous invocation of " + f + " that failed: " + deliver + "its requestPayload" + then
	case m.has("RequestID") && m.has("ErrorCode"):
		return "it is the event of an asynchronous invocation that failed: find the function whose dead-letter queue this is, " + deliver + "the body" + then
	}
	return "it does not say which queue it came from: give --to"
}

// has reports whether the message has an attribute of that name.
func (m *Message) has(name string) bool {
	_, ok := m.sqs.MessageAttributes[name]
	return ok
}

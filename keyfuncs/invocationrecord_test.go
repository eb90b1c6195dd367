package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestInvocationRecord(t *testing.T) {
	t.Parallel()
	key := keyfuncs.Func[awsevents.InvocationRecord](services.InvocationRecord)
	id := "e4b46cbf-b738-4880-97ea-2c2f4d7c6a01"
	want := lock.Key{Name: "invocation/arn:aws:lambda:eu-central-1:123456789012:function:orders:$LATEST/" + id, Event: id + "/RetriesExhausted"}
	gives(t, "invocationrecord.json", key, want)
	gives(t, "invocationrecord-stream.json", key, lock.Key{
		Name:  "invocation/arn:aws:lambda:eu-central-1:123456789012:function:readings/7f2c9b1a-5a7f-4d20-af9c-0c604cde93a5",
		Event: "7f2c9b1a-5a7f-4d20-af9c-0c604cde93a5/RetryAttemptsExhausted",
	})
	apart(t, "invocationrecord.json", key, map[string]func(*awsevents.InvocationRecord){
		"another function":   func(r *awsevents.InvocationRecord) { r.RequestContext.FunctionARN += "2" },
		"another invocation": func(r *awsevents.InvocationRecord) { r.RequestContext.RequestID += "2" },
		"another end":        func(r *awsevents.InvocationRecord) { r.RequestContext.Condition = "Success" },
	})
	refuses(t, "invocationrecord.json", key, map[string]func(*awsevents.InvocationRecord){
		"requestContext.functionArn": func(r *awsevents.InvocationRecord) { r.RequestContext.FunctionARN = "" },
		"requestContext.requestId":   func(r *awsevents.InvocationRecord) { r.RequestContext.RequestID = "" },
	})
	refuses(t, "apigateway-rest.json", key, map[string]func(*awsevents.InvocationRecord){"requestContext.functionArn": nil})

	record := text(t, "invocationrecord.json")
	bridged := events.EventBridgeEvent{ID: "b", Source: "lambda", DetailType: "Lambda Function Invocation Result - Failure", Detail: []byte(record)}
	for way, k := range map[string]lock.Key{
		"SQS":         keyOf(t, inQueue(keyfuncs.SQSBody(services.InvocationRecord)), record),
		"SNS":         keyOf(t, inTopic(keyfuncs.SNSBody(services.InvocationRecord)), record),
		"EventBridge": keyOf(t, keyfuncs.EventBridgeDetail(services.InvocationRecord), bridged),
	} {
		if k != want {
			t.Errorf("%s: %+v, want %+v", way, k, want)
		}
	}
	_, err := inQueue(s3InQueue)(t.Context(), record)
	refused(t, "for S3", err, "body", "SQSBody(services.InvocationRecord)")
}

package keyfuncs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// TestErrorsNameTheWayOut shows that the errors of a first try say what to
// change.
func TestErrorsNameTheWayOut(t *testing.T) {
	t.Parallel()
	type order struct{ Customer, ID string }
	byCustomer := keyfuncs.ByField(func(o order) string { return o.Customer })
	byID := keyfuncs.ByField(func(o order) string { return o.ID })
	for want, use := range map[string]func(context.Context) error{
		"docs/SOURCES.md#the-input-of-a-schedule": func(ctx context.Context) error {
			_, err := keyfuncs.EventBridgeSchedule(ctx, events.EventBridgeEvent{})
			return err
		},
		"a test builds needs requestContext.apiId, requestContext.http.method and rawPath": func(ctx context.Context) error {
			_, err := keyfuncs.IdempotencyKey(ctx, events.APIGatewayV2HTTPRequest{})
			return err
		},
		"no key: the event lacks a field that its key is taken from: the second key function of EventFrom returned an empty Name": func(ctx context.Context) error {
			_, err := keyfuncs.EventFrom(byCustomer, byID)(ctx, order{Customer: "c"})
			return err
		},
		"no key: body lacks a field that its key is taken from: the second key function of EventFrom returned an empty Name, so there is no Event": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.EventFrom(byCustomer, byID))(ctx, events.SQSMessage{Body: `{"Customer":"c"}`})
			return err
		},
		"no key: body lacks a field that its key is taken from: the second key function of PayloadFrom returned an empty Name, so there is no Payload": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.PayloadFrom(byCustomer, byID))(ctx, events.SQSMessage{Body: `{"Customer":"c"}`})
			return err
		},
		"no key: body lacks a field that its key is taken from: the second key function of OrderFrom returned an empty Name, so there is no Order": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.OrderFrom(byCustomer, byID))(ctx, events.SQSMessage{Body: `{"Customer":"c"}`})
			return err
		},
		"no key: body lacks a field that its key is taken from: part 2 of Join returned an empty Name": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.Join(byCustomer, byID))(ctx, events.SQSMessage{Body: `{"Customer":"c"}`})
			return err
		},
		"the second key function of EventFrom returned an empty Name, so there is no Event: let the sender fill in the field that it reads, or correct its json tag; if the event comes from another source, `lambdalock explain` names": func(ctx context.Context) error {
			_, err := keyfuncs.EventFrom(byCustomer, byID)(ctx, order{}) // what a message of a queue decodes as
			return err
		},
		"no key: body is not an SNS message: raw message delivery is on, or no topic sends here: leave SNSBody out, or in place of SNSRecord use SQSMessage": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object))(ctx, events.SQSMessage{Body: `{"Customer":"c"}`})
			return err
		},
		"no key: body is not an SNS message: raw message delivery": func(ctx context.Context) error {
			_, err := keyfuncs.SQSBody(keyfuncs.SNSRecord)(ctx, events.SQSMessage{Body: "hello"})
			return err
		},
		"no key: kinesis.data is not an SNS message: raw message delivery is on, or no topic sends here: leave SNSBody out, or in place of SNSRecord use KinesisRecord": func(ctx context.Context) error {
			_, err := keyfuncs.KinesisBody(keyfuncs.SNSRecord)(ctx, events.KinesisEventRecord{Kinesis: events.KinesisRecord{Data: []byte("[]")}})
			return err
		},
		"source is missing: this is an event of another source": func(ctx context.Context) error {
			_, err := keyfuncs.EventBridgeDetail(byID)(ctx, events.EventBridgeEvent{}) // what an S3 notification decodes as
			return err
		},
		"version is \"0\", not 2.0: this is an event of another source": func(ctx context.Context) error {
			_, err := keyfuncs.IdempotencyKey(ctx, events.APIGatewayV2HTTPRequest{Version: "0"}) // what EventBridge says
			return err
		},
		"version is \"1.0\", not 2.0: this is an event of another source": func(ctx context.Context) error {
			return refusal(ctx, t, "config-change.json", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest])
		},
		"version is 1.0, not 2.0: for payload format 1.0": func(ctx context.Context) error {
			e := events.APIGatewayV2HTTPRequest{Version: "1.0"}
			e.RequestContext.APIID = "api"
			_, err := keyfuncs.IdempotencyKey(ctx, e)
			return err
		},
		"domainName is not that of a Function URL: for an HTTP API": func(ctx context.Context) error {
			return refusal(ctx, t, "apigateway-http.json", keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest])
		},
		"domainName is not that of a Function URL: this is an event of another source": func(ctx context.Context) error {
			return refusal(ctx, t, "apigateway-rest.json", keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest])
		},
		"SystemMetadata is missing, and the event holds an SQS event: its key function is SQSMessage": func(ctx context.Context) error {
			return refusal(ctx, t, "sqs.json", first(keyfuncs.CustomBusEvent))
		},
		"no key: body is missing, and no gateway is named: this is an event of another source": func(ctx context.Context) error {
			_, err := keyfuncs.HTTPBody[events.ALBTargetGroupRequest](byID)(ctx, events.ALBTargetGroupRequest{}) // what a message of a queue decodes as
			return err
		},
		"no key: messageId is missing: this is an event of another source": func(ctx context.Context) error {
			_, err := keyfuncs.SQSMessage(ctx, events.SQSMessage{})
			return err
		},
		"no key: body lacks the field that identifies the request": func(ctx context.Context) error {
			_, err := keyfuncs.HTTPBody[events.APIGatewayV2HTTPRequest](byID)(ctx, events.APIGatewayV2HTTPRequest{Body: "{}"})
			return err
		},
	} {
		if err := use(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

// refusal returns the error of a key function for an event of testdata.
func refusal[E any](ctx context.Context, t *testing.T, file string, key keyfuncs.Func[E]) error {
	t.Helper()
	_, err := key(ctx, load[E](t, file))
	return err
}

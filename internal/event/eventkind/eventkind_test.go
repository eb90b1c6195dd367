package eventkind

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
)

// TestEveryKindHasAKeyFunction: an error that names none helps nobody.
func TestEveryKindHasAKeyFunction(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, carrier := range []*Kind{nil, SQS, SNS, Kinesis, EventBridge} {
			if k.name == "" || k.KeyFunction(carrier) == "" {
				t.Errorf("%q in %q has no key function", k, carrier)
			}
		}
	}
}

func TestOfOddities(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]*Kind{
		``: nil, `{`: nil, `null`: nil, `[]`: nil, `"text"`: nil, `17`: nil, `{}`: nil, `{"Records":[]}`: nil, `{"Records":null}`: nil, `{"Records":17}`: nil,
		`{"Records":[{"eventSource":"minio:s3"}]}`:                       nil,
		`{"Event":"s3:TestEvent"}`:                                       S3Test,
		`{"Event":"s3:TestEvent","Service":"Another"}`:                   nil,
		`{"Event":"s3:TestEvent","Service":"Amazon S3"}`:                 S3Test,
		`{"Records":[{"s3":{}}]}`:                                        S3,
		`{"Records":[{"messageId":"m"}]}`:                                SQS,
		`{"Records":[{"Sns":{}}]}`:                                       SNS,
		`{"Records":[{"ses":{}}]}`:                                       SES,
		`{"Records":[{"":17}]}`:                                          nil,
		`{"Records":[17]}`:                                               nil,
		`{"Records":[null]}`:                                             nil,
		`{"Type":"Notification","Message":"m"}`:                          SNSMessage,
		`{"Type":"order","Message":"m"}`:                                 nil,
		`{"detail-type":"Order","detail":{}}`:                            EventBridge,
		`{"event":"s3:TestEvent"}`:                                       nil,
		`{"eventSource":"aws:amq","messages":[]}`:                        ActiveMQ,
		`{"eventSource":"aws:SelfManagedKafka","records":{}}`:            Kafka,
		`{"requestContext":{"functionArn":17}}`:                          HTTP,
		`{"requestContext":{"functionArn":"f","requestId":"r"}}`:         InvocationRecord,
		`{"Event":["s3:TestEvent"]}`:                                     nil,
		`{"Event":"s3:TestEvent","Records":[{"EventSource":"aws:sns"}]}`: SNS,
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			if got := Of([]byte(doc)); got != want {
				t.Errorf("is %q, want %q", got, want)
			}
		})
	}
}

func TestOfRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		record any
		want   *Kind
	}{
		{events.SQSMessage{}, SQS}, {awsevents.DocumentDBEventRecord{}, DocumentDB}, {events.SQSEvent{}, nil}, {&events.SQSMessage{}, nil}, {nil, nil},
	} {
		if got := OfRecord(reflect.TypeOf(c.record)); got != c.want {
			t.Errorf("%T is of %q, want %q", c.record, got, c.want)
		}
	}
}

func TestNoS3Records(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"Event":"s3:TestEvent"}`: "", `{"Records":[]}`: "no S3 notification", `{"order":17}`: "no S3 notification",
		`{"Type":"Notification","TopicArn":"t","Message":"m"}`: "SQSBody(SNSBody(S3Object))",
		`{"detail-type":"d","source":"s","detail":{}}`:         "SQSBody(EventBridgeEvent)",
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			if got := NoS3Records([]byte(doc), SQS); !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%q, want %q in it", got, want)
			}
		})
	}
}

// TestIsKept shows which sources keep records until they are acknowledged:
// those of event source mappings.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html
func TestIsKept(t *testing.T) {
	t.Parallel()
	kept := map[*Kind]bool{SQS: true, Kinesis: true, DynamoDB: true, DocumentDB: true, Kafka: true, ActiveMQ: true, RabbitMQ: true}
	for _, k := range kinds {
		all := k.types
		if k.one != nil {
			all = append(slices.Clone(all), k.one)
		}
		for _, event := range all {
			of := reflect.TypeOf(event)
			if IsKept(of) != kept[k] || IsKept(reflect.PointerTo(of)) != kept[k] || IsKept(reflect.SliceOf(of)) != kept[k] {
				t.Errorf("%v is kept: %t", of, IsKept(of))
			}
		}
	}
	if IsKept(reflect.TypeFor[any]()) || IsKept(reflect.TypeFor[struct{}]()) {
		t.Error("anything is kept")
	}
}

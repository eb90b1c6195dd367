package explain_test

import (
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
)

// TestWindowIsRefused: no wrapper takes an event of a tumbling window.
func TestWindowIsRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"kinesis", "dynamodb"} {
		doc := string(sample(t, file))
		windowed := strings.Replace(doc, "{", `{"window":{"start":"2026-11-26T10:00:00Z","end":"2026-11-26T10:02:00Z"},"state":{"count":282},`, 1)
		if e, err := explain.Explain(t.Context(), []byte(windowed)); err == nil || !strings.Contains(err.Error(), "TumblingWindowInSeconds") {
			t.Errorf("%s: %+v, %v", file, e, err)
		}
		if _, err := explain.Explain(t.Context(), []byte(strings.Replace(doc, "{", `{"window":null,`, 1))); err != nil {
			t.Errorf("%s without a window: %v", file, err)
		}
	}
}

const (
	pipedKinesis = `{"kinesisSchemaVersion":"1.0","partitionKey":"1","sequenceNumber":"495","data":"eyJvcmRlciI6MX0=","approximateArrivalTimestamp":1545084650.987,
		"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"shardId-000000000006:495","eventName":"aws:kinesis:record","awsRegion":"eu-west-1","eventSourceARN":"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks"}`
	pipedSQS      = `{"messageId":"m1","receiptHandle":"r","body":"{}","attributes":{},"messageAttributes":{},"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:orders","awsRegion":"eu-west-1"}`
	pipedDynamoDB = `{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-06-10T19:26:16.525","dynamodb":{"Keys":{"id":{"S":"1"}},"SequenceNumber":"111"}}`
	pipedKafka    = `{"eventSource":"aws:kafka","eventSourceArn":"arn:aws:kafka:eu-west-1:123456789012:cluster/c/1","eventSourceKey":"orders-0","topic":"orders","partition":0,"offset":15,"timestamp":1545084650987,"value":"aGVsbG8="}`
	onCustomBus   = `{"id":"1","source":"shop","detail-type":"order","detail":{"id":17}}`
)

// TestPipes: a pipe sends an array of records, of which the source is known.
func TestPipes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, functions, kind, key string }{
		"Kinesis":  {"[" + pipedKinesis + "]", "KinesisRecord", "Kinesis", "kinesis/arn:aws:kinesis:eu-west-1:123456789012:stream%2Fclicks/shardId-000000000006/1"},
		"SQS":      {"[" + pipedSQS + "," + pipedSQS + "]", "SQSMessage; SQSMessage", "SQS", "sqs/m1"},
		"DynamoDB": {"[" + pipedDynamoDB + "]", "DynamoDBRecord", "DynamoDB", "dynamodb/arn:aws:dynamodb:eu-west-1:123456789012:table%2Ft/id/S/1"},
		"Kafka":    {" [\n" + pipedKafka + "]", "KafkaRecord", "Kafka", "kafka/orders/0/15/1545084650987"},
		"no key":   {"[" + strings.Replace(pipedKinesis, `"partitionKey":"1",`, "", 1) + "]", "KinesisRecord", "Kinesis", "kinesis/arn:aws:kinesis:eu-west-1:123456789012:stream%2Fclicks/shardId-000000000006:495"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := explained(t, []byte(c.doc))
			if got := functions(e); got != c.functions || !strings.Contains(e.Kind, c.kind) || !strings.Contains(e.Kind, "pipe") || e.Records[0].Where != "[0]" {
				t.Errorf("%s: %q", e.Kind, got)
			}
			if k := e.Records[0].Keys[0]; k.Name != c.key || !strings.Contains(k.Function, "docs/SOURCES.md#eventbridge-pipes") {
				t.Errorf("%+v", k)
			}
		})
	}
	for text, want := range map[string]string{
		`[{"order":17}]`:                 "WITH_METADATA",
		`[{"eventSource":"aws:amq"}]`:    "docs/SOURCES.md#eventbridge-pipes",
		`[1]`:                            "WITH_METADATA",
		`[]`:                             "not a JSON object",
		pipedKinesis:                     "has no records",
		pipedSQS:                         "has no records",
		pipedKafka:                       "has no records",
		`{"eventSource":"aws:dynamodb"}`: "has no records",
	} {
		if e, err := explain.Explain(t.Context(), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, want %q", text, e, err, want)
		}
	}
}

// TestCustomBus: the array of a custom event bus is known by its first event.
func TestCustomBus(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"[" + onCustomBus + "]": "CustomBusEvent",
		`[{"Data":{},"SystemMetadata":{"aws:EventId":"1","EventGroupId":"g","aws:DeliveryType":"LIVE"}},{"order":17}]`: "CustomBusEvent CustomBusGroup; !",
		`[` + strings.Replace(onCustomBus, `"id":"1",`, "", 1) + `]`:                                                   "!",
	} {
		e := explained(t, []byte(doc))
		if got := functions(e); got != want || !strings.Contains(e.Kind, "Custom Event Bus") || e.Records[0].Where != "[0]" {
			t.Errorf("%s: %q, %q", doc, e.Kind, got)
		}
	}
}

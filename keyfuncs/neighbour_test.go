package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// inSQS is a key function of messages, given the body alone.
func inSQS(f keyfuncs.Func[events.SQSMessage]) keyfuncs.Func[string] {
	return func(ctx context.Context, text string) (lock.Key, error) {
		return f(ctx, events.SQSMessage{MessageId: "m", EventSource: "aws:sqs", Body: text})
	}
}

func inSNS(f keyfuncs.Func[events.SNSEventRecord]) keyfuncs.Func[string] {
	return func(ctx context.Context, text string) (lock.Key, error) {
		return f(ctx, events.SNSEventRecord{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m", Message: text}})
	}
}

// TestNeighboursAreRefused: what a key function for another way or source would
// take is never acknowledged, and the error says which one that is.
func TestNeighboursAreRefused(t *testing.T) { // F26
	t.Parallel()
	s3, bridged, ordinary := file(t, "s3-put.json"), file(t, "eventbridge-s3.json"), `{"customer":"jane","order":17}`
	topic := load[events.SQSEvent](t, "sqs-sns-s3.json").Records[0].Body
	alarm := load[events.SNSEvent](t, "sns-alarm.json").Records[0].SNS.Message
	for name, c := range map[string]struct {
		key         keyfuncs.Func[string]
		text, field string
		says        string
	}{
		"SNS message for S3ViaSQS":            {inSQS(keyfuncs.S3ViaSQSRecord), topic, "body", "S3ViaSNSAndSQS"},
		"EventBridge for S3ViaSQS":            {inSQS(keyfuncs.S3ViaSQSRecord), bridged, "body", "EventBridgeViaSQS"},
		"any JSON for S3ViaSQS":               {inSQS(keyfuncs.S3ViaSQSRecord), ordinary, "body", "no S3 notification"},
		"no records for S3ViaSQS":             {inSQS(keyfuncs.S3ViaSQSRecord), `{"Records":[]}`, "body", "no S3 notification"},
		"null for S3ViaSQS":                   {inSQS(keyfuncs.S3ViaSQSRecord), `null`, "body", "no S3 notification"},
		"a test event of another service":     {inSQS(keyfuncs.S3ViaSQSRecord), `{"Event":"s3:TestEvent","Service":"Another"}`, "body", "no S3 notification"},
		"SQS event for S3ViaSQS":              {inSQS(keyfuncs.S3ViaSQSRecord), file(t, "sqs.json"), "body", "SQSMessage"},
		"SNS event for S3ViaSQS":              {inSQS(keyfuncs.S3ViaSQSRecord), file(t, "sns-s3.json"), "body", "S3ViaSNS"},
		"any JSON for S3Latest in a body":     {inSQS(keyfuncs.SQSBody(keyfuncs.S3Latest)), ordinary, "body", "no S3 notification"},
		"EventBridge for S3ViaSNS":            {inSNS(keyfuncs.S3ViaSNSRecord), bridged, "Sns.Message", "SNSBody(EventBridge)"},
		"alarm for S3ViaSNS":                  {inSNS(keyfuncs.S3ViaSNSRecord), alarm, "Sns.Message", "CloudWatchAlarmViaSNS"},
		"any JSON for S3ViaSNS":               {inSNS(keyfuncs.S3ViaSNSRecord), ordinary, "Sns.Message", "no S3 notification"},
		"S3 for the alarm function":           {inSNS(keyfuncs.CloudWatchAlarmViaSNSRecord), s3, "Sns.Message", "S3ViaSNS"},
		"raw delivery for S3ViaSNSAndSQS":     {inSQS(keyfuncs.S3ViaSNSAndSQSRecord), s3, "body", "S3ViaSQS"},
		"EventBridge for S3ViaSNSAndSQS":      {inSQS(keyfuncs.S3ViaSNSAndSQSRecord), bridged, "body", "EventBridgeViaSQS"},
		"alarm in a queue for S3":             {inSQS(keyfuncs.S3ViaSNSAndSQSRecord), strings.Replace(topic, "Records", "Recs", 1), "body.Message", "no S3 notification"},
		"S3 for EventBridgeViaSQS":            {inSQS(keyfuncs.EventBridgeViaSQSRecord), s3, "body", "S3ViaSQS"},
		"SNS message for EventBridgeViaSQS":   {inSQS(keyfuncs.EventBridgeViaSQSRecord), topic, "body", "S3ViaSNSAndSQS"},
		"the test event for EventBridge…":     {inSQS(keyfuncs.EventBridgeViaSQSRecord), file(t, "s3-test.json"), "body", "S3ViaSQS"},
		"any JSON for EventBridgeViaSQS":      {inSQS(keyfuncs.EventBridgeViaSQSRecord), ordinary, "body.id", "missing"},
		"S3 for SQSBody of EventBridge of S3": {inSQS(keyfuncs.SQSBody(keyfuncs.S3ViaEventBridge)), s3, "body", "S3ViaSQS"},
	} {
		_, err := c.key(t.Context(), c.text)
		refused(t, name, err, c.field, c.says)
	}
}

// TestOnlyTheTestEventIsIgnored: it comes on every way.
func TestOnlyTheTestEventIsIgnored(t *testing.T) { // F26
	t.Parallel()
	test := file(t, "s3-test.json")
	topic := marshal(t, events.SNSEntity{Type: "Notification", MessageID: "m", TopicArn: "arn:aws:sns:us-east-2:123456789012:t", Message: test})
	for name, c := range map[string]struct {
		key  keyfuncs.Func[string]
		text string
	}{
		"SQS":         {inSQS(keyfuncs.S3ViaSQSRecord), test},
		"SNS":         {inSNS(keyfuncs.S3ViaSNSRecord), test},
		"SNS and SQS": {inSQS(keyfuncs.S3ViaSNSAndSQSRecord), topic},
		"SQSBody":     {inSQS(keyfuncs.SQSBody(keyfuncs.S3Latest)), test},
	} {
		if _, err := c.key(t.Context(), c.text); !errors.Is(err, keyfuncs.ErrIgnore) {
			t.Errorf("%s: %v, want ErrIgnore", name, err)
		}
	}
}

// TestRecordsOfAnotherSourceAreRefused: a decoded event still says where its
// records come from.
func TestRecordsOfAnotherSourceAreRefused(t *testing.T) {
	t.Parallel()
	s3 := func(f keyfuncs.Func[events.S3Event]) keyfuncs.Func[string] { return decoding(f) }
	for name, c := range map[string]struct {
		key                keyfuncs.Func[string]
		event, field, says string
	}{
		"SQS for S3Object":         {s3(keyfuncs.S3Object), "sqs-s3.json", "Records[0].eventSource", "S3ViaSQS"},
		"SNS for S3Latest":         {s3(keyfuncs.S3Latest), "sns-s3.json", "Records[0].eventSource", "S3ViaSNS"},
		"Kinesis for S3Object":     {s3(keyfuncs.S3Object), "kinesis.json", "Records[0].eventSource", "Kinesis"},
		"DynamoDB for S3Object":    {s3(keyfuncs.S3Object), "dynamodb.json", "Records[0].eventSource", "DynamoDBStream"},
		"S3 for SQSMessage":        {decoding(keyfuncs.SQSMessage), "s3-put.json", "Records[0].eventSource", "S3Object"},
		"SNS for SQSFIFO":          {decoding(keyfuncs.SQSFIFO), "sns.json", "Records[0].eventSource", "SNSMessage"},
		"Kinesis for SQSFIFO":      {decoding(keyfuncs.SQSFIFO), "kinesis.json", "Records[0].eventSource", "Kinesis"},
		"S3 for S3ViaSQS":          {decoding(keyfuncs.S3ViaSQS), "s3-put.json", "Records[0].eventSource", "S3Object"},
		"S3 for SNSMessage":        {decoding(keyfuncs.SNSMessage), "s3-put.json", "Records[0].Sns.MessageId", "S3Object"},
		"SQS for S3ViaSNS":         {decoding(keyfuncs.S3ViaSNS), "sqs-sns-s3.json", "Records[0].EventSource", "S3ViaSQS"},
		"SQS for CloudWatchAlarm…": {decoding(keyfuncs.CloudWatchAlarmViaSNS), "sqs.json", "Records[0].EventSource", "SQSMessage"},
		"DynamoDB for Kinesis":     {decoding(keyfuncs.Kinesis), "dynamodb.json", "Records[0].eventSource", "DynamoDBStream"},
		"RabbitMQ for ActiveMQ":    {decoding(keyfuncs.ActiveMQ), "rabbitmq.json", "eventSource", "RabbitMQ"},
		"ActiveMQ for RabbitMQ":    {decoding(keyfuncs.RabbitMQ), "activemq.json", "eventSource", "ActiveMQ"},
		"ActiveMQ for Kafka":       {decoding(keyfuncs.Kafka), "activemq.json", "eventSource", "ActiveMQ"},
		"Kinesis for DynamoDB":     {decoding(keyfuncs.DynamoDBStream), "kinesis.json", "Records[0].eventSource", "Kinesis"},
	} {
		_, err := c.key(t.Context(), file(t, c.event))
		refused(t, name, err, c.field, c.says)
	}
	_, err := keyfuncs.EventBridgeDetail(keyfuncs.S3Object)(t.Context(), load[events.EventBridgeEvent](t, "eventbridge-s3.json"))
	refused(t, "the detail for S3Object", err, "detail", "S3ViaEventBridge")
	two := load[events.S3Event](t, "sqs-s3.json")
	two.Records = append(two.Records, two.Records...)
	_, err = keyfuncs.S3Object(t.Context(), two)
	refused(t, "a batch of SQS for S3Object", err, "Records[0].eventSource", "S3ViaSQS")
	two.Records[0].EventSource = "minio:s3"
	_, err = keyfuncs.S3Object(t.Context(), two)
	refused(t, "a source that is not known", err, "Records[0].eventSource", "no source of an S3 notification")
}

func decoding[E any](f keyfuncs.Func[E]) keyfuncs.Func[string] {
	return func(ctx context.Context, text string) (lock.Key, error) {
		var e E
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return lock.Key{}, err
		}
		return f(ctx, e)
	}
}

package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// The ways of an S3 notification through a queue, a topic, and both.
var (
	s3InQueue = keyfuncs.SQSBody(keyfuncs.S3Object)
	s3InTopic = keyfuncs.SNSBody(keyfuncs.S3Object)
	s3InBoth  = keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object))
)

// decoding lets a key function take the JSON of an event.
func decoding[E any](key keyfuncs.Func[E]) keyfuncs.Func[string] {
	return func(ctx context.Context, text string) (lock.Key, error) {
		var e E
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return lock.Key{}, err
		}
		return key(ctx, e)
	}
}

// TestNeighboursAreRefused: what needs the key function of another way or
// source is never acknowledged, and the error says which one that is.
func TestNeighboursAreRefused(t *testing.T) { // F26
	t.Parallel()
	s3, bridged, ordinary := text(t, "s3-put.json"), text(t, "eventbridge-s3.json"), `{"customer":"jane","order":17}`
	topic := load[events.SQSEvent](t, "sqs-sns-s3.json").Records[0].Body
	alarm := load[events.SNSEvent](t, "sns-alarm.json").Records[0].SNS.Message
	const pointer = `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"059f36b4"}]`
	bridge := inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeEvent))
	for name, c := range map[string]struct {
		key         keyfuncs.Func[string]
		text, field string
		says        string
	}{
		"SNS message for S3 in a queue":         {inQueue(s3InQueue), topic, "body", "SQSBody(SNSBody(S3Object))"},
		"EventBridge for S3 in a queue":         {inQueue(s3InQueue), bridged, "body", "SQSBody(EventBridgeEvent)"},
		"any JSON for S3 in a queue":            {inQueue(s3InQueue), ordinary, "body", "no S3 notification"},
		"no records for S3 in a queue":          {inQueue(s3InQueue), `{"Records":[]}`, "body", "no S3 notification"},
		"null for S3 in a queue":                {inQueue(s3InQueue), `null`, "body", "no S3 notification"},
		"a test event of another service":       {inQueue(s3InQueue), `{"Event":"s3:TestEvent","Service":"Another"}`, "body", "no S3 notification"},
		"a large message for S3 in a queue":     {inQueue(s3InQueue), pointer, "body", "SQSMessage or SNSRecord"},
		"a large message in a topic":            {inTopic(keyfuncs.SNSBody(byCustomer)), pointer, "Sns.Message", "extended client"},
		"the digest of a pointer":               {inQueue(keyfuncs.SQSBody(jmespath.Payload)), pointer, "body", "extended client"},
		"a large message of an old library":     {inQueue(keyfuncs.SQSBody(byCustomer)), `["com.amazon.sqs.javamessaging.MessageS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`, "body", "extended client"},
		"a part of a pointer":                   {inQueue(keyfuncs.SQSBody(jmespath.Path("[1].s3Key"))), pointer, "body", "extended client"},
		"the digest of an SNS message":          {inQueue(keyfuncs.SQSBody(jmespath.Payload)), topic, "body.payload", "SNSBody"},
		"the digest of an EventBridge event":    {inQueue(keyfuncs.SQSBody(jmespath.Payload)), bridged, "body.payload", "EventBridgeDetail"},
		"a list of another kind":                {inQueue(keyfuncs.SQSBody(byCustomer)), `["order",{"s3BucketName":"b"}]`, "body", "not JSON of the expected shape"},
		"SQS event for S3 in a queue":           {inQueue(s3InQueue), text(t, "sqs.json"), "body", "SQSMessage"},
		"SNS event for S3 in a queue":           {inQueue(s3InQueue), text(t, "sns-s3.json"), "body", "SNSBody(S3Object)"},
		"any JSON for the latest in a queue":    {inQueue(keyfuncs.SQSBody(s3Latest)), ordinary, "body", "no S3 notification"},
		"EventBridge for S3 in a topic":         {inTopic(s3InTopic), bridged, "Sns.Message", "SNSBody(EventBridgeEvent)"},
		"alarm for S3 in a topic":               {inTopic(s3InTopic), alarm, "Sns.Message", "SNSAlarmRecord"},
		"any JSON for S3 in a topic":            {inTopic(s3InTopic), ordinary, "Sns.Message", "no S3 notification"},
		"S3 for SNSAlarmRecord":                 {inTopic(services.SNSAlarmRecord), s3, "Sns.Message", "SNSBody(S3Object)"},
		"raw delivery for both":                 {inQueue(s3InBoth), s3, "body", "SQSBody(S3Object)"},
		"EventBridge for both":                  {inQueue(s3InBoth), bridged, "body", "SQSBody(EventBridgeEvent)"},
		"no records in both":                    {inQueue(s3InBoth), strings.Replace(topic, "Records", "Recs", 1), "body.Message", "no S3 notification"},
		"S3 for EventBridge in a queue":         {bridge, s3, "body", "SQSBody(S3Object)"},
		"SNS message for EventBridge":           {bridge, topic, "body", "SQSBody(SNSBody(S3Object))"},
		"the test event for EventBridge":        {bridge, text(t, "s3-test.json"), "body", "SQSBody(S3Object)"},
		"message for EventBridge":               {decoding(keyfuncs.EventBridgeEvent), ordinary, "source", "lambdalock explain"},
		"message for a schedule":                {decoding(keyfuncs.EventBridgeSchedule), ordinary, "source", "lambdalock explain"},
		"message for S3 through EventBridge":    {decoding(keyfuncs.EventBridgeS3Object), ordinary, "source", "lambdalock explain"},
		"message for optional EventBridge":      {decoding(keyfuncs.Optional(keyfuncs.EventBridgeEvent)), ordinary, "source", "lambdalock explain"},
		"any JSON for EventBridge in a queue":   {bridge, ordinary, "body.source", "lambdalock explain"},
		"S3 for S3 through EventBridge, queued": {inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeS3Object)), s3, "body", "SQSBody(S3Object)"},
	} {
		_, err := c.key(t.Context(), c.text)
		refused(t, name, err, c.field, c.says)
	}
}

// TestMarkedPointersAreRefused: some libraries for large messages write an
// object that may be anybody's. What marks it is an attribute of the message.
func TestMarkedPointersAreRefused(t *testing.T) { // F26
	t.Parallel()
	const pointer = `{"s3BucketName":"large-bodies","s3Key":"b03530d9"}`
	for _, attribute := range []string{"ExtendedPayloadSize", "SQSLargePayloadSize", "S3MessageBodyKey"} {
		message := events.SQSMessage{MessageId: "m", Body: pointer, MessageAttributes: map[string]events.SQSMessageAttribute{attribute: {DataType: "Number"}}}
		for name, key := range map[string]keyfuncs.Func[events.SQSMessage]{
			"digest": keyfuncs.SQSBody(jmespath.Payload), "path": keyfuncs.SQSBody(jmespath.Path("s3Key")),
			"typed": keyfuncs.SQSBody(keyfuncs.ByField(func(o struct{ S3Key string }) string { return o.S3Key })),
		} {
			_, err := key(t.Context(), message)
			refused(t, attribute+", "+name, err, "body", "extended client")
		}
		record := events.SNSEventRecord{SNS: events.SNSEntity{Type: "Notification", TopicArn: "t", MessageID: "m", Message: pointer, MessageAttributes: map[string]any{attribute: map[string]any{"Type": "Number", "Value": "424699"}}}}
		_, err := keyfuncs.SNSBody(jmespath.Payload)(t.Context(), record)
		refused(t, attribute+", topic", err, "Sns.Message", "extended client")
		message.Body, message.MessageAttributes = marshal(t, record.SNS), nil
		_, err = keyfuncs.SQSBody(keyfuncs.SNSBody(jmespath.Payload))(t.Context(), message)
		refused(t, attribute+", both", err, "body.Message", "extended client")
	}
	other := events.SQSMessage{MessageId: "m", Body: `{"s3Key":"7"}`, MessageAttributes: map[string]events.SQSMessageAttribute{"Size": {DataType: "Number"}}}
	if k := keyOf(t, keyfuncs.SQSBody(jmespath.Path("s3Key")), other); k.Name != `"7"` {
		t.Errorf("%+v", k)
	}
}

// TestOnlyTheTestEventIsIgnored: it comes on every way.
func TestOnlyTheTestEventIsIgnored(t *testing.T) { // F26
	t.Parallel()
	test := text(t, "s3-test.json")
	for name, c := range map[string]struct {
		key  keyfuncs.Func[string]
		text string
	}{
		"SQS":               {inQueue(s3InQueue), test},
		"SNS":               {inTopic(s3InTopic), test},
		"SNS and SQS":       {inQueue(s3InBoth), published(t, test)},
		"the latest in SQS": {inQueue(keyfuncs.SQSBody(s3Latest)), test},
		"Kinesis":           {inStream(keyfuncs.KinesisBody(keyfuncs.S3Object)), test},
		"in a detail":       {detail(keyfuncs.EventBridgeDetail(keyfuncs.S3Object)), test},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := c.key(t.Context(), c.text); !errors.Is(err, keyfuncs.ErrIgnore) {
				t.Errorf("%v, want ErrIgnore", err)
			}
		})
	}
}

// detail lets a key function of EventBridge take the detail of an event.
func detail(key keyfuncs.Func[events.EventBridgeEvent]) keyfuncs.Func[string] {
	return func(ctx context.Context, text string) (lock.Key, error) {
		return key(ctx, events.EventBridgeEvent{ID: "m", Detail: json.RawMessage(text)})
	}
}

// TestRecordsOfAnotherSourceAreRefused: a decoded event still says where its
// records come from.
func TestRecordsOfAnotherSourceAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key                keyfuncs.Func[string]
		event, field, says string
	}{
		"SQS for S3Object":       {decoding(keyfuncs.S3Object), "sqs-s3.json", "Records[0].eventSource", "SQSBody(S3Object)"},
		"SNS for the latest":     {decoding(s3Latest), "sns-s3.json", "Records[0].eventSource", "SNSBody(S3Object)"},
		"Kinesis for S3Object":   {decoding(keyfuncs.S3Object), "kinesis.json", "Records[0].eventSource", "KinesisRecord"},
		"DynamoDB for S3Object":  {decoding(keyfuncs.S3Object), "dynamodb.json", "Records[0].eventSource", "DynamoDBRecord"},
		"S3 for SQSMessage":      {decoding(sqsMessage), "s3-put.json", "Records[0].eventSource", "S3Object"},
		"SNS for SQSFIFO":        {decoding(sqsFIFOMessage), "sns.json", "Records[0].eventSource", "SNSRecord"},
		"Kinesis for SQSFIFO":    {decoding(sqsFIFOMessage), "kinesis.json", "Records[0].eventSource", "KinesisRecord"},
		"S3 for S3 in a queue":   {decoding(keyfuncs.Single[events.SQSEvent](s3InQueue)), "s3-put.json", "Records[0].eventSource", "S3Object"},
		"S3 for SNSRecord":       {decoding(snsRecord), "s3-put.json", "Records[0].Sns.MessageId", "S3Object"},
		"SQS for S3 in a topic":  {decoding(keyfuncs.Single[events.SNSEvent](s3InTopic)), "sqs-sns-s3.json", "Records[0].EventSource", "SQSBody(S3Object)"},
		"SQS for SNSAlarmRecord": {decoding(snsAlarm), "sqs.json", "Records[0].EventSource", "SQSMessage"},
		"DynamoDB for Kinesis":   {decoding(kinesisRecord), "dynamodb.json", "Records[0].eventSource", "DynamoDBRecord"},
		"RabbitMQ for ActiveMQ":  {decoding(keyfuncs.ActiveMQEvent), "rabbitmq.json", "eventSource", "RabbitMQ"},
		"ActiveMQ for RabbitMQ":  {decoding(keyfuncs.RabbitMQEvent), "activemq.json", "eventSource", "ActiveMQ"},
		"Kinesis for DynamoDB":   {decoding(dynamoDBRecord), "kinesis.json", "Records[0].eventSource", "KinesisRecord"},
		"Kinesis for SES":        {decoding(sesRecord), "kinesis.json", "Records[0].eventSource", "KinesisRecord"},
		"Kinesis for CodeCommit": {decoding(codeCommitRecord), "kinesis.json", "Records[0].eventSource", "KinesisRecord"},
	} {
		_, err := c.key(t.Context(), text(t, c.event))
		refused(t, name, err, c.field, c.says)
	}
	_, err := keyfuncs.EventBridgeDetail(keyfuncs.S3Object)(t.Context(), load[events.EventBridgeEvent](t, "eventbridge-s3.json"))
	refused(t, "the detail for S3Object", err, "detail", "EventBridgeS3Object")
	two := load[events.S3Event](t, "sqs-s3.json")
	two.Records = append(two.Records, two.Records...)
	_, err = keyfuncs.S3Object(t.Context(), two)
	refused(t, "a batch of SQS for S3Object", err, "Records[0].eventSource", "SQSBody(S3Object)")
	two.Records[0].EventSource = "minio:s3"
	_, err = keyfuncs.S3Object(t.Context(), two)
	refused(t, "an unknown source", err, "Records[0].eventSource", "not a source of an S3 notification")
}

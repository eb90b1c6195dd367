package keyfuncs_test

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var uploaded = func() events.S3Event {
	var r events.S3EventRecord
	r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.Sequencer = "pictures", "holiday+2026/cat.png", "0055AED6DCD90281E5"
	return events.S3Event{Records: []events.S3EventRecord{r}}
}()

// notification is what S3 sends for an upload.
const notification = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put",
	"s3":{"bucket":{"name":"pictures"},"object":{"key":"cat.png","sequencer":"0055AED6DCD90281E5"}}}]}`

var (
	message     = events.SQSMessage{MessageId: "059f36b4", Body: `{"customer": "jane"}`}
	fifoMessage = events.SQSMessage{
		EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
		Attributes:     map[string]string{"MessageGroupId": "jane", "SequenceNumber": "18849496460467696128", "MessageDeduplicationId": "order-17"},
	}
)

func ExampleS3Object() {
	show(keyfuncs.S3Object(context.Background(), uploaded))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

func ExampleS3Record() {
	show(keyfuncs.S3Record(context.Background(), uploaded.Records[0]))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

// A handler of whole events, of which only the newest upload matters.
func ExampleS3LatestRecord() {
	key := keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord)
	show(key(context.Background(), uploaded))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "s0055AED6DCD90281E5", error <nil>
}

func ExampleSQSMessage() {
	show(keyfuncs.SQSMessage(context.Background(), message))
	// Output: name "sqs/059f36b4", event "059f36b4", order "", error <nil>
}

func ExampleSQSFIFOMessage() {
	show(keyfuncs.SQSFIFOMessage(context.Background(), fifoMessage))
	// Output: name "sqs/arn:aws:sqs:eu-central-1:123456789012:orders.fifo/jane", event "18849496460467696128", order "02018849496460467696128", error <nil>
}

// An order message locks its customer; the message id tells duplicates.
func ExampleSQSBody() {
	type order struct {
		Customer string `json:"customer"`
	}
	perCustomer := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: o.Customer}, nil }
	show(keyfuncs.SQSBody(perCustomer)(context.Background(), message))
	// Output: name "jane", event "059f36b4", order "", error <nil>
}

// S3 sends its notifications to a queue.
func ExampleSQSBody_s3() {
	key := keyfuncs.SQSBody(keyfuncs.S3Object)
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: notification}))
	// Output: name "s3/pictures/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

// An EventBridge rule sends its events to a queue.
func ExampleSQSBody_eventBridge() {
	key := keyfuncs.SQSBody(keyfuncs.EventBridgeEvent)
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: `{"id": "6a7e8feb", "source": "shop", "detail-type": "Order", "detail": {}}`}))
	// Output: name "eventbridge/shop/6a7e8feb", event "6a7e8feb", order "", error <nil>
}

func ExampleSNSRecord() {
	show(keyfuncs.SNSRecord(context.Background(), events.SNSEventRecord{SNS: events.SNSEntity{MessageID: "95df01b4"}}))
	// Output: name "sns/95df01b4", event "95df01b4", order "", error <nil>
}

// S3 sends its notifications to a topic.
func ExampleSNSBody() {
	key := keyfuncs.SNSBody(keyfuncs.S3Object)
	show(key(context.Background(), events.SNSEventRecord{SNS: events.SNSEntity{MessageID: "95df01b4", Message: notification}}))
	// Output: name "s3/pictures/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

// S3 sends its notifications to a topic, and the topic to a queue.
func ExampleSNSBody_queue() {
	key := keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object))
	body := `{"Type": "Notification", "MessageId": "95df01b4", "Message": "{\"Event\": \"s3:TestEvent\"}"}`
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: body}))
	// Output: name "", event "95df01b4", order "", error the S3 event has no records: it is the s3:TestEvent, which S3 sends when a notification is set up: lambdalock: nothing to work on
}

func ExampleEventBridgeEvent() {
	show(keyfuncs.EventBridgeEvent(context.Background(), events.EventBridgeEvent{ID: "6a7e8feb", Source: "shop"}))
	// Output: name "eventbridge/shop/6a7e8feb", event "6a7e8feb", order "", error <nil>
}

// The account is locked; the id of the event tells duplicates.
func ExampleEventBridgeDetail() {
	type booking struct {
		Account string `json:"account"`
	}
	key := keyfuncs.EventBridgeDetail(keyfuncs.ByField(func(b booking) string { return b.Account }))
	show(key(context.Background(), events.EventBridgeEvent{ID: "6a7e8feb", Source: "bank", Detail: []byte(`{"account": "jane"}`)}))
	// Output: name "jane", event "6a7e8feb", order "", error <nil>
}

func ExampleEventBridgeSchedule() {
	show(keyfuncs.EventBridgeSchedule(context.Background(), events.EventBridgeEvent{
		DetailType: "Scheduled Event", Time: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC),
		Resources: []string{"arn:aws:events:eu-central-1:123456789012:rule/nightly"},
	}))
	// Output: name "schedule/arn:aws:events:eu-central-1:123456789012:rule%2Fnightly", event "2026-11-21T03:00:00Z", order "", error <nil>
}

// The same upload has the same key as through a queue or a topic.
func ExampleEventBridgeS3Object() {
	show(keyfuncs.EventBridgeS3Object(context.Background(), events.EventBridgeEvent{
		Source: "aws.s3", DetailType: "Object Created",
		Detail: []byte(`{"bucket": {"name": "pictures"}, "object": {"key": "cat.png", "sequencer": "0055AED6DCD90281E5"}}`),
	}))
	// Output: name "s3/pictures/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

func ExampleKinesisRecord() {
	show(keyfuncs.KinesisRecord(context.Background(), events.KinesisEventRecord{
		EventID:        "shardId-000000000006:4959033827",
		EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/readings",
		Kinesis:        events.KinesisRecord{PartitionKey: "sensor-17", SequenceNumber: "4959033827"},
	}))
	// Output: name "kinesis/arn:aws:kinesis:eu-central-1:123456789012:stream%2Freadings/shardId-000000000006/sensor-17", event "shardId-000000000006:4959033827", order "0104959033827", error <nil>
}

// A reading in a stream locks its sensor; shard and sequence number tell
// duplicates.
func ExampleKinesisBody() {
	type reading struct {
		Sensor string `json:"sensor"`
	}
	bySensor := func(_ context.Context, v reading) (lock.Key, error) { return lock.Key{Name: v.Sensor}, nil }
	r := events.KinesisEventRecord{EventID: "shardId-000000000006:4959", EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/readings"}
	r.Kinesis.Data = []byte(`{"sensor": "kitchen"}`)
	show(keyfuncs.KinesisBody(bySensor)(context.Background(), r))
	// Output: name "kitchen", event "kinesis/arn:aws:kinesis:eu-central-1:123456789012:stream%2Freadings/shardId-000000000006:4959", order "", error <nil>
}

func ExampleDynamoDBRecord() {
	show(keyfuncs.DynamoDBRecord(context.Background(), events.DynamoDBEventRecord{
		EventSourceArn: "arn:aws:dynamodb:eu-central-1:123456789012:table/orders/stream/2026-06-10T19:26:16.525",
		Change: events.DynamoDBStreamRecord{
			Keys: map[string]events.DynamoDBAttributeValue{"id": events.NewNumberAttribute("17")}, SequenceNumber: "442158",
		},
	}))
	// Output: name "dynamodb/arn:aws:dynamodb:eu-central-1:123456789012:table%2Forders/id/N/17", event "442158", order "2026-06-10T19:26:16.525 006442158", error <nil>
}

func ExampleKafkaRecord() {
	show(keyfuncs.KafkaRecord(context.Background(), events.KafkaRecord{
		Topic: "orders", Partition: 2, Offset: 15, Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(1795249183000)},
	}))
	// Output: name "kafka/orders/2/15/1795249183000", event "2/15/1795249183000", order "", error <nil>
}

func ExampleActiveMQEvent() {
	show(keyfuncs.ActiveMQEvent(context.Background(), events.ActiveMQEvent{Messages: []events.ActiveMQMessage{{
		MessageID: "ID:b-7f1c9d54:42", Destination: events.ActiveMQDestination{PhysicalName: "orders"},
	}}}))
	// Output: name "activemq/orders/ID:b-7f1c9d54:42", event "ID:b-7f1c9d54:42", order "", error <nil>
}

func ExampleRabbitMQEvent() {
	id, app := "parcel-2048", "shop"
	var m events.RabbitMQMessage
	m.BasicProperties.MessageID, m.BasicProperties.AppID = &id, &app
	show(keyfuncs.RabbitMQEvent(context.Background(), events.RabbitMQEvent{
		MessagesByQueue: map[string][]events.RabbitMQMessage{"parcels::/": {m}},
	}))
	// Output: name "rabbitmq/parcels::%2F/shop/parcel-2048", event "parcel-2048", order "", error <nil>
}

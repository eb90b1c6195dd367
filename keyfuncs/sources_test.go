package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// keyOf is the key of an event in testdata, after a change.
func keyOf[E any](t *testing.T, file string, key keyfuncs.Func[E], change func(*E)) (lock.Key, error) {
	t.Helper()
	e := load[E](t, file)
	if change != nil {
		change(&e)
	}
	return key(t.Context(), e)
}

// same checks that an event has this key, also when it comes a second time.
func same[E any](t *testing.T, file string, key keyfuncs.Func[E], want lock.Key) {
	t.Helper()
	for range 2 {
		if got, err := keyOf(t, file, key, nil); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", file, got, err, want)
		}
	}
}

// refuses checks that a changed event gives a *lock.KeyError of that field.
func refuses[E any](t *testing.T, file string, key keyfuncs.Func[E], field string, change func(*E)) {
	t.Helper()
	_, err := keyOf(t, file, key, change)
	if e, ok := err.(*lock.KeyError); !ok || e.Field != field {
		t.Errorf("%s without %s: %v, want a KeyError of that field", file, field, err)
	}
}

// TestS3EveryWay: an upload has one key, whichever way its notification came.
func TestS3EveryWay(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281E5"}
	same(t, "s3-put.json", keyfuncs.S3Object, want)
	same(t, "sqs-s3.json", keyfuncs.S3ViaSQS, want)
	same(t, "sns-s3.json", keyfuncs.S3ViaSNS, want)
	same(t, "sqs-sns-s3.json", keyfuncs.S3ViaSNSAndSQS, want)
	same(t, "eventbridge-s3.json", keyfuncs.S3ViaEventBridge, want)

	want.Order = "s0055AED6DCD90281E5"
	latest := keyfuncs.SQSBody(keyfuncs.S3Latest)
	if got, err := latest(t.Context(), load[events.SQSEvent](t, "sqs-s3.json").Records[0]); got != want || err != nil {
		t.Errorf("S3Latest in a body: %+v, %v", got, err)
	}
	if _, err := keyOf(t, "sqs-s3-test.json", keyfuncs.S3ViaSQS, nil); !errors.Is(err, keyfuncs.ErrIgnore) {
		t.Errorf("an s3:TestEvent in a queue: %v, want ErrIgnore", err)
	}
	refuses(t, "sqs-s3.json", keyfuncs.S3ViaSQS, "Records[0].body", func(e *events.SQSEvent) { e.Records[0].Body = "{" })
	refuses(t, "sqs-s3.json", keyfuncs.S3ViaSQS, "Records[0].body", func(e *events.SQSEvent) { // F31
		e.Records[0].Body = strings.Replace(e.Records[0].Body, "holiday+2026", "%zz", 1)
	})
	refuses(t, "sqs-s3.json", keyfuncs.S3ViaSQS, "Records[0].body.Records[0].s3.bucket.name", func(e *events.SQSEvent) {
		e.Records[0].Body = strings.Replace(e.Records[0].Body, `"pictures-example"`, `""`, 1)
	})
	refuses(t, "sns-s3.json", keyfuncs.S3ViaSNS, "Records[0].Sns.Message", func(e *events.SNSEvent) { e.Records[0].SNS.Message = "" })
	refuses(t, "sqs-sns-s3.json", keyfuncs.S3ViaSNSAndSQS, "Records[0].body.Message", func(e *events.SQSEvent) {
		e.Records[0].Body = `{"Type":"Notification","Message":"[]"}`
	})
	for field, change := range map[string]func(*events.EventBridgeEvent){
		"source":             func(e *events.EventBridgeEvent) { e.Source = "aws.ec2" },
		"detail":             func(e *events.EventBridgeEvent) { e.Detail = nil },
		"detail.bucket.name": func(e *events.EventBridgeEvent) { e.Detail = json.RawMessage(`{}`) },
		"detail.object.key":  func(e *events.EventBridgeEvent) { e.Detail = json.RawMessage(`{"bucket":{"name":"b"}}`) },
		"detail.object.sequencer": func(e *events.EventBridgeEvent) {
			e.Detail = json.RawMessage(`{"bucket":{"name":"b"},"object":{"key":"k"}}`)
		},
	} {
		refuses(t, "eventbridge-s3.json", keyfuncs.S3ViaEventBridge, field, change)
	}
	same(t, "eventbridge-s3-tags.json", keyfuncs.S3ViaEventBridge, lock.Key{
		Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "Object%20Tags%20Added/096fKKXTRTtl3on89fVO.nfljtsv6qko/D4E13FE58DE4C811",
	})
	same(t, "s3-tagging.json", keyfuncs.S3Object, lock.Key{
		Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "ObjectTagging:Put/096fKKXTRTtl3on89fVO.nfljtsv6qko/C3D13FE58DE4C810",
	})
}

func TestSQSFIFO(t *testing.T) {
	t.Parallel()
	group := "sqs/arn:aws:sqs:us-east-2:123456789012:orders.fifo/customer%2Fjane"
	same(t, "sqs-fifo.json", keyfuncs.SQSFIFO, lock.Key{Name: group, Event: "18849496460467696128", Order: "02018849496460467696128"})
	same(t, "sqs-fifo.json", keyfuncs.SQSDeduplicated, lock.Key{Name: group + "/order-17", Event: "order-17"})
	set := func(name, value string) func(*events.SQSEvent) {
		return func(e *events.SQSEvent) { e.Records[0].Attributes[name] = value }
	}
	for _, key := range []keyfuncs.Func[events.SQSEvent]{keyfuncs.SQSFIFO, keyfuncs.SQSDeduplicated} {
		refuses(t, "sqs-fifo.json", key, "Records[0].attributes.MessageGroupId", set("MessageGroupId", ""))
		refuses(t, "sqs-fifo.json", key, "Records[0].attributes.SequenceNumber", set("SequenceNumber", ""))
		refuses(t, "sqs-fifo.json", key, "Records[0].eventSourceARN", func(e *events.SQSEvent) { e.Records[0].EventSourceARN = "" })
	}
	refuses(t, "sqs-fifo.json", keyfuncs.SQSFIFO, "Records[0].attributes.SequenceNumber", set("SequenceNumber", "12x"))
	refuses(t, "sqs-fifo.json", keyfuncs.SQSDeduplicated, "Records[0].attributes.MessageDeduplicationId", set("MessageDeduplicationId", ""))

	order := func(number string) string {
		k, err := keyOf(t, "sqs-fifo.json", keyfuncs.SQSFIFO, set("SequenceNumber", number))
		if err != nil {
			t.Error(err)
		}
		return k.Order
	}
	rising := []string{"0", "9", "10", "99", "100", "18849496460467696127", "18849496460467696128", "118849496460467696128"}
	for i := range rising[1:] {
		if order(rising[i]) >= order(rising[i+1]) {
			t.Errorf("%s orders not before %s", rising[i], rising[i+1])
		}
	}
}

// TestBodyTakesTheMessageID: what has no identity of its own gets the envelope's.
func TestBodyTakesTheMessageID(t *testing.T) {
	t.Parallel()
	type body struct {
		Customer string `json:"customer"`
		Order    int    `json:"order"`
	}
	customer := func(_ context.Context, b body) (lock.Key, error) { return lock.Key{Name: b.Customer}, nil }
	message := load[events.SQSEvent](t, "sqs-fifo.json").Records[0]
	if k, err := keyfuncs.SQSBody(customer)(t.Context(), message); k != (lock.Key{Name: "jane", Event: message.MessageId}) || err != nil {
		t.Errorf("SQSBody: %+v, %v", k, err)
	}
	topic := func(_ context.Context, b body) (lock.Key, error) { return lock.Key{Name: "order", Event: "e"}, nil }
	record := load[events.SNSEvent](t, "sns.json").Records[0]
	if k, err := keyfuncs.SNSBody(topic)(t.Context(), record); k != (lock.Key{Name: "order", Event: "e"}) || err != nil {
		t.Errorf("SNSBody: %+v, %v", k, err)
	}
	same(t, "eventbridge.json", keyfuncs.EventBridgeDetail(customer), lock.Key{Name: "jane", Event: "6a7e8feb-b491-4cf7-a9f1-bf3703467718"})
	refuses(t, "eventbridge.json", keyfuncs.EventBridgeDetail(customer), "detail", func(e *events.EventBridgeEvent) { e.Detail = json.RawMessage(`[]`) })
}

func TestSNS(t *testing.T) {
	t.Parallel()
	same(t, "sns.json", keyfuncs.SNSMessage, lock.Key{Name: "sns/95df01b4-ee98-5cb9-9903-4c221d41eb5e", Event: "95df01b4-ee98-5cb9-9903-4c221d41eb5e"})
	refuses(t, "sns.json", keyfuncs.SNSMessage, "Records[0].Sns.MessageId", func(e *events.SNSEvent) { e.Records[0].SNS.MessageID = "" })
	refuses(t, "s3-put.json", keyfuncs.SNSMessage, "Records[0].Sns.MessageId", nil) // an event of another source
}

func TestEventBridge(t *testing.T) {
	t.Parallel()
	id := "6a7e8feb-b491-4cf7-a9f1-bf3703467718"
	want := lock.Key{Name: "eventbridge/com.example.shop/" + id, Event: id}
	same(t, "eventbridge.json", keyfuncs.EventBridge, want)
	same(t, "sqs-eventbridge.json", keyfuncs.EventBridgeViaSQS, want)
	refuses(t, "eventbridge.json", keyfuncs.EventBridge, "id", func(e *events.EventBridgeEvent) { e.ID = "" })
	refuses(t, "eventbridge.json", keyfuncs.EventBridge, "source", func(e *events.EventBridgeEvent) { e.Source = "" })
	refuses(t, "sqs-fifo.json", keyfuncs.EventBridgeViaSQS, "Records[0].body.id", nil)
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	same(t, "eventbridge-schedule.json", keyfuncs.Schedule, lock.Key{Name: "schedule/arn:aws:events:eu-central-1:123456789012:rule%2Fnightly", Event: "2026-11-21T03:00:00Z"})
	same(t, "eventbridge-scheduler.json", keyfuncs.Schedule, lock.Key{Name: "schedule/arn:aws:scheduler:eu-central-1:123456789012:schedule%2Fdefault%2Fnightly", Event: "2026-11-21T03:00:00Z"})
	again, err := keyOf(t, "eventbridge-schedule.json", keyfuncs.Schedule, func(e *events.EventBridgeEvent) { e.ID = "another" })
	if err != nil || again.Event != "2026-11-21T03:00:00Z" {
		t.Errorf("a second trigger for the same time: %+v, %v", again, err)
	}
	refuses(t, "eventbridge.json", keyfuncs.Schedule, "detail-type", nil)
	refuses(t, "eventbridge-schedule.json", keyfuncs.Schedule, "resources", func(e *events.EventBridgeEvent) { e.Resources = nil })
	refuses(t, "eventbridge-schedule.json", keyfuncs.Schedule, "time", func(e *events.EventBridgeEvent) { e.Time = time.Time{} })
}

func TestKinesis(t *testing.T) {
	t.Parallel()
	number := "49590338271490256608559692538361571095921575989136588898"
	same(t, "kinesis.json", keyfuncs.Kinesis, lock.Key{
		Name: "kinesis/arn:aws:kinesis:us-east-2:123456789012:stream%2Freadings/sensor%2F17", Event: number, Order: "056" + number,
	})
	for field, change := range map[string]func(*events.KinesisEventRecord){
		"eventSourceARN":         func(r *events.KinesisEventRecord) { r.EventSourceArn = "" },
		"kinesis.partitionKey":   func(r *events.KinesisEventRecord) { r.Kinesis.PartitionKey = "" },
		"kinesis.sequenceNumber": func(r *events.KinesisEventRecord) { r.Kinesis.SequenceNumber = "" },
	} {
		refuses(t, "kinesis.json", keyfuncs.Kinesis, "Records[0]."+field, func(e *events.KinesisEvent) { change(&e.Records[0]) })
	}
}

func TestDynamoDBStream(t *testing.T) {
	t.Parallel()
	number := "4421584500000000017450439091"
	same(t, "dynamodb.json", keyfuncs.DynamoDBStream, lock.Key{
		Name: "dynamodb/arn:aws:dynamodb:us-east-2:123456789012:table%2Forders/customer/S/jane/number/N/17", Event: number, Order: "2026-06-10T19:26:16.525 028" + number,
	})
	newer, err := keyOf(t, "dynamodb.json", keyfuncs.DynamoDBStream, func(e *events.DynamoDBEvent) {
		e.Records[0].EventSourceArn = strings.Replace(e.Records[0].EventSourceArn, "2026-06", "2026-07", 1)
		e.Records[0].Change.SequenceNumber = "1"
	})
	older, _ := keyOf(t, "dynamodb.json", keyfuncs.DynamoDBStream, nil)
	if err != nil || newer.Order <= older.Order || newer.Name != older.Name {
		t.Errorf("a new stream of the table: %+v, %v, after %+v", newer, err, older)
	}
	names := map[string]bool{}
	for _, v := range []events.DynamoDBAttributeValue{
		events.NewStringAttribute("17"), events.NewNumberAttribute("17"), events.NewBinaryAttribute([]byte("17")), events.NewStringAttribute("17/number/N/1"),
	} {
		k, err := keyOf(t, "dynamodb.json", keyfuncs.DynamoDBStream, func(e *events.DynamoDBEvent) { e.Records[0].Change.Keys["number"] = v })
		if err != nil || names[k.Name] {
			t.Errorf("%v: %+v, %v: want a name that no other item has", v, k, err)
		}
		names[k.Name] = true
	}
	for field, change := range map[string]func(*events.DynamoDBEventRecord){
		"eventSourceARN":          func(r *events.DynamoDBEventRecord) { r.EventSourceArn = "arn:aws:dynamodb" },
		"dynamodb.Keys":           func(r *events.DynamoDBEventRecord) { r.Change.Keys = nil },
		"dynamodb.Keys.number":    func(r *events.DynamoDBEventRecord) { r.Change.Keys["number"] = events.NewNullAttribute() },
		"dynamodb.Keys.customer":  func(r *events.DynamoDBEventRecord) { r.Change.Keys["customer"] = events.DynamoDBAttributeValue{} },
		"dynamodb.SequenceNumber": func(r *events.DynamoDBEventRecord) { r.Change.SequenceNumber = "-1" },
	} {
		refuses(t, "dynamodb.json", keyfuncs.DynamoDBStream, "Records[0]."+field, func(e *events.DynamoDBEvent) { change(&e.Records[0]) })
	}
}

func TestKafka(t *testing.T) {
	t.Parallel()
	same(t, "kafka.json", keyfuncs.Kafka, lock.Key{Name: "kafka/orders/0/15/1795249183000", Event: "0/15/1795249183000"})
	same(t, "kafka.json", keyfuncs.KafkaKey, lock.Key{Name: "kafka/orders/amFuZQ==", Event: "0/15/1795249183000"})
	at := func(change func(*events.KafkaRecord)) func(*events.KafkaEvent) {
		return func(e *events.KafkaEvent) { change(&e.Records["orders-0"][0]) }
	}
	refuses(t, "kafka.json", keyfuncs.Kafka, "records[0].topic", at(func(r *events.KafkaRecord) { r.Topic = "" }))
	refuses(t, "kafka.json", keyfuncs.KafkaKey, "records[0].key", at(func(r *events.KafkaRecord) { r.Key = "" }))
	refuses(t, "kafka.json", keyfuncs.Kafka, "records", func(e *events.KafkaEvent) { e.Records["orders-1"] = e.Records["orders-0"] })
	created := at(func(r *events.KafkaRecord) { r.Timestamp.Time = r.Timestamp.Add(1e6) })
	if k, err := keyOf(t, "kafka.json", keyfuncs.Kafka, created); err != nil || k.Event == "0/15/1795249183000" {
		t.Errorf("the same offset of a topic that was created anew: %+v, %v", k, err)
	}
}

package keyfuncs_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var kinesisRecord = keyfuncs.Single[events.KinesisEvent](keyfuncs.KinesisRecord)

func TestKinesisRecord(t *testing.T) {
	t.Parallel()
	number := "49590338271490256608559692538361571095921575989136588898"
	gives(t, "kinesis.json", kinesisRecord, lock.Key{
		Name:  "kinesis/arn:aws:kinesis:us-east-2:123456789012:stream%2Freadings/shardId-000000000006/sensor%2F17",
		Event: "shardId-000000000006:" + number, Order: "056" + number,
	})
	refuses(t, "kinesis.json", kinesisRecord, map[string]func(*events.KinesisEvent){
		"Records[0].eventSourceARN":         func(e *events.KinesisEvent) { e.Records[0].EventSourceArn = "" },
		"Records[0].kinesis.sequenceNumber": func(e *events.KinesisEvent) { e.Records[0].Kinesis.SequenceNumber = "" },
		"Records[0].eventID":                func(e *events.KinesisEvent) { e.Records[0].EventID = "" },
	})
	_, err := changed(t, "kinesis.json", kinesisRecord, func(e *events.KinesisEvent) { e.Records[0].EventID = "shardId-000000000006" })
	refused(t, "no shard", err, "Records[0].eventID", "shard")
}

// TestKinesisRecordWithoutPartitionKey: a stream that distributes its records
// by itself has records without a key. Each is its own lock and its own event,
// and none has an order to another.
func TestKinesisRecordWithoutPartitionKey(t *testing.T) { // F60
	t.Parallel()
	for name, replacement := range map[string]string{"absent": "", "null": `"partitionKey": null,`, "empty": `"partitionKey": "",`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := strings.Replace(text(t, "kinesis.json"), `"partitionKey": "sensor/17",`, replacement, 1)
			record := decoded[events.KinesisEvent](t, without).Records[0]
			if record.Kinesis.PartitionKey != "" {
				t.Fatalf("the record has the key %q", record.Kinesis.PartitionKey)
			}
			number := "49590338271490256608559692538361571095921575989136588898"
			want := lock.Key{
				Name:  "kinesis/arn:aws:kinesis:us-east-2:123456789012:stream%2Freadings/shardId-000000000006:" + number,
				Event: "shardId-000000000006:" + number,
			}
			if k := keyOf(t, keyfuncs.KinesisRecord, record); k != want {
				t.Errorf("%+v, want %+v", k, want)
			}
			record.Kinesis.SequenceNumber = ""
			_, err := keyfuncs.KinesisRecord(t.Context(), record)
			refused(t, "no number", err, "kinesis.sequenceNumber", "is missing")
		})
	}
}

// TestKinesisRecordOfAPipe: EventBridge Pipes puts the members of kinesis into
// the record itself, where Go's type loses the data.
func TestKinesisRecordOfAPipe(t *testing.T) { // F31
	t.Parallel()
	record := decoded[events.KinesisEventRecord](t, `{"partitionKey":"1","sequenceNumber":"495","data":"eyJvcmRlciI6MX0=","eventSource":"aws:kinesis",
		"eventID":"shardId-000000000006:495","eventSourceARN":"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks"}`)
	for name, key := range map[string]keyfuncs.Func[events.KinesisEventRecord]{"KinesisRecord": keyfuncs.KinesisRecord, "KinesisBody": keyfuncs.KinesisBody(byCustomer)} {
		_, err := key(t.Context(), record)
		refused(t, name, err, "kinesis", "docs/SOURCES.md#eventbridge-pipes")
	}
	// A record that a test builds lacks other members.
	_, err := keyfuncs.KinesisBody(byCustomer)(t.Context(), events.KinesisEventRecord{})
	refused(t, "nothing", err, "kinesis.data", "not JSON")
	record.Kinesis.PartitionKey = "1"
	_, err = keyfuncs.KinesisRecord(t.Context(), record)
	refused(t, "a partition key alone", err, "kinesis.sequenceNumber", "is missing")
	record.Kinesis.PartitionKey, record.Kinesis.SequenceNumber = "", "495"
	if k := keyOf(t, keyfuncs.KinesisRecord, record); k.Event != "shardId-000000000006:495" {
		t.Errorf("a sequence number alone: %+v", k)
	}
}

// TestOrderFromWithoutOrder: what locks every event by itself does not say
// which of two comes first, so its names must not become an order: an event
// would look stale, and be lost, because its id happens to be smaller.
func TestOrderFromWithoutOrder(t *testing.T) { // F60
	t.Parallel()
	body := `{"customer":"jane"}`
	record := inShard("shardId-000000000006", body)
	record.Kinesis.PartitionKey = ""
	byData := keyfuncs.KinesisBody(byCustomer)
	for name, from := range map[string]keyfuncs.Func[events.KinesisEventRecord]{
		"KinesisRecord": keyfuncs.KinesisRecord, "with a prefix": keyfuncs.Prefix(keyfuncs.KinesisRecord, "p/"),
	} {
		if got, want := keyOf(t, keyfuncs.OrderFrom(byData, from), record), keyOf(t, byData, record); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	m := events.SQSMessage{MessageId: "3f0c1f0e", EventSource: "aws:sqs", Body: body}
	byBody := keyfuncs.SQSBody(byCustomer)
	if got, want := keyOf(t, keyfuncs.OrderFrom(byBody, keyfuncs.SQSMessage), m), keyOf(t, byBody, m); got != want {
		t.Errorf("SQSMessage: %+v, want %+v", got, want)
	}
	kafka := events.KafkaRecord{Topic: "t", Partition: 1, Offset: 2}
	topic := keyfuncs.ByField(func(r events.KafkaRecord) string { return r.Topic })
	if got, want := keyOf(t, keyfuncs.OrderFrom(topic, keyfuncs.KafkaRecord), kafka), (lock.Key{Name: "t"}); got != want {
		t.Errorf("KafkaRecord: %+v, want %+v", got, want)
	}
}

// TestShardsAreInOrderByThemselves: a producer may put one partition key into
// several shards, as the Kinesis Producer Library does with its aggregated
// records. A record of one shard never makes those of another look stale.
func TestShardsAreInOrderByThemselves(t *testing.T) { // F60
	t.Parallel()
	older, newer := inShard("shardId-000000000000", `{"customer":"jane"}`), inShard("shardId-000000000001", `{"customer":"jane"}`)
	newer.Kinesis.SequenceNumber, newer.EventID = "50", "shardId-000000000001:50"
	partitionKey := keyfuncs.ByField(func(r events.KinesisEventRecord) string { return r.Kinesis.PartitionKey })
	for name, c := range map[string]struct {
		key     keyfuncs.Func[events.KinesisEventRecord]
		ordered bool
	}{
		"KinesisRecord":           {keyfuncs.KinesisRecord, true},
		"order of a body":         {keyfuncs.OrderFrom(keyfuncs.KinesisBody(byCustomer), keyfuncs.KinesisRecord), true},
		"order of each body":      {keyfuncs.OrderFrom(keyfuncs.KinesisBody(keyfuncs.Once(byCustomer)), keyfuncs.KinesisRecord), true},
		"order of a prefixed key": {keyfuncs.OrderFrom(partitionKey, keyfuncs.Prefix(keyfuncs.KinesisRecord, "p")), true},
		"joined":                  {keyfuncs.Join(keyfuncs.KinesisRecord, partitionKey), true},
		"body":                    {keyfuncs.KinesisBody(byCustomer), false},
		"one of a partition key":  {keyfuncs.EventFrom(partitionKey, keyfuncs.KinesisRecord), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same := newer // the same number, in another shard
			same.Kinesis.SequenceNumber, same.EventID = "49", "shardId-000000000001:49"
			first, second, third := keyOf(t, c.key, older), keyOf(t, c.key, newer), keyOf(t, c.key, same)
			if c.ordered && (first.Order == "" || first.Name == second.Name || second.Name != third.Name || third.Order >= second.Order) {
				t.Errorf("%+v and %+v are put in one order, or %+v is not before the latter", first, second, third)
			}
			if !c.ordered && (first.Order != "" || first.Name != second.Name || first.Event == third.Event) {
				t.Errorf("%+v and %+v", first, third)
			}
		})
	}
}

func keyOf[E any](t *testing.T, key keyfuncs.Func[E], e E) lock.Key {
	t.Helper()
	k, err := key(t.Context(), e)
	if err != nil {
		t.Error(err)
	}
	return k
}

// inStream lets a key function of records take the data of one.
func inStream(key keyfuncs.Func[events.KinesisEventRecord]) keyfuncs.Func[string] {
	return func(ctx context.Context, data string) (lock.Key, error) {
		return key(ctx, inShard("shardId-000000000006", data))
	}
}

func inShard(shard, data string) events.KinesisEventRecord {
	r := events.KinesisEventRecord{EventID: shard + ":49", EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:us-east-2:123456789012:stream/readings"}
	r.Kinesis.SequenceNumber, r.Kinesis.PartitionKey, r.Kinesis.Data = "49", "any", []byte(data)
	return r
}

func TestKinesisBody(t *testing.T) {
	t.Parallel()
	byCustomer, once := keyfuncs.KinesisBody(byCustomer), keyfuncs.KinesisBody(keyfuncs.Once(byCustomer))
	record := inShard("shardId-000000000006", `{"customer":"jane"}`)
	id := "kinesis/arn:aws:kinesis:us-east-2:123456789012:stream%2Freadings/shardId-000000000006:49"
	for name, c := range map[string]struct {
		key  keyfuncs.Func[events.KinesisEventRecord]
		want lock.Key
	}{
		"no event": {byCustomer, lock.Key{Name: "jane", Event: id}},
		"an event": {once, lock.Key{Name: "jane", Event: "jane"}},
		"the order of the shard": {keyfuncs.OrderFrom(byCustomer, keyfuncs.KinesisRecord), lock.Key{
			Name:  "join/jane/kinesis%2Farn:aws:kinesis:us-east-2:123456789012:stream%252Freadings%2FshardId-000000000006%2Fany",
			Event: id, Order: "00249",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if k, err := c.key(t.Context(), record); k != c.want || err != nil {
				t.Errorf("%+v, %v; want %+v", k, err, c.want)
			}
		})
	}
	// A sequence number is unique within its shard only.
	first, _ := byCustomer(t.Context(), record)
	second, _ := byCustomer(t.Context(), inShard("shardId-000000000007", `{"customer":"jane"}`))
	if first.Event == second.Event {
		t.Errorf("records of two shards are one event: %+v", first)
	}
	unnumbered := record
	unnumbered.EventID = ""
	if k, err := byCustomer(t.Context(), unnumbered); k != (lock.Key{Name: "jane"}) || err != nil {
		t.Errorf("without an id: %+v, %v", k, err)
	}
}

// TestKinesisBodyErrors: data that is not JSON says why, where it can be told.
func TestKinesisBodyErrors(t *testing.T) { // F31
	t.Parallel()
	// One user record in the format of the Kinesis Producer Library: magic number,
	// protocol buffer, MD5.
	aggregated, err := base64.StdEncoding.DecodeString("84mawgoBYRoXCAAaE3siY3VzdG9tZXIiOiJqYW5lIn27+0fhOdJe7R2VFnyPQla2")
	if err != nil {
		t.Fatal(err)
	}
	key := inStream(keyfuncs.KinesisBody(byCustomer))
	for name, c := range map[string]struct{ data, field, says string }{
		"aggregated":     {string(aggregated), "kinesis.data", "middleware.EachKinesisRecord and the key function KinesisRecord"},
		"gzip":           {"\x1f\x8b\x08\x00", "kinesis.data", "gzip"},
		"no JSON":        {"order=7", "kinesis.data", "not JSON of the expected shape"},
		"empty":          {"", "kinesis.data", "not JSON of the expected shape"},
		"null":           {" null\n", "kinesis.data", "is null"},
		"not UTF-8":      {"{\"customer\":\"\xff\"}", "kinesis.data", "not UTF-8"},
		"two values":     {`{"customer":"jane"} {"customer":"joe"}`, "kinesis.data", "after top-level value"},
		"another record": {`{"customer":17}`, "kinesis.data", "cannot unmarshal number"},
	} {
		_, err := key(t.Context(), c.data)
		refused(t, name, err, c.field, c.says)
	}
	nothing := func(context.Context, shopOrder) (lock.Key, error) {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing"}
	}
	_, err = inStream(keyfuncs.KinesisBody(nothing))(t.Context(), "{}")
	refused(t, "inner error", err, "kinesis.data.customer", "is missing")
	_, err = inStream(keyfuncs.KinesisBody(keyfuncs.EventBridgeEvent))(t.Context(), text(t, "s3-put.json"))
	refused(t, "S3 for EventBridge", err, "kinesis.data", "KinesisBody(S3Object)")
	foreign := inShard("s", "{}")
	foreign.EventSource = "aws:dynamodb"
	_, err = keyfuncs.KinesisBody(byCustomer)(t.Context(), foreign)
	refused(t, "another source", err, "eventSource", "DynamoDBRecord")
}

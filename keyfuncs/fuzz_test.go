package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// fuzzKeys lets key functions meet payloads that grow out of the events in testdata
// whose names begin with seeds: none may panic, and a key must be deterministic and
// good enough to be locked.
func fuzzKeys[E any](f *testing.F, seeds string, keys map[string]keyfuncs.Func[E]) { // F26, F27
	files, err := filepath.Glob("testdata/" + seeds + "*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no events testdata/%s*.json: %v", seeds, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	locker, err := lock.New(memstore.New(), &lock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var e E
		if raw, ok := any(&e).(*json.RawMessage); ok {
			*raw = payload
		} else if json.Unmarshal(payload, &e) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(keys)) {
			k, err := keys[name](t.Context(), e)
			again, _ := keys[name](t.Context(), e)
			switch {
			case k != again:
				t.Errorf("%s: key %+v, then %+v", name, k, again)
			case err == nil:
				lk, err := locker.Acquire(t.Context(), lock.Key{Name: name + k.Name, Event: k.Event, Order: k.Order})
				if err != nil || k.Name == "" {
					t.Errorf("%s: key %+v: %v", name, k, err)
					return
				}
				_ = lk.Release()
			case !errors.As(err, new(*lock.KeyError)) && !errors.Is(err, keyfuncs.ErrIgnore):
				t.Errorf("%s: error of type %T", name, err)
			}
		}
	})
}

func FuzzS3(f *testing.F) {
	fuzzKeys(f, "s3-", map[string]keyfuncs.Func[events.S3Event]{"S3Object": keyfuncs.S3Object, "S3Latest": keyfuncs.S3Latest})
}

func FuzzSQS(f *testing.F) {
	fuzzKeys(f, "sqs", map[string]keyfuncs.Func[events.SQSEvent]{
		"SQSMessage": keyfuncs.SQSMessage, "SQSFIFO": keyfuncs.SQSFIFO, "SQSDeduplicated": keyfuncs.SQSDeduplicated,
		"S3ViaSQS": keyfuncs.S3ViaSQS, "S3ViaSNSAndSQS": keyfuncs.S3ViaSNSAndSQS, "EventBridgeViaSQS": keyfuncs.EventBridgeViaSQS,
	})
}

// FuzzSQSBody fuzzes the body alone: inside a JSON string few mutations survive.
func FuzzSQSBody(f *testing.F) {
	keys := map[string]keyfuncs.Func[json.RawMessage]{}
	for name, record := range map[string]keyfuncs.Func[events.SQSMessage]{
		"S3ViaSQS": keyfuncs.S3ViaSQSRecord, "S3ViaSNSAndSQS": keyfuncs.S3ViaSNSAndSQSRecord, "EventBridgeViaSQS": keyfuncs.EventBridgeViaSQSRecord,
	} {
		keys[name] = func(ctx context.Context, body json.RawMessage) (lock.Key, error) {
			return record(ctx, events.SQSMessage{MessageId: "m", Body: string(body)})
		}
	}
	fuzzKeys(f, "", keys)
}

func FuzzSNS(f *testing.F) {
	fuzzKeys(f, "sns", map[string]keyfuncs.Func[events.SNSEvent]{"SNSMessage": keyfuncs.SNSMessage, "S3ViaSNS": keyfuncs.S3ViaSNS})
}

func FuzzEventBridge(f *testing.F) {
	fuzzKeys(f, "eventbridge", map[string]keyfuncs.Func[events.EventBridgeEvent]{
		"EventBridge": keyfuncs.EventBridge, "Schedule": keyfuncs.Schedule, "S3ViaEventBridge": keyfuncs.S3ViaEventBridge,
	})
}

func FuzzKinesis(f *testing.F) {
	fuzzKeys(f, "kinesis", map[string]keyfuncs.Func[events.KinesisEvent]{"Kinesis": keyfuncs.Kinesis})
}

func FuzzDynamoDBStream(f *testing.F) {
	fuzzKeys(f, "dynamodb", map[string]keyfuncs.Func[events.DynamoDBEvent]{"DynamoDBStream": keyfuncs.DynamoDBStream})
}

func FuzzKafka(f *testing.F) {
	fuzzKeys(f, "kafka", map[string]keyfuncs.Func[events.KafkaEvent]{"Kafka": keyfuncs.Kafka, "KafkaKey": keyfuncs.KafkaKey})
}

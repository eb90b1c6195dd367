package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// refusesEvents checks that a key function of records around a handler of the
// whole event panics, and names what to use instead.
func refusesEvents[R, E any](t *testing.T, name string, key keyfuncs.Func[R], within ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		opts := newFixture().options
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, E) error { return nil }, opts()...)
		}, within...)
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, *E) (string, error) { return "", nil }, opts()...)
		}, within...)
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, order) error { return nil }, opts()...)
		}, within...)
	})
}

// TestKeyOfRecordsAroundTheWholeEvent shows that the likeliest mistake is
// answered with the wrapper, and the key function, that fit.
func TestKeyOfRecordsAroundTheWholeEvent(t *testing.T) {
	t.Parallel()
	refusesEvents[events.SQSMessage, events.SQSEvent](t, "SQS", keyfuncs.SQSMessage, "EachSQSMessage", "Single[events.SQSEvent]", "EachSQSBody")
	refusesEvents[events.SNSEventRecord, events.SNSEvent](t, "SNS", keyfuncs.SNSRecord, "EachSNSRecord", "Single[events.SNSEvent]", "EachSNSBody")
	refusesEvents[events.S3EventRecord, events.S3Event](t, "S3", keyfuncs.S3Record, "EachS3Record", "Single[events.S3Event]")
	refusesEvents[events.KinesisEventRecord, events.KinesisEvent](t, "Kinesis", keyfuncs.KinesisRecord, "EachKinesisRecord", "Single[events.KinesisEvent]", "EachKinesisBody")
	refusesEvents[events.DynamoDBEventRecord, events.DynamoDBEvent](t, "DynamoDB", keyfuncs.DynamoDBRecord, "EachDynamoDBRecord", "Single[events.DynamoDBEvent]")
	refusesEvents[events.KafkaRecord, events.KafkaEvent](t, "Kafka", keyfuncs.KafkaRecord, "take one record, and wrap it with EachKafkaRecord")
	refusesEvents[awsevents.DocumentDBEventRecord, awsevents.DocumentDBEvent](t, "DocumentDB", keyfuncs.DocumentDBRecord, "take one record, and wrap it with EachDocumentDBRecord")
	refusesEvents[events.SimpleEmailRecord, events.SimpleEmailEvent](t, "SES", keyfuncs.SESRecord, "events.SimpleEmailRecord: wrap the key function in keyfuncs.Single[events.SimpleEmailEvent]")
	refusesEvents[events.CodeCommitRecord, events.CodeCommitEvent](t, "CodeCommit", keyfuncs.CodeCommitRecord, "events.CodeCommitRecord: wrap the key function in keyfuncs.Single[events.CodeCommitEvent]")
}

// refusesDeliveries checks that a key function of records is refused where the
// types of handlers let the mistake pass, when Lambda delivers the whole event.
func refusesDeliveries[R any](t *testing.T, file string, key keyfuncs.Func[R], within ...string) {
	t.Helper()
	doc := expect.Value(os.ReadFile("../keyfuncs/testdata/" + file + ".json"))(t)
	inWindow := edited(t, doc, func(e map[string]any) {
		if file == "kinesis" || file == "dynamodb" {
			e["eventSourceARN"], e["window"], e["shardId"] = "arn", map[string]any{}, "s"
		}
	})
	ran := false
	handles := func() error { ran = true; return nil }
	for way, wrapped := range map[string]func(key keyfuncs.Func[R], opts []middleware.Option) any{
		"any": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, func(any) error { return handles() }, opts...)
		},
		"map": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, func(map[string]any) error { return handles() }, opts...)
		},
		"JSON": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, func(json.RawMessage) error { return handles() }, opts...)
		},
		"record": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, func(context.Context, R) error { return handles() }, opts...)
		},
		"pointer": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, func(*R) error { return handles() }, opts...)
		},
		"set": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLocks(keyfuncs.All(key), func(R) error { return handles() }, opts...)
		},
		"Handler": func(key keyfuncs.Func[R], opts []middleware.Option) any {
			return middleware.WithLock(key, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return nil, handles() })), opts...)
		},
	} {
		for kind, key := range map[string]keyfuncs.Func[R]{
			"": key, "optional": keyfuncs.Optional(key), "own": func(context.Context, R) (lock.Key, error) { return lock.Key{Name: "n"}, nil },
		} {
			t.Run(strings.TrimSpace(file+" "+way+" "+kind), func(t *testing.T) {
				f := newFixture()
				h := lambda.NewHandler(wrapped(key, f.options()))
				for _, payload := range [][]byte{doc, inWindow, []byte(`{}`), []byte(`null`)} {
					_, err := h.Invoke(t.Context(), payload)
					var refused *lock.NoKeyError
					if !errors.As(err, &refused) || refused.Field != "event" || ran {
						t.Errorf("%.40s: ran %t, %v", payload, ran, err)
					}
					for _, part := range within {
						if err != nil && !strings.Contains(err.Error(), part) {
							t.Errorf("%q, want %q in it", err, part)
						}
					}
				}
			})
		}
	}
}

// TestDeliveryOfTheWholeEvent shows that the mistake is also found where it
// meets no type: a whole event, taken for a record, has nothing in it.
func TestDeliveryOfTheWholeEvent(t *testing.T) { // F26
	t.Parallel()
	refusesDeliveries(t, "sqs", keyfuncs.SQSMessage, "EachSQSMessage", "Single[events.SQSEvent]")
	refusesDeliveries(t, "sqs-fifo", keyfuncs.SQSFIFOMessage, "EachSQSMessage", "Single[events.SQSEvent]")
	refusesDeliveries(t, "sns", keyfuncs.SNSRecord, "EachSNSRecord", "Single[events.SNSEvent]")
	refusesDeliveries(t, "s3-put", keyfuncs.S3Record, "EachS3Record", "Single[events.S3Event]")
	refusesDeliveries(t, "kinesis", keyfuncs.KinesisRecord, "EachKinesisRecord", "Single[events.KinesisEvent]")
	refusesDeliveries(t, "dynamodb", keyfuncs.DynamoDBRecord, "EachDynamoDBRecord", "Single[events.DynamoDBEvent]")
	refusesDeliveries(t, "kafka", keyfuncs.KafkaRecord, "EachKafkaRecord")
	refusesDeliveries(t, "documentdb", keyfuncs.DocumentDBRecord, "EachDocumentDBRecord")
	refusesDeliveries(t, "ses", keyfuncs.SESRecord, "Single[events.SimpleEmailEvent]")
	refusesDeliveries(t, "codecommit", keyfuncs.CodeCommitRecord, "Single[events.CodeCommitEvent]")
}

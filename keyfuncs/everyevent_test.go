package keyfuncs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// keyFunction is a key function of whole events, with the kind of event it is
// for.
type keyFunction struct {
	kind *eventkind.Kind
	key  keyfuncs.Func[[]byte] // of the event's JSON
}

var errUndecoded = errors.New("the runtime refuses the event")

func takes[E any](kind *eventkind.Kind, key keyfuncs.Func[E]) keyFunction {
	return keyFunction{kind, func(ctx context.Context, doc []byte) (lock.Key, error) {
		var e E
		if json.Unmarshal(doc, &e) != nil {
			return lock.Key{}, errUndecoded
		}
		return key(ctx, e)
	}}
}

var keyFunctions = map[string]keyFunction{
	"S3Object":               takes(eventkind.S3, keyfuncs.S3Object),
	"S3LatestRecord":         takes(eventkind.S3, s3Latest),
	"S3 in a queue":          takes(eventkind.SQS, keyfuncs.Single[events.SQSEvent](s3InQueue)),
	"the latest in a queue":  takes(eventkind.SQS, keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(s3Latest))),
	"S3 in both":             takes(eventkind.SQS, keyfuncs.Single[events.SQSEvent](s3InBoth)),
	"SQSMessage":             takes(eventkind.SQS, sqsMessage),
	"SQSFIFOMessage":         takes(eventkind.SQS, sqsFIFOMessage),
	"SQS deduplicated":       takes(eventkind.SQS, sqsDeduplicated),
	"EventBridge in a queue": takes(eventkind.SQS, keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.EventBridgeEvent))),
	"SNSRecord":              takes(eventkind.SNS, snsRecord),
	"S3 in a topic":          takes(eventkind.SNS, keyfuncs.Single[events.SNSEvent](s3InTopic)),
	"SNSAlarmRecord":         takes(eventkind.SNS, snsAlarm),
	"EventBridgeEvent":       takes(eventkind.EventBridge, keyfuncs.EventBridgeEvent),
	"EventBridgeSchedule":    takes(eventkind.EventBridge, keyfuncs.EventBridgeSchedule),
	"EventBridgeS3Object":    takes(eventkind.EventBridge, keyfuncs.EventBridgeS3Object),
	"KinesisRecord":          takes(eventkind.Kinesis, kinesisRecord),
	"DynamoDBRecord":         takes(eventkind.DynamoDB, dynamoDBRecord),
	"ActiveMQEvent":          takes(eventkind.ActiveMQ, keyfuncs.ActiveMQEvent),
	"RabbitMQEvent":          takes(eventkind.RabbitMQ, keyfuncs.RabbitMQEvent),
	"CloudWatchLogs":         takes(eventkind.CloudWatchLogs, services.CloudWatchLogs),
	"CloudWatchAlarm":        takes(eventkind.Alarm, services.CloudWatchAlarm),
	"SESRecord":              takes(eventkind.SES, sesRecord),
	"CodeCommitRecord":       takes(eventkind.CodeCommit, codeCommitRecord),
	"CodePipelineJob":        takes(eventkind.CodePipeline, services.CodePipelineJob),
	"CloudFormation":         takes(eventkind.CloudFormation, keyfuncs.Func[cfn.Event](services.CloudFormation)),
	"ConfigRule":             takes(eventkind.ConfigRule, services.ConfigRule),
	"SecretRotation":         takes(eventkind.SecretRotation, services.SecretRotation),
	"S3BatchTask":            takes(eventkind.S3Batch, services.S3BatchTask[events.S3BatchJobEvent]),
	"S3BatchTask 2.0":        takes(eventkind.S3Batch, services.S3BatchTask[events.S3BatchJobEventV2]),
	"IdempotencyKey, REST":   takes(eventkind.HTTP, keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest]),
	"IdempotencyKey, HTTP":   takes(eventkind.HTTP, keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]),
	"IdempotencyKey, socket": takes(eventkind.HTTP, keyfuncs.IdempotencyKey[events.APIGatewayWebsocketProxyRequest]),
	"IdempotencyKey, ALB":    takes(eventkind.HTTP, keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest]),
	"IdempotencyKey, URL":    takes(eventkind.HTTP, keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest]),
	"InvocationRecord":       takes(eventkind.InvocationRecord, keyfuncs.Func[awsevents.InvocationRecord](services.InvocationRecord)),
	"CognitoUser":            takes(nil, services.CognitoUser[events.CognitoEventUserPoolsPostConfirmation]),
	"StepFunctions":          takes(nil, byTask),
	"IoTRule":                takes(nil, byMessage),
	"KafkaRecord":            takes(eventkind.Kafka, onlyRecord(keyfuncs.KafkaRecord)),
	"Kafka by key":           takes(eventkind.Kafka, onlyRecord(kafkaKey)),
	"CustomBusGroup":         takes(eventkind.CustomBus, keyfuncs.CustomBusGroup),
	"DocumentDBRecord":       takes(eventkind.DocumentDB, onlyChange(keyfuncs.DocumentDBRecord)),
}

// everyEvent returns the events of testdata and, where its source is at hand,
// those that aws-lambda-go is tested with.
func everyEvent(t *testing.T) map[string][]byte {
	t.Helper()
	patterns := []string{"testdata/*.json"}
	source, _ := runtime.FuncForPC(reflect.ValueOf(events.NewNullAttribute).Pointer()).FileLine(0)
	vendor := filepath.Join(filepath.Dir(source), "testdata")
	if _, err := os.Stat(vendor); err == nil {
		patterns = append(patterns, vendor+"/*.json")
	} else {
		t.Logf("without the events of aws-lambda-go: %v", err)
	}
	all := map[string][]byte{}
	for i, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no events %s: %v", pattern, err)
		}
		for _, file := range files {
			doc := expect.Value(os.ReadFile(file))(t)
			all[fmt.Sprint(i, " ", filepath.Base(file))] = doc
		}
	}
	return all
}

// TestEveryEventMeetsEveryKeyFunction: a function gives keys to events of its
// own kind only, ignores nothing but what holds nothing, and keeps events
// apart.
func TestEveryEventMeetsEveryKeyFunction(t *testing.T) {
	t.Parallel()
	docs := everyEvent(t)
	for name, f := range keyFunctions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[lock.Key]string{}
			for file, doc := range docs {
				k, err := meet(t, file, f, doc)
				if errors.Is(err, keyfuncs.ErrIgnore) && !holdsNothing(name, doc) {
					t.Errorf("%s is ignored: %v", file, err)
				}
				if err != nil {
					continue
				}
				if kind := eventkind.Of(doc); kind != f.kind || k.Name == "" {
					t.Errorf("%s has the key %+v", file, k)
				}
				other, ok := seen[lock.Key{Name: k.Name, Event: k.Event}]
				if ok && k.Event != "" && !sameEvent(docs[other], doc) {
					t.Errorf("%s and %s are the same event, %+v", file, other, k)
				}
				seen[lock.Key{Name: k.Name, Event: k.Event}] = file
			}
			if len(seen) == 0 {
				t.Errorf("no key for any of %d events", len(docs))
			}
		})
	}
}

// ids are key functions that name each event by itself. They are not refused.
var ids = []string{
	"SQSMessage", "SNSRecord", "EventBridgeEvent", "ActiveMQEvent", "RabbitMQEvent", "CloudWatchLogs", "SESRecord",
	"CodeCommitRecord", "CodePipelineJob", "IdempotencyKey, HTTP", "InvocationRecord", "IoTRule", "KafkaRecord",
}

// TestOrderFromEveryKeyFunction: a function without an Order gives none through
// its Name either, hashed or not. Its ids rise by chance, and an event that
// looks stale is lost.
func TestOrderFromEveryKeyFunction(t *testing.T) { // F60
	t.Parallel()
	docs := everyEvent(t)
	itself := lock.Key{Name: "n"}
	named := keyfuncs.ByField(func([]byte) string { return itself.Name })
	for name, f := range keyFunctions {
		for how, from := range map[string]keyfuncs.Func[[]byte]{
			name: f.key, "Hash of " + name: keyfuncs.Hash(f.key),
			"prefixed Hash of " + name: keyfuncs.Prefix(keyfuncs.Hash(f.key), "p"),
		} {
			for file, doc := range docs {
				k, err := from(t.Context(), doc)
				if err != nil {
					continue
				}
				got, err := keyfuncs.OrderFrom(named, from)(t.Context(), doc)
				if got.Order != k.Order || k.Order == "" && got != itself || err != nil && (k.Order != "" || slices.Contains(ids, how)) {
					t.Errorf("%s, %s: %+v gives %+v, %v", how, file, k, got, err)
				}
			}
		}
	}
}

// meet returns the key, or an error of a type that a key function may return.
func meet(t *testing.T, file string, f keyFunction, doc []byte) (k lock.Key, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panics: %v", file, p)
			err = errUndecoded
		}
	}()
	k, err = f.key(t.Context(), doc)
	var refused *lock.NoKeyError
	if err != nil && err != errUndecoded && !errors.Is(err, keyfuncs.ErrIgnore) && !errors.As(err, &refused) {
		t.Errorf("%s: error of type %T", file, err)
	}
	return k, err
}

// holdsNothing reports whether a document is the test event of S3 or the
// control message of CloudWatch Logs. To a function of a decoded
// events.S3Event, everything without records looks like the former.
func holdsNothing(name string, doc []byte) bool {
	var e struct{ Records []json.RawMessage }
	switch name {
	case "CloudWatchLogs":
		return eventkind.Of(doc) == eventkind.CloudWatchLogs
	case "S3Object", "S3LatestRecord":
		return json.Unmarshal(doc, &e) == nil && len(e.Records) == 0
	}
	return bytes.Contains(doc, []byte("s3:TestEvent"))
}

// sameEvent reports whether two documents are one event: many samples have ids
// in common, and some are the same event in two spellings. Different events may
// share what AWS does not use to tell events apart, but not this.
func sameEvent(a, b []byte) bool { return identity(a) == identity(b) }

func identity(doc []byte) string {
	var e struct {
		ID           string `json:"id"`
		Source       string `json:"source"`
		InvocationID string `json:"invocationId"`
		Records      []struct {
			MessageID string `json:"messageId"`
			SNS       struct {
				MessageID string `json:"MessageId"`
			} `json:"Sns"`
			EventName string `json:"eventName"`
			S3        struct {
				Object struct{ Key, VersionID, Sequencer string }
			} `json:"s3"`
			SES struct {
				Mail    struct{ MessageID string }
				Receipt struct{ Recipients []string }
			} `json:"ses"`
		}
	}
	_ = json.Unmarshal(doc, &e)
	return fmt.Sprintf("%+v", e)
}

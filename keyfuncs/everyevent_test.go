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
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// keyFunction is a key function of whole events and the kind of event it is for.
type keyFunction struct {
	kind eventkind.Kind
	key  keyfuncs.Func[[]byte] // of the event's JSON
}

var errUndecoded = errors.New("the runtime refuses the event")

func takes[E any](kind eventkind.Kind, key keyfuncs.Func[E]) keyFunction {
	return keyFunction{kind, func(ctx context.Context, doc []byte) (lock.Key, error) {
		var e E
		if json.Unmarshal(doc, &e) != nil {
			return lock.Key{}, errUndecoded
		}
		return key(ctx, e)
	}}
}

// oneMessage lifts a key function of a message to events of one.
func oneMessage(key keyfuncs.Func[events.SQSMessage]) keyfuncs.Func[events.SQSEvent] {
	return func(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
		if len(e.Records) != 1 {
			return lock.Key{}, &lock.KeyError{Field: "Records", Reason: "are not one"}
		}
		return key(ctx, e.Records[0])
	}
}

var keyFunctions = map[string]keyFunction{
	"S3Object": takes(eventkind.S3, keyfuncs.S3Object), "S3Latest": takes(eventkind.S3, keyfuncs.S3Latest),
	"S3ViaSQS": takes(eventkind.SQS, keyfuncs.S3ViaSQS), "S3ViaSNSAndSQS": takes(eventkind.SQS, keyfuncs.S3ViaSNSAndSQS),
	"SQSMessage": takes(eventkind.SQS, keyfuncs.SQSMessage), "SQSFIFO": takes(eventkind.SQS, keyfuncs.SQSFIFO), "SQSDeduplicated": takes(eventkind.SQS, keyfuncs.SQSDeduplicated),
	"EventBridgeViaSQS":     takes(eventkind.SQS, keyfuncs.EventBridgeViaSQS),
	"SQSBody(S3Latest)":     takes(eventkind.SQS, oneMessage(keyfuncs.SQSBody(keyfuncs.S3Latest))),
	"SNSMessage":            takes(eventkind.SNS, keyfuncs.SNSMessage),
	"S3ViaSNS":              takes(eventkind.SNS, keyfuncs.S3ViaSNS),
	"CloudWatchAlarmViaSNS": takes(eventkind.SNS, keyfuncs.CloudWatchAlarmViaSNS),
	"EventBridge":           takes(eventkind.EventBridge, keyfuncs.EventBridge), "Schedule": takes(eventkind.EventBridge, keyfuncs.Schedule), "S3ViaEventBridge": takes(eventkind.EventBridge, keyfuncs.S3ViaEventBridge),
	"Kinesis": takes(eventkind.Kinesis, keyfuncs.Kinesis), "DynamoDBStream": takes(eventkind.DynamoDB, keyfuncs.DynamoDBStream), "DocumentDB": takes(eventkind.DocumentDB, keyfuncs.DocumentDB),
	"Kafka": takes(eventkind.Kafka, keyfuncs.Kafka), "KafkaKey": takes(eventkind.Kafka, keyfuncs.KafkaKey),
	"ActiveMQ": takes(eventkind.ActiveMQ, keyfuncs.ActiveMQ), "RabbitMQ": takes(eventkind.RabbitMQ, keyfuncs.RabbitMQ),
	"CloudWatchLogs": takes(eventkind.CloudWatchLogs, keyfuncs.CloudWatchLogs), "CloudWatchAlarm": takes(eventkind.Alarm, keyfuncs.CloudWatchAlarm),
	"SESEmail": takes(eventkind.SES, keyfuncs.SESEmail), "CodeCommit": takes(eventkind.CodeCommit, keyfuncs.CodeCommit), "CodePipelineJob": takes(eventkind.CodePipeline, keyfuncs.CodePipelineJob),
	"CloudFormation": takes(eventkind.CloudFormation, keyfuncs.Func[cfn.Event](keyfuncs.CloudFormation)), "ConfigRule": takes(eventkind.ConfigRule, keyfuncs.ConfigRule),
	"SecretRotation": takes(eventkind.SecretRotation, keyfuncs.SecretRotation),
	"S3BatchTask":    takes(eventkind.S3Batch, keyfuncs.S3BatchTask[events.S3BatchJobEvent]), "S3BatchTask 2.0": takes(eventkind.S3Batch, keyfuncs.S3BatchTask[events.S3BatchJobEventV2]),
	"APIGatewayREST": takes(eventkind.HTTP, keyfuncs.APIGatewayREST), "APIGatewayHTTP": takes(eventkind.HTTP, keyfuncs.APIGatewayHTTP),
	"APIGatewayWebSocket": takes(eventkind.HTTP, keyfuncs.APIGatewayWebSocket), "ALB": takes(eventkind.HTTP, keyfuncs.ALB), "FunctionURL": takes(eventkind.HTTP, keyfuncs.FunctionURL),
	"CognitoUser": takes("", keyfuncs.CognitoUser[events.CognitoEventUserPoolsPostConfirmation]), "StepFunctions": takes("", byTask), "IoTRule": takes("", byMessage),
}

// everyEvent are the events of testdata and, where its source is at hand, those that
// aws-lambda-go is tested with.
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
			doc, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprint(i, " ", filepath.Base(file))] = doc
		}
	}
	return all
}

// TestEveryEventMeetsEveryKeyFunction: a function gives keys to events of its own
// kind only, ignores nothing but what holds nothing, and keeps events apart.
func TestEveryEventMeetsEveryKeyFunction(t *testing.T) {
	t.Parallel()
	docs := everyEvent(t)
	keys := 0
	for name, f := range keyFunctions {
		seen := map[lock.Key]string{}
		for file, doc := range docs {
			if strings.Contains(file, " payload-") { // no event of AWS
				continue
			}
			k, err := meet(t, name, file, f, doc)
			if errors.Is(err, keyfuncs.ErrIgnore) && !holdsNothing(name, doc) {
				t.Errorf("%s ignores %s: %v", name, file, err)
			}
			if err != nil {
				continue
			}
			keys++
			if kind := eventkind.Of(doc); kind != f.kind || k.Name == "" {
				t.Errorf("%s gives %q the key %+v", name, file, k)
			}
			other, ok := seen[lock.Key{Name: k.Name, Event: k.Event}]
			if ok && k.Event != "" && !sameEvent(docs[other], doc) {
				t.Errorf("%s: %s and %s are the same event, %+v", name, file, other, k)
			}
			seen[lock.Key{Name: k.Name, Event: k.Event}] = file
		}
	}
	if keys < len(keyFunctions) {
		t.Errorf("only %d keys of %d functions and %d events", keys, len(keyFunctions), len(docs))
	}
}

// meet is the key, or an error of a type that a key function may return.
func meet(t *testing.T, name, file string, f keyFunction, doc []byte) (k lock.Key, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics on %s: %v", name, file, p)
			err = errUndecoded
		}
	}()
	k, err = f.key(t.Context(), doc)
	var refused *lock.KeyError
	if err != nil && err != errUndecoded && !errors.Is(err, keyfuncs.ErrIgnore) && !errors.As(err, &refused) {
		t.Errorf("%s on %s: error of type %T", name, file, err)
	}
	return k, err
}

// holdsNothing: the test event of S3 and the control message of CloudWatch Logs. To a
// function of a decoded events.S3Event, what has no records looks like the former.
func holdsNothing(name string, doc []byte) bool {
	var e struct{ Records []json.RawMessage }
	switch name {
	case "CloudWatchLogs":
		return eventkind.Of(doc) == eventkind.CloudWatchLogs
	case "S3Object", "S3Latest":
		return json.Unmarshal(doc, &e) == nil && len(e.Records) == 0
	}
	return bytes.Contains(doc, []byte("s3:TestEvent"))
}

// sameEvent: many samples have ids in common, some the whole event in two spellings.
// Different events may share what AWS does not use to tell events apart, but not this.
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

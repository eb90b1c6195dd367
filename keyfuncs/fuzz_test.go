package keyfuncs_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// fuzzKeys lets key functions meet payloads that grow out of the events in
// testdata whose names begin with seeds: none may panic, and a key must be
// deterministic and good enough to be locked.
func fuzzKeys[E any](f *testing.F, seeds string, keys map[string]keyfuncs.Func[E]) { // F26, F27
	files, err := filepath.Glob("testdata/" + seeds + "*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no events testdata/%s*.json: %v", seeds, err)
	}
	for _, file := range files {
		b := expect.Value(os.ReadFile(file))(f)
		f.Add(b)
	}
	locker := expect.Value(lock.New(memstore.New(), &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(f)
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
			case !errors.As(err, new(*lock.NoKeyError)) && !errors.Is(err, keyfuncs.ErrIgnore):
				t.Errorf("%s: error of type %T", name, err)
			}
		}
	})
}

func FuzzS3(f *testing.F) {
	fuzzKeys(f, "s3-", map[string]keyfuncs.Func[events.S3Event]{"S3Object": keyfuncs.S3Object, "latest": s3Latest})
}

func FuzzSQS(f *testing.F) {
	fuzzKeys(f, "sqs", map[string]keyfuncs.Func[events.SQSEvent]{
		"SQSMessage": sqsMessage, "SQSFIFOMessage": sqsFIFOMessage, "deduplicated": sqsDeduplicated,
		"S3 in a queue": keyfuncs.Single[events.SQSEvent](s3InQueue), "S3 in both": keyfuncs.Single[events.SQSEvent](s3InBoth),
		"EventBridge": keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.EventBridgeEvent)),
	})
}

// FuzzSQSBody fuzzes the body alone: inside a JSON string few mutations
// survive.
func FuzzSQSBody(f *testing.F) {
	keys := map[string]keyfuncs.Func[json.RawMessage]{}
	for name, key := range map[string]keyfuncs.Func[string]{
		"S3 in a queue": inQueue(s3InQueue), "S3 in both": inQueue(s3InBoth), "EventBridge": inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeEvent)),
	} {
		keys[name] = func(ctx context.Context, body json.RawMessage) (lock.Key, error) { return key(ctx, string(body)) }
	}
	fuzzKeys(f, "", keys)
}

func FuzzSNS(f *testing.F) {
	fuzzKeys(f, "sns", map[string]keyfuncs.Func[events.SNSEvent]{"SNSRecord": snsRecord, "S3 in a topic": keyfuncs.Single[events.SNSEvent](s3InTopic)})
}

func FuzzEventBridge(f *testing.F) {
	fuzzKeys(f, "eventbridge", map[string]keyfuncs.Func[events.EventBridgeEvent]{
		"EventBridgeEvent": keyfuncs.EventBridgeEvent, "EventBridgeSchedule": keyfuncs.EventBridgeSchedule, "EventBridgeS3Object": keyfuncs.EventBridgeS3Object,
	})
}

func FuzzCustomBus(f *testing.F) {
	fuzzKeys(f, "custombus-", map[string]keyfuncs.Func[awsevents.CustomBusEvent]{
		"CustomBusEvent": keyfuncs.CustomBusEvent, "CustomBusGroup": keyfuncs.CustomBusGroup, "CustomBusData": keyfuncs.CustomBusData(whole),
	})
}

func FuzzKinesis(f *testing.F) {
	fuzzKeys(f, "kinesis", map[string]keyfuncs.Func[events.KinesisEvent]{
		"KinesisRecord": kinesisRecord, "KinesisBody": keyfuncs.Single[events.KinesisEvent](keyfuncs.KinesisBody(whole)),
	})
}

// FuzzKinesisBody fuzzes the data alone: behind base64 no mutation survives.
func FuzzKinesisBody(f *testing.F) {
	f.Add([]byte(`{"order":17}`))
	key := inStream(keyfuncs.KinesisBody(whole))
	fuzzKeys(f, "eventbridge", map[string]keyfuncs.Func[json.RawMessage]{
		"KinesisBody": func(ctx context.Context, data json.RawMessage) (lock.Key, error) { return key(ctx, string(data)) },
	})
}

func FuzzDynamoDB(f *testing.F) {
	fuzzKeys(f, "dynamodb", map[string]keyfuncs.Func[events.DynamoDBEvent]{"DynamoDBRecord": dynamoDBRecord})
}

func FuzzKafka(f *testing.F) {
	fuzzKeys(f, "kafka", map[string]keyfuncs.Func[events.KafkaEvent]{"KafkaRecord": onlyRecord(keyfuncs.KafkaRecord), "by key": onlyRecord(kafkaKey)})
}

func FuzzDocumentDB(f *testing.F) {
	fuzzKeys(f, "documentdb", map[string]keyfuncs.Func[awsevents.DocumentDBEvent]{"DocumentDBRecord": onlyChange(keyfuncs.DocumentDBRecord)})
}

// whole locks what was decoded, so that fuzzKeys sees whether it is
// deterministic.
func whole(_ context.Context, p placed) (lock.Key, error) {
	return lock.Key{Name: "order/" + p.Order.String()}, nil
}

func FuzzREST(f *testing.F) { fuzzHTTP[events.APIGatewayProxyRequest](f, "apigateway-rest") }

func FuzzHTTP(f *testing.F) { fuzzHTTP[events.APIGatewayV2HTTPRequest](f, "apigateway-http") }

func FuzzWebSocket(f *testing.F) {
	fuzzHTTP[events.APIGatewayWebsocketProxyRequest](f, "apigateway-websocket-")
}

func FuzzALB(f *testing.F) { fuzzHTTP[events.ALBTargetGroupRequest](f, "alb") }

func FuzzFunctionURL(f *testing.F) { fuzzHTTP[events.LambdaFunctionURLRequest](f, "functionurl") }

func fuzzHTTP[E any](f *testing.F, seeds string) {
	fuzzKeys(f, seeds, map[string]keyfuncs.Func[E]{"IdempotencyKey": keyfuncs.IdempotencyKey[E], "HTTPBody": keyfuncs.HTTPBody[E](whole)})
}

func FuzzSES(f *testing.F) {
	fuzzKeys(f, "ses", map[string]keyfuncs.Func[events.SimpleEmailEvent]{"SESRecord": sesRecord})
}

func FuzzCloudFormation(f *testing.F) {
	fuzzKeys(f, "cloudformation", map[string]keyfuncs.Func[cfn.Event]{"CloudFormation": services.CloudFormation})
}

func FuzzCodePipelineJob(f *testing.F) {
	fuzzKeys(f, "codepipeline", map[string]keyfuncs.Func[events.CodePipelineJobEvent]{"CodePipelineJob": services.CodePipelineJob})
}

func FuzzCodeCommit(f *testing.F) {
	fuzzKeys(f, "codecommit", map[string]keyfuncs.Func[events.CodeCommitEvent]{"CodeCommitRecord": codeCommitRecord})
}

func FuzzConfigRule(f *testing.F) {
	fuzzKeys(f, "config", map[string]keyfuncs.Func[events.ConfigEvent]{"ConfigRule": services.ConfigRule})
}

func FuzzSecretRotation(f *testing.F) {
	fuzzKeys(f, "secretrotation", map[string]keyfuncs.Func[events.SecretsManagerSecretRotationEvent]{"SecretRotation": services.SecretRotation})
}

func FuzzS3BatchTask(f *testing.F) {
	fuzzKeys(f, "s3batch", map[string]keyfuncs.Func[events.S3BatchJobEventV2]{"S3BatchTask": services.S3BatchTask[events.S3BatchJobEventV2]})
}

func FuzzActiveMQ(f *testing.F) {
	fuzzKeys(f, "activemq", map[string]keyfuncs.Func[events.ActiveMQEvent]{"ActiveMQ": keyfuncs.ActiveMQEvent})
}

func FuzzRabbitMQ(f *testing.F) {
	fuzzKeys(f, "rabbitmq", map[string]keyfuncs.Func[events.RabbitMQEvent]{"RabbitMQ": keyfuncs.RabbitMQEvent})
}

// FuzzCloudWatchLogs fuzzes the payload as an event and as the log data in it:
// behind gzip and base64 no mutation survives.
func FuzzCloudWatchLogs(f *testing.F) {
	for _, log := range []string{
		`{"messageType":"DATA_MESSAGE","owner":"123456789012","logGroup":"g","logStream":"s","subscriptionFilters":["f"],"logEvents":[{"id":"1","timestamp":1,"message":"m"}]}`,
		`{"messageType":"CONTROL_MESSAGE","owner":"CloudwatchLogs","logGroup":"","logStream":"","subscriptionFilters":[],"logEvents":[{"id":""}]}`,
	} {
		f.Add([]byte(log))
	}
	fuzzKeys(f, "cloudwatchlogs", map[string]keyfuncs.Func[json.RawMessage]{
		"event": func(ctx context.Context, payload json.RawMessage) (lock.Key, error) {
			var e events.CloudwatchLogsEvent
			if err := json.Unmarshal(payload, &e); err != nil {
				return lock.Key{}, &lock.NoKeyError{Field: "payload", Reason: "is not an event", Err: err}
			}
			return services.CloudWatchLogs(ctx, e)
		},
		"data": func(ctx context.Context, payload json.RawMessage) (lock.Key, error) {
			return services.CloudWatchLogs(ctx, packedLogs(payload, gzip.NoCompression))
		},
	})
}

func FuzzCloudWatchAlarm(f *testing.F) {
	fuzzKeys(f, "alarm", map[string]keyfuncs.Func[awsevents.AlarmEvent]{"CloudWatchAlarm": services.CloudWatchAlarm})
}

// FuzzSNSAlarm fuzzes the message alone: inside a JSON string few
// mutations survive.
func FuzzSNSAlarm(f *testing.F) {
	f.Add([]byte(`{"AlarmName":"a","NewStateValue":"OK","StateChangeTime":"2026-11-21T08:15:30.123+0000","AlarmArn":"arn:a","Trigger":{"Threshold":1.5}}`))
	fuzzKeys(f, "sns-alarm", map[string]keyfuncs.Func[json.RawMessage]{
		"SNSAlarmRecord": func(ctx context.Context, message json.RawMessage) (lock.Key, error) {
			return inTopic(services.SNSAlarmRecord)(ctx, string(message))
		},
	})
}

func FuzzInvocationRecord(f *testing.F) {
	fuzzKeys(f, "invocationrecord", map[string]keyfuncs.Func[awsevents.InvocationRecord]{"InvocationRecord": services.InvocationRecord})
}

func FuzzStepFunctions(f *testing.F) {
	fuzzKeys(f, "stepfunctions", map[string]keyfuncs.Func[taskInput]{"StepFunctions": byTask})
}

func FuzzCognitoUser(f *testing.F) {
	fuzzKeys(f, "cognito", map[string]keyfuncs.Func[json.RawMessage]{
		"PostConfirmation": cognitoTriggers["PostConfirmation"],
		"PreTokenGen":      cognitoTriggers["PreTokenGen"],
		"MigrateUser":      cognitoTriggers["MigrateUser"],
	})
}

func FuzzIoT(f *testing.F) {
	fuzzKeys(f, "iot", map[string]keyfuncs.Func[reading]{"IoTRule": byMessage})
}

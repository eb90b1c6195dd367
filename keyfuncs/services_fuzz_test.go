package keyfuncs_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func FuzzActiveMQ(f *testing.F) {
	fuzzKeys(f, "activemq", map[string]keyfuncs.Func[events.ActiveMQEvent]{"ActiveMQ": keyfuncs.ActiveMQ})
}

func FuzzRabbitMQ(f *testing.F) {
	fuzzKeys(f, "rabbitmq", map[string]keyfuncs.Func[events.RabbitMQEvent]{"RabbitMQ": keyfuncs.RabbitMQ})
}

// FuzzCloudWatchLogs fuzzes the payload as an event and as the log data in it: behind
// gzip and base64 no mutation survives.
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
				return lock.Key{}, &lock.KeyError{Field: "payload", Reason: "is not an event", Err: err}
			}
			return keyfuncs.CloudWatchLogs(ctx, e)
		},
		"data": func(ctx context.Context, payload json.RawMessage) (lock.Key, error) {
			return keyfuncs.CloudWatchLogs(ctx, packedLogs(payload, gzip.NoCompression))
		},
	})
}

func FuzzCloudWatchAlarm(f *testing.F) {
	fuzzKeys(f, "alarm", map[string]keyfuncs.Func[keyfuncs.AlarmEvent]{"CloudWatchAlarm": keyfuncs.CloudWatchAlarm})
}

// FuzzCloudWatchAlarmViaSNS fuzzes the message alone: inside a JSON string few
// mutations survive.
func FuzzCloudWatchAlarmViaSNS(f *testing.F) {
	f.Add([]byte(`{"AlarmName":"a","NewStateValue":"OK","StateChangeTime":"2026-11-21T08:15:30.123+0000","AlarmArn":"arn:a","Trigger":{"Threshold":1.5}}`))
	fuzzKeys(f, "sns-alarm", map[string]keyfuncs.Func[json.RawMessage]{
		"CloudWatchAlarmViaSNS": func(ctx context.Context, message json.RawMessage) (lock.Key, error) {
			return keyfuncs.CloudWatchAlarmViaSNSRecord(ctx, events.SNSEventRecord{SNS: events.SNSEntity{MessageID: "m", Message: string(message)}})
		},
	})
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

func FuzzIoTRule(f *testing.F) {
	fuzzKeys(f, "iot", map[string]keyfuncs.Func[reading]{"IoTRule": byMessage})
}

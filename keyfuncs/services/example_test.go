package services_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func show(k lock.Key, err error) {
	fmt.Printf("name %q, event %q, order %q, error %v\n", k.Name, k.Event, k.Order, err)
}

func ExampleCloudFormation() {
	show(services.CloudFormation(context.Background(), cfn.Event{
		StackID: "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/1134083a", LogicalResourceID: "Bucket", RequestID: "5d478078",
	}))
	// Output: name "cloudformation/arn:aws:cloudformation:eu-central-1:123456789012:stack%2Fshop%2F1134083a/Bucket", event "5d478078", order "", error <nil>
}

func ExampleCodePipelineJob() {
	show(services.CodePipelineJob(context.Background(), events.CodePipelineJobEvent{CodePipelineJob: events.CodePipelineJob{ID: "c0d76431"}}))
	// Output: name "codepipeline/c0d76431", event "c0d76431", order "", error <nil>
}

func ExampleConfigRule() {
	k, err := services.ConfigRule(context.Background(), events.ConfigEvent{
		ConfigRuleArn: "arn:aws:config:eu-central-1:123456789012:config-rule/config-rule-0123456", ResultToken: "token",
		InvokingEvent: `{"configurationItem":{"resourceType":"AWS::EC2::Instance","resourceId":"i-8abd832c32"},"messageType":"ConfigurationItemChangeNotification"}`,
	})
	fmt.Println(k.Name, len(k.Event), err)
	// Output: config/arn:aws:config:eu-central-1:123456789012:config-rule%2Fconfig-rule-0123456/AWS::EC2::Instance/i-8abd832c32 43 <nil>
}

// A rotation function that runs each step of a version once.
func ExampleSecretRotation() {
	step := func(_ context.Context, e events.SecretsManagerSecretRotationEvent) (lock.Key, error) {
		return lock.Key{Name: e.ClientRequestToken + "/" + e.Step}, nil
	}
	e := events.SecretsManagerSecretRotationEvent{SecretID: "arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-ABCD1E", ClientRequestToken: "1ab23456", Step: "createSecret"}
	show(services.SecretRotation(context.Background(), e))
	show(keyfuncs.EventFrom(services.SecretRotation, step)(context.Background(), e))
	// Output:
	// name "secret/arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-ABCD1E", event "", order "", error <nil>
	// name "secret/arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-ABCD1E", event "1ab23456/createSecret", order "", error <nil>
}

func ExampleS3BatchTask() {
	show(services.S3BatchTask(context.Background(), events.S3BatchJobEventV2{
		InvocationID: "YXNkbGZq", Job: events.S3BatchJobV2{ID: "f3cc4f60"}, Tasks: []events.S3BatchJobTaskV2{{TaskID: "dGFza2lk"}},
	}))
	// Output: name "s3batch/f3cc4f60/dGFza2lk", event "YXNkbGZq", order "", error <nil>
}

// The task has "Payload": {"order.$": "$.order", "context.$": "$$"} among its
// Parameters.
func ExampleStepFunctions() {
	type input struct {
		Order   int                            `json:"order"`
		Context awsevents.StepFunctionsContext `json:"context"`
	}
	perTask := services.StepFunctions(func(in input) awsevents.StepFunctionsContext { return in.Context })

	var in input
	err := json.Unmarshal([]byte(`{
		"order": 1017,
		"context": {
			"Execution": {"Id": "arn:aws:states:eu-central-1:123456789012:execution:orders:1017"},
			"State": {"Name": "Charge", "EnteredTime": "2026-11-21T08:15:30.123Z", "RetryCount": 1}
		}
	}`), &in)
	if err != nil {
		fmt.Println(err)
	}
	show(perTask(context.Background(), in))
	// Output: name "stepfunctions/arn:aws:states:eu-central-1:123456789012:execution:orders:1017/Charge/qmqgHPsHb6zQMAxszGQwqrJ4QhjumlH_EWG03VdDZ_U", event "2026-11-21T08:15:30.123Z/qmqgHPsHb6zQMAxszGQwqrJ4QhjumlH_EWG03VdDZ_U", order "", error <nil>
}

func ExampleCognitoUser() {
	var e events.CognitoEventUserPoolsPostConfirmation
	e.UserPoolID, e.UserName = "eu-central-1_Ab1Cd2Ef3", "jane"
	show(services.CognitoUser(context.Background(), e))
	// Output: name "cognito/eu-central-1_Ab1Cd2Ef3/jane", event "", order "", error <nil>
}

// The SQL of the rule is:
//
//	SELECT *, topic() AS topic, traceid() AS traceId FROM 'sensors/#'
func ExampleIoTRule() {
	type reading struct {
		awsevents.IoTMessage
		Celsius float64 `json:"celsius"`
	}
	perMessage := services.IoTRule(func(r reading) awsevents.IoTMessage { return r.IoTMessage })

	var r reading
	if err := json.Unmarshal([]byte(`{"celsius": 21.5, "topic": "sensors/kitchen", "traceId": "0d9c8b7a"}`), &r); err != nil {
		fmt.Println(err)
	}
	show(perMessage(context.Background(), r))
	// Output: name "iot/sensors%2Fkitchen/0d9c8b7a", event "0d9c8b7a", order "", error <nil>
}

func ExampleCloudWatchAlarm() {
	show(services.CloudWatchAlarm(context.Background(), awsevents.AlarmEvent{
		AlarmARN:  "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:slow",
		AlarmData: awsevents.AlarmData{State: awsevents.AlarmState{Value: "ALARM", Timestamp: "2026-11-21T08:15:30.123+0000"}},
	}))
	// Output: name "alarm/arn:aws:cloudwatch:eu-central-1:123456789012:alarm:slow", event "ALARM/2026-11-21T08:15:30.123+0000", order "", error <nil>
}

func ExampleSNSAlarmRecord() {
	k, err := services.SNSAlarmRecord(context.Background(), events.SNSEventRecord{SNS: events.SNSEntity{
		MessageID: "95df01b4",
		Message:   `{"AlarmArn": "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:slow", "NewStateValue": "OK", "StateChangeTime": "2026-11-21T08:20:30.123+0000"}`,
	}})
	fmt.Println(k.Name, err)
	// Output: alarm/arn:aws:cloudwatch:eu-central-1:123456789012:alarm:slow <nil>
}

func ExampleCloudWatchLogs() {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"messageType": "DATA_MESSAGE", "owner": "123456789012", "logGroup": "orders", "logStream": "s", "logEvents": [{"id": "1"}]}`))
	_ = z.Close()
	k, err := services.CloudWatchLogs(context.Background(), events.CloudwatchLogsEvent{
		AWSLogs: events.CloudwatchLogsRawData{Data: base64.StdEncoding.EncodeToString(packed.Bytes())},
	})
	fmt.Println(k.Name, err)
	// Output: cloudwatchlogs/orders/s/O5GNOFy9dUYjTuz3CwaV_0kKSv1I2uR0yb3xXYdY53A <nil>
}

// What failed for good in another function, from the queue that is its
// destination.
func ExampleInvocationRecord() {
	key := keyfuncs.SQSBody(services.InvocationRecord)
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: `{"requestContext": {
		"requestId": "e4b46cbf", "functionArn": "arn:aws:lambda:eu-central-1:123456789012:function:orders", "condition": "RetriesExhausted"
	}}`}))
	// Output: name "invocation/arn:aws:lambda:eu-central-1:123456789012:function:orders/e4b46cbf", event "e4b46cbf/RetriesExhausted", order "", error <nil>
}

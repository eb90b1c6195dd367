package eventkind_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// kinds has the kinds of the events in keyfuncs/testdata, by the beginning of
// their names: the longest that fits counts.
var kinds = map[string]eventkind.Kind{
	"s3-": eventkind.S3, "s3-test": eventkind.S3Test, "sqs": eventkind.SQS, "sns": eventkind.SNS, "eventbridge": eventkind.EventBridge,
	"kinesis": eventkind.Kinesis, "dynamodb": eventkind.DynamoDB, "kafka": eventkind.Kafka, "activemq": eventkind.ActiveMQ, "rabbitmq": eventkind.RabbitMQ,
	"cloudwatchlogs": eventkind.CloudWatchLogs, "alarm": eventkind.Alarm, "apigateway": eventkind.HTTP, "alb": eventkind.HTTP, "functionurl": eventkind.HTTP,
	"ses": eventkind.SES, "codecommit": eventkind.CodeCommit, "codepipeline": eventkind.CodePipeline, "cloudformation": eventkind.CloudFormation,
	"config": eventkind.ConfigRule, "secretrotation": eventkind.SecretRotation, "s3batch": eventkind.S3Batch, "documentdb": eventkind.DocumentDB,
	"invocationrecord": eventkind.InvocationRecord,
	"cognito":          "", "iot": "", "stepfunctions": "",
}

func TestOf(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../keyfuncs/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no events: %v", err)
	}
	for _, file := range files {
		name, longest := filepath.Base(file), "none"
		for prefix := range kinds {
			if strings.HasPrefix(name, prefix) && (longest == "none" || len(prefix) > len(longest)) {
				longest = prefix
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, ok := kinds[longest]
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := eventkind.Of(b); !ok || got != want {
				t.Errorf("is %q, want %q", got, want)
			}
		})
	}
}

// TestEveryKindHasAKeyFunction: an error that names none helps nobody.
func TestEveryKindHasAKeyFunction(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		for _, carrier := range []eventkind.Kind{"", eventkind.SQS, eventkind.SNS, eventkind.Kinesis, eventkind.EventBridge} {
			if k != "" && k.KeyFunction(carrier) == "" {
				t.Errorf("%s: %q in %q has no key function", name, k, carrier)
			}
		}
	}
}

func TestOfOddities(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]eventkind.Kind{
		``: "", `{`: "", `null`: "", `[]`: "", `"text"`: "", `17`: "", `{}`: "", `{"Records":[]}`: "", `{"Records":null}`: "", `{"Records":17}`: "",
		`{"Records":[{"eventSource":"minio:s3"}]}`:                       "",
		`{"Event":"s3:TestEvent"}`:                                       eventkind.S3Test,
		`{"Event":"s3:TestEvent","Service":"Another"}`:                   "",
		`{"Event":"s3:TestEvent","Service":"Amazon S3"}`:                 eventkind.S3Test,
		`{"Records":[{"s3":{}}]}`:                                        eventkind.S3,
		`{"Records":[{"messageId":"m"}]}`:                                eventkind.SQS,
		`{"Records":[{"Sns":{}}]}`:                                       eventkind.SNS,
		`{"Records":[17]}`:                                               "",
		`{"Records":[null]}`:                                             "",
		`{"Type":"Notification","Message":"m"}`:                          eventkind.SNSMessage,
		`{"Type":"order","Message":"m"}`:                                 "",
		`{"detail-type":"Order","detail":{}}`:                            eventkind.EventBridge,
		`{"event":"s3:TestEvent"}`:                                       "",
		`{"eventSource":"aws:amq","messages":[]}`:                        eventkind.ActiveMQ,
		`{"eventSource":"aws:SelfManagedKafka","records":{}}`:            eventkind.Kafka,
		`{"requestContext":{"functionArn":17}}`:                          eventkind.HTTP,
		`{"requestContext":{"functionArn":"f","requestId":"r"}}`:         eventkind.InvocationRecord,
		`{"Event":["s3:TestEvent"]}`:                                     "",
		`{"Event":"s3:TestEvent","Records":[{"EventSource":"aws:sns"}]}`: eventkind.SNS,
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			if got := eventkind.Of([]byte(doc)); got != want {
				t.Errorf("is %q, want %q", got, want)
			}
		})
	}
}

func TestNoS3Records(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"Event":"s3:TestEvent"}`: "", `{"Records":[]}`: "no S3 notification", `{"order":17}`: "no S3 notification",
		`{"Type":"Notification","TopicArn":"t","Message":"m"}`: "SQSBody(SNSBody(S3Object))",
		`{"detail-type":"d","source":"s","detail":{}}`:         "SQSBody(EventBridgeEvent)",
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			if got := eventkind.NoS3Records([]byte(doc), eventkind.SQS); !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%q, want %q in it", got, want)
			}
		})
	}
}

package keyfuncs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func ExampleSESEmail() {
	var r events.SimpleEmailRecord
	r.SES.Mail.MessageID, r.SES.Receipt.Recipients = "d6iitobk75", []string{"orders@example.com"}
	show(keyfuncs.SESEmail(context.Background(), events.SimpleEmailEvent{Records: []events.SimpleEmailRecord{r}}))
	// Output: name "ses/d6iitobk75/fFTy8KUsZINkDEfmDTlnblH2gHasD2241fltvIySVx0", event "d6iitobk75", order "", error <nil>
}

func ExampleCloudFormation() {
	show(keyfuncs.CloudFormation(context.Background(), cfn.Event{
		StackID: "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/1134083a", LogicalResourceID: "Bucket", RequestID: "5d478078",
	}))
	// Output: name "cloudformation/arn:aws:cloudformation:eu-central-1:123456789012:stack%2Fshop%2F1134083a/Bucket", event "5d478078", order "", error <nil>
}

func ExampleCodePipelineJob() {
	show(keyfuncs.CodePipelineJob(context.Background(), events.CodePipelineJobEvent{CodePipelineJob: events.CodePipelineJob{ID: "c0d76431"}}))
	// Output: name "codepipeline/c0d76431", event "c0d76431", order "", error <nil>
}

func ExampleCodeCommit() {
	show(keyfuncs.CodeCommit(context.Background(), events.CodeCommitEvent{Records: []events.CodeCommitRecord{{
		EventSourceARN: "arn:aws:codecommit:eu-central-1:123456789012:shop", EventID: "31ade2c7", EventPartNumber: 1,
		EventTime: events.CodeCommitEventTime(time.UnixMilli(1795249183000)),
	}}}))
	// Output: name "codecommit/arn:aws:codecommit:eu-central-1:123456789012:shop/31ade2c7%2F1%2F1795249183000", event "31ade2c7/1/1795249183000", order "", error <nil>
}

func ExampleConfigRule() {
	k, err := keyfuncs.ConfigRule(context.Background(), events.ConfigEvent{
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
	show(keyfuncs.SecretRotation(context.Background(), e))
	show(keyfuncs.EventFrom(keyfuncs.SecretRotation, step)(context.Background(), e))
	// Output:
	// name "secret/arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-ABCD1E", event "", order "", error <nil>
	// name "secret/arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-ABCD1E", event "1ab23456/createSecret", order "", error <nil>
}

func ExampleS3BatchTask() {
	show(keyfuncs.S3BatchTask(context.Background(), events.S3BatchJobEventV2{
		InvocationID: "YXNkbGZq", Job: events.S3BatchJobV2{ID: "f3cc4f60"}, Tasks: []events.S3BatchJobTaskV2{{TaskID: "dGFza2lk"}},
	}))
	// Output: name "s3batch/f3cc4f60/dGFza2lk", event "YXNkbGZq", order "", error <nil>
}

func ExampleDocumentDB() {
	var e keyfuncs.DocumentDBEvent
	err := json.Unmarshal([]byte(`{
		"eventSource": "aws:docdb",
		"eventSourceArn": "arn:aws:rds:eu-central-1:123456789012:cluster:shop",
		"events": [{"event": {
			"_id": {"_data": "0163eeb6e7"}, "operationType": "insert", "ns": {"db": "shop", "coll": "orders"}, "documentKey": {"_id": 1017}
		}}]
	}`), &e)
	if err != nil {
		fmt.Println(err)
	}
	show(keyfuncs.DocumentDB(context.Background(), e))
	// Output: name "documentdb/arn:aws:rds:eu-central-1:123456789012:cluster:shop/shop/orders/%7B%22_id%22:1017%7D", event "0163eeb6e7", order "", error <nil>
}

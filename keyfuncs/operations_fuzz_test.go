package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

func FuzzSESEmail(f *testing.F) {
	fuzzKeys(f, "ses", map[string]keyfuncs.Func[events.SimpleEmailEvent]{"SESEmail": keyfuncs.SESEmail})
}

func FuzzCloudFormation(f *testing.F) {
	fuzzKeys(f, "cloudformation", map[string]keyfuncs.Func[cfn.Event]{"CloudFormation": keyfuncs.CloudFormation})
}

func FuzzCodePipelineJob(f *testing.F) {
	fuzzKeys(f, "codepipeline", map[string]keyfuncs.Func[events.CodePipelineJobEvent]{"CodePipelineJob": keyfuncs.CodePipelineJob})
}

func FuzzCodeCommit(f *testing.F) {
	fuzzKeys(f, "codecommit", map[string]keyfuncs.Func[events.CodeCommitEvent]{"CodeCommit": keyfuncs.CodeCommit})
}

func FuzzConfigRule(f *testing.F) {
	fuzzKeys(f, "config", map[string]keyfuncs.Func[events.ConfigEvent]{"ConfigRule": keyfuncs.ConfigRule})
}

func FuzzSecretRotation(f *testing.F) {
	fuzzKeys(f, "secretrotation", map[string]keyfuncs.Func[events.SecretsManagerSecretRotationEvent]{"SecretRotation": keyfuncs.SecretRotation})
}

func FuzzS3BatchTask(f *testing.F) {
	fuzzKeys(f, "s3batch", map[string]keyfuncs.Func[events.S3BatchJobEventV2]{"S3BatchTask": keyfuncs.S3BatchTask[events.S3BatchJobEventV2]})
}

func FuzzDocumentDB(f *testing.F) {
	fuzzKeys(f, "documentdb", map[string]keyfuncs.Func[keyfuncs.DocumentDBEvent]{"DocumentDB": keyfuncs.DocumentDB})
}

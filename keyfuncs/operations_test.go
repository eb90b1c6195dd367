package keyfuncs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// apart checks that each change of an event makes another name or event, and that
// an event has one key.
func apart[E any](t *testing.T, file string, key keyfuncs.Func[E], changes map[string]func(*E)) {
	t.Helper()
	unchanged, err := keyOf(t, file, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[lock.Key]string{unchanged: "the event as it is"}
	for name, change := range changes {
		k, err := keyOf(t, file, key, change)
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%s, %s and %s: both %+v, %v", file, name, other, k, err)
		}
		seen[k] = name
	}
}

func TestSESEmail(t *testing.T) {
	t.Parallel()
	id := "6n4thuhcbhpfiuf25gshf70rss364fuejrvmqko1"
	same(t, "ses.json", keyfuncs.SESEmail, lock.Key{Name: "ses/" + id + "/Bu8LBypUSRUIw6TmElNskmNtAInA5EuXFB9BTzLukZg", Event: id})
	apart(t, "ses.json", keyfuncs.SESEmail, map[string]func(*events.SimpleEmailEvent){
		"another email": func(e *events.SimpleEmailEvent) { e.Records[0].SES.Mail.MessageID += "2" },
		"another rule":  func(e *events.SimpleEmailEvent) { e.Records[0].SES.Receipt.Recipients = []string{"a@example.com"} },
		"a rule with both": func(e *events.SimpleEmailEvent) {
			e.Records[0].SES.Receipt.Recipients = []string{"a@example.com", "lambda@amazon.com"}
		},
		"a rule without any": func(e *events.SimpleEmailEvent) { e.Records[0].SES.Receipt.Recipients = nil },
	})
	refuses(t, "ses.json", keyfuncs.SESEmail, "Records[0].ses.mail.messageId", func(e *events.SimpleEmailEvent) { e.Records[0].SES.Mail.MessageID = "" })
	refuses(t, "ses.json", keyfuncs.SESEmail, "Records", func(e *events.SimpleEmailEvent) { e.Records = append(e.Records, e.Records[0]) })
	refuses(t, "sqs.json", keyfuncs.SESEmail, "Records[0].eventSource", nil)
}

func TestCloudFormation(t *testing.T) {
	t.Parallel()
	same(t, "cloudformation.json", keyfuncs.CloudFormation, lock.Key{
		Name:  "cloudformation/arn:aws:cloudformation:us-east-2:123456789012:stack%2Flambda-error-processor%2F1134083a-2608-1e91-9897-022501a2c456/primerinvoke",
		Event: "5d478078-13e9-baf0-464a-7ef285ecc786",
	})
	apart(t, "cloudformation.json", keyfuncs.CloudFormation, map[string]func(*cfn.Event){
		"another request":  func(e *cfn.Event) { e.RequestID += "2" },
		"another resource": func(e *cfn.Event) { e.LogicalResourceID += "2" },
		"another stack":    func(e *cfn.Event) { e.StackID += "2" },
	})
	for field, change := range map[string]func(*cfn.Event){
		"StackId":           func(e *cfn.Event) { e.StackID = "" },
		"LogicalResourceId": func(e *cfn.Event) { e.LogicalResourceID = "" },
		"RequestId":         func(e *cfn.Event) { e.RequestID = "" },
	} {
		refuses(t, "cloudformation.json", keyfuncs.CloudFormation, field, change)
	}
	topic := events.SNSEventRecord{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m", Message: file(t, "cloudformation.json")}}
	want, _ := keyOf(t, "cloudformation.json", keyfuncs.CloudFormation, nil)
	if k, err := keyfuncs.SNSBody(keyfuncs.CloudFormation)(t.Context(), topic); k != want || err != nil {
		t.Errorf("through a topic: %+v, %v", k, err)
	}
}

func TestCodePipelineJob(t *testing.T) {
	t.Parallel()
	id := "11111111-abcd-1111-abcd-111111abcdef"
	same(t, "codepipeline.json", keyfuncs.CodePipelineJob, lock.Key{Name: "codepipeline/" + id, Event: id + "/6tMflxWTVlz_bnJuIBCKscv0S57e5mNaI8PTrZwpWt8"})
	first := func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.Data.ContinuationToken = "" }
	if k, err := keyOf(t, "codepipeline.json", keyfuncs.CodePipelineJob, first); k != (lock.Key{Name: "codepipeline/" + id, Event: id}) || err != nil {
		t.Errorf("the first job of an action: %+v, %v", k, err)
	}
	apart(t, "codepipeline.json", keyfuncs.CodePipelineJob, map[string]func(*events.CodePipelineJobEvent){
		"another job":   func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.ID += "2" },
		"another token": func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.Data.ContinuationToken += "2" },
		"no token":      first,
	})
	refuses(t, "codepipeline.json", keyfuncs.CodePipelineJob, "CodePipeline.job.id", func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.ID = "" })
}

func TestCodeCommit(t *testing.T) {
	t.Parallel()
	same(t, "codecommit.json", keyfuncs.CodeCommit, lock.Key{
		Name:  "codecommit/arn:aws:codecommit:us-east-2:123456789012:lambda-pipeline-repo/31ade2c7-f889-47c5-a937-1cf99e2790e9%2F1%2F1552424305400",
		Event: "31ade2c7-f889-47c5-a937-1cf99e2790e9/1/1552424305400",
	})
	of := func(change func(*events.CodeCommitRecord)) func(*events.CodeCommitEvent) {
		return func(e *events.CodeCommitEvent) { change(&e.Records[0]) }
	}
	apart(t, "codecommit.json", keyfuncs.CodeCommit, map[string]func(*events.CodeCommitEvent){
		"another event":      of(func(r *events.CodeCommitRecord) { r.EventID += "2" }),
		"another part":       of(func(r *events.CodeCommitRecord) { r.EventPartNumber++ }),
		"another repository": of(func(r *events.CodeCommitRecord) { r.EventSourceARN += "2" }),
		"another test": of(func(r *events.CodeCommitRecord) {
			r.EventTime = events.CodeCommitEventTime(time.Time(r.EventTime).Add(time.Second))
		}),
	})
	refuses(t, "codecommit.json", keyfuncs.CodeCommit, "Records[0].eventId", of(func(r *events.CodeCommitRecord) { r.EventID = "" }))
	refuses(t, "codecommit.json", keyfuncs.CodeCommit, "Records[0].eventSourceARN", of(func(r *events.CodeCommitRecord) { r.EventSourceARN = "" }))
}

func TestConfigRule(t *testing.T) {
	t.Parallel()
	rule := "config/arn:aws:config:us-east-2:123456789012:config-rule%2Fconfig-rule-"
	for file, name := range map[string]string{
		"config-change.json":    rule + "0123456/AWS::EC2::Instance/i-00000000",
		"config-oversized.json": rule + "ec2-managed-instance-inventory/AWS::EC2::Instance/i-00000000",
		"config-scheduled.json": rule + "0123456/ScheduledNotification",
	} {
		k, err := keyOf(t, file, keyfuncs.ConfigRule, nil)
		if k.Name != name || len(k.Event) != 43 || k.Order != "" || err != nil {
			t.Errorf("%s: %+v, %v; want the name %s and a digest", file, k, err, name)
		}
		same(t, file, keyfuncs.ConfigRule, k)
		apart(t, file, keyfuncs.ConfigRule, map[string]func(*events.ConfigEvent){
			"evaluated anew": func(e *events.ConfigEvent) { e.ResultToken += "2" },
			"another rule":   func(e *events.ConfigEvent) { e.ConfigRuleArn += "2" },
			"another time":   func(e *events.ConfigEvent) { e.InvokingEvent = strings.ReplaceAll(e.InvokingEvent, "2016-", "2017-") },
		})
	}
	for field, change := range map[string]func(*events.ConfigEvent){
		"configRuleArn":             func(e *events.ConfigEvent) { e.ConfigRuleArn = "" },
		"resultToken":               func(e *events.ConfigEvent) { e.ResultToken = "" },
		"invokingEvent":             func(e *events.ConfigEvent) { e.InvokingEvent = "{" },
		"invokingEvent.messageType": func(e *events.ConfigEvent) { e.InvokingEvent = "{}" },
		"invokingEvent.configurationItem.resourceId": func(e *events.ConfigEvent) {
			e.InvokingEvent = strings.Replace(e.InvokingEvent, `"i-00000000"`, `""`, 1)
		},
	} {
		refuses(t, "config-change.json", keyfuncs.ConfigRule, field, change)
	}
}

func TestSecretRotation(t *testing.T) {
	t.Parallel()
	same(t, "secretrotation.json", keyfuncs.SecretRotation, lock.Key{Name: "secret/arn:aws:secretsmanager:us-east-1:111122223333:secret:id-ABCD1E"})
	for field, change := range map[string]func(*events.SecretsManagerSecretRotationEvent){
		"SecretId":           func(e *events.SecretsManagerSecretRotationEvent) { e.SecretID = "" },
		"ClientRequestToken": func(e *events.SecretsManagerSecretRotationEvent) { e.ClientRequestToken = "" },
		"Step":               func(e *events.SecretsManagerSecretRotationEvent) { e.Step = "" },
	} {
		refuses(t, "secretrotation.json", keyfuncs.SecretRotation, field, change)
	}
}

func TestS3BatchTask(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "s3batch/f3cc4f60-61f6-4a2b-8a21-d07600c373ce/dGFza2lkZ29lc2hlcmUK", Event: "YXNkbGZqYWRmaiBhc2RmdW9hZHNmZGpmaGFzbGtkaGZza2RmaAo"}
	same(t, "s3batch-1.json", keyfuncs.S3BatchTask[events.S3BatchJobEvent], want)
	same(t, "s3batch-2.json", keyfuncs.S3BatchTask[events.S3BatchJobEventV2], want)
	apart(t, "s3batch-2.json", keyfuncs.S3BatchTask, map[string]func(*events.S3BatchJobEventV2){
		"another invocation": func(e *events.S3BatchJobEventV2) { e.InvocationID += "2" },
		"another task":       func(e *events.S3BatchJobEventV2) { e.Tasks[0].TaskID += "2" },
		"another job":        func(e *events.S3BatchJobEventV2) { e.Job.ID += "2" },
	})
	for field, change := range map[string]func(*events.S3BatchJobEvent){
		"job.id":          func(e *events.S3BatchJobEvent) { e.Job.ID = "" },
		"invocationId":    func(e *events.S3BatchJobEvent) { e.InvocationID = "" },
		"tasks":           func(e *events.S3BatchJobEvent) { e.Tasks = nil },
		"tasks[0].taskId": func(e *events.S3BatchJobEvent) { e.Tasks[0].TaskID = "" },
	} {
		refuses(t, "s3batch-1.json", keyfuncs.S3BatchTask, field, change)
	}
}

func TestDocumentDB(t *testing.T) {
	t.Parallel()
	want := lock.Key{
		Name: "documentdb/arn:aws:rds:us-east-1:123456789012:cluster:canaryclusterb2a659a2-qo5tcmqkcl03/test_database/test_collection/" +
			"%7B%22_id%22:%7B%22$oid%22:%2263eeb6e7d418cd98afb1c1d7%22%7D%7D",
		Event: "0163eeb6e7000000090100000009000041e1",
	}
	same(t, "documentdb.json", keyfuncs.DocumentDB, want)
	e := load[keyfuncs.DocumentDBEvent](t, "documentdb.json")
	if k, err := keyfuncs.DocumentDBRecord(t.Context(), e.Events[0]); k != want || err != nil {
		t.Errorf("DocumentDBRecord: %+v, %v", k, err)
	}
	of := func(change func(*keyfuncs.DocumentDBChange)) func(*keyfuncs.DocumentDBEvent) {
		return func(e *keyfuncs.DocumentDBEvent) { change(&e.Events[0].Event) }
	}
	apart(t, "documentdb.json", keyfuncs.DocumentDB, map[string]func(*keyfuncs.DocumentDBEvent){
		"another change":     of(func(c *keyfuncs.DocumentDBChange) { c.ID.Data += "2" }),
		"another document":   of(func(c *keyfuncs.DocumentDBChange) { c.DocumentKey = json.RawMessage(`{"_id":17}`) }),
		"no document":        of(func(c *keyfuncs.DocumentDBChange) { c.DocumentKey = nil }),
		"another collection": of(func(c *keyfuncs.DocumentDBChange) { c.Namespace.Collection += "2" }),
		"another database":   of(func(c *keyfuncs.DocumentDBChange) { c.Namespace.Database += "2" }),
		"another cluster":    func(e *keyfuncs.DocumentDBEvent) { e.Events[0].Cluster += "2" },
	})
	refuses(t, "documentdb.json", keyfuncs.DocumentDB, "events[0].event._id._data", of(func(c *keyfuncs.DocumentDBChange) { c.ID.Data = "" }))
	refuses(t, "documentdb.json", keyfuncs.DocumentDB, "events[0].event.documentKey", of(func(c *keyfuncs.DocumentDBChange) { c.DocumentKey = json.RawMessage(`{`) }))
	refuses(t, "documentdb.json", keyfuncs.DocumentDB, "events", func(e *keyfuncs.DocumentDBEvent) { e.Events = append(e.Events, e.Events[0]) })
	refuses(t, "kafka.json", keyfuncs.DocumentDB, "eventSource", nil)
}

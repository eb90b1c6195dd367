package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestS3BatchTask(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "s3batch/f3cc4f60-61f6-4a2b-8a21-d07600c373ce/dGFza2lkZ29lc2hlcmUK", Event: "YXNkbGZqYWRmaiBhc2RmdW9hZHNmZGpmaGFzbGtkaGZza2RmaAo"}
	gives(t, "s3batch-1.json", services.S3BatchTask[events.S3BatchJobEvent], want)
	gives(t, "s3batch-2.json", services.S3BatchTask[events.S3BatchJobEventV2], want)
	apart(t, "s3batch-2.json", services.S3BatchTask, map[string]func(*events.S3BatchJobEventV2){
		"another invocation": func(e *events.S3BatchJobEventV2) { e.InvocationID += "2" },
		"another task":       func(e *events.S3BatchJobEventV2) { e.Tasks[0].TaskID += "2" },
		"another job":        func(e *events.S3BatchJobEventV2) { e.Job.ID += "2" },
	})
	refuses(t, "s3batch-1.json", services.S3BatchTask, map[string]func(*events.S3BatchJobEvent){
		"job.id":          func(e *events.S3BatchJobEvent) { e.Job.ID = "" },
		"invocationId":    func(e *events.S3BatchJobEvent) { e.InvocationID = "" },
		"tasks":           func(e *events.S3BatchJobEvent) { e.Tasks = nil },
		"tasks[0].taskId": func(e *events.S3BatchJobEvent) { e.Tasks[0].TaskID = "" },
	})
}

package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestCodePipelineJob(t *testing.T) {
	t.Parallel()
	id := "11111111-abcd-1111-abcd-111111abcdef"
	gives(t, "codepipeline.json", services.CodePipelineJob, lock.Key{Name: "codepipeline/" + id, Event: id + "/6tMflxWTVlz_bnJuIBCKscv0S57e5mNaI8PTrZwpWt8"})
	first := func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.Data.ContinuationToken = "" }
	if k, err := changed(t, "codepipeline.json", services.CodePipelineJob, first); k != (lock.Key{Name: "codepipeline/" + id, Event: id}) || err != nil {
		t.Errorf("the first job of an action: %+v, %v", k, err)
	}
	apart(t, "codepipeline.json", services.CodePipelineJob, map[string]func(*events.CodePipelineJobEvent){
		"another job":   func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.ID += "2" },
		"another token": func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.Data.ContinuationToken += "2" },
		"no token":      first,
	})
	refuses(t, "codepipeline.json", services.CodePipelineJob, map[string]func(*events.CodePipelineJobEvent){
		"CodePipeline.job.id": func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.ID = "" },
	})
}

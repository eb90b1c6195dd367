package services

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// CodePipelineJob handles each job of a pipeline once. Name is the job id,
// Event the job id and a digest of the continuation token, if there is one:
// each check of work in progress is a separate event. No Order.
func CodePipelineJob(_ context.Context, e events.CodePipelineJobEvent) (lock.Key, error) {
	// https://docs.aws.amazon.com/codepipeline/latest/userguide/actions-invoke-lambda-function.html
	job := e.CodePipelineJob
	if job.ID == "" {
		return lock.Key{}, keyparts.Missing("CodePipeline.job.id")
	}
	k := keyparts.Once("codepipeline", job.ID)
	if token := job.Data.ContinuationToken; token != "" {
		k.Event += "/" + keyparts.Digest(token)
	}
	return k, nil
}

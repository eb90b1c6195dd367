package keyfuncs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// CodePipelineJob handles each job of a pipeline once. Name is the job id, Event the
// job id and a digest of the continuation token, if there is one. A function that
// gives CodePipeline such a token is invoked again for a new job, so that each look
// at the work in progress is an event of its own. No Order.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/services-codepipeline.html,
// https://docs.aws.amazon.com/codepipeline/latest/userguide/actions-invoke-lambda-function.html.
func CodePipelineJob(_ context.Context, e events.CodePipelineJobEvent) (lock.Key, error) {
	job := e.CodePipelineJob
	if job.ID == "" {
		return lock.Key{}, missing("CodePipeline.job.id")
	}
	k := once("codepipeline", job.ID)
	if token := job.Data.ContinuationToken; token != "" {
		k.Event += "/" + digest(token)
	}
	return k, nil
}

// CodeCommit handles each event of a repository's trigger once. Event is event id,
// number of the part and time, Name the repository and these: events never wait for
// each other. A push of many references comes in several parts. The time is there
// because events that test a trigger may all have the trigger's own id. No Order.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-codecommit.html.
func CodeCommit(ctx context.Context, e events.CodeCommitEvent) (lock.Key, error) {
	return only(ctx, "Records", e.Records, CodeCommitRecord, "CodeCommit sends one")
}

// CodeCommitRecord is [CodeCommit] for one record.
func CodeCommitRecord(_ context.Context, r events.CodeCommitRecord) (lock.Key, error) {
	if err := sourceOf(r); err != nil {
		return lock.Key{}, err
	}
	if r.EventSourceARN == "" {
		return lock.Key{}, missing("eventSourceARN")
	}
	if r.EventID == "" {
		return lock.Key{}, missing("eventId")
	}
	at := time.Time(r.EventTime).UnixMilli()
	return once("codecommit", fmt.Sprintf("%s/%d/%d", r.EventID, r.EventPartNumber, at), r.EventSourceARN), nil
}

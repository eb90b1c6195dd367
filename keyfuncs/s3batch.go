package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// S3BatchEvent is the event of S3 Batch Operations, of invocation schema 1.0 or 2.0.
type S3BatchEvent interface {
	events.S3BatchJobEvent | events.S3BatchJobEventV2
}

// S3BatchTask works on one invocation for a task of an S3 Batch Operations job at a
// time, each once. Name is job and task, Event the invocation id: S3 invokes the
// function again for a task whose result was TemporaryFailure, and that is new work.
// AWS does not say that the id is then another one; if it were not, the task would
// be reported as failed. No Order.
//
// S3 waits for the result, so give middleware.OnDone(middleware.Replay): the zero
// result of a skipped duplicate is no answer.
//
// Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-invoke-lambda.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-s3-batch.html.
func S3BatchTask[E S3BatchEvent](ctx context.Context, e E) (lock.Key, error) {
	job, invocation, tasks := s3Batch(e)
	if err := required(part{"job.id", job}, part{"invocationId", invocation}); err != nil {
		return lock.Key{}, err
	}
	return only(ctx, "tasks", tasks, func(_ context.Context, task string) (lock.Key, error) {
		if task == "" {
			return lock.Key{}, missing("taskId")
		}
		return lock.Key{Name: named("s3batch", job, task), Event: invocation}, nil
	}, "S3 sends one")
}

// s3Batch: a type parameter gives no way to a field that all its types have.
func s3Batch[E S3BatchEvent](e E) (job, invocation string, tasks []string) {
	switch e := any(e).(type) {
	case events.S3BatchJobEvent:
		for _, t := range e.Tasks {
			tasks = append(tasks, t.TaskID)
		}
		return e.Job.ID, e.InvocationID, tasks
	case events.S3BatchJobEventV2:
		for _, t := range e.Tasks {
			tasks = append(tasks, t.TaskID)
		}
		return e.Job.ID, e.InvocationID, tasks
	}
	return "", "", nil // no other type satisfies the constraint
}

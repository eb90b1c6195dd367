package services

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// S3BatchTask handles each invocation for a task of an S3 Batch Operations job
// once, one at a time per task. Name is job and task, Event the invocation id.
// No Order. S3 needs an answer to a duplicate, too: use
// middleware.OnCompleted(middleware.Replay).
func S3BatchTask[E awsevents.S3BatchEvent](_ context.Context, e E) (lock.Key, error) {
	// AWS does not say that a task whose result was TemporaryFailure comes again
	// with a new invocation id. It need not: that result completes nothing.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-s3-batch.html
	job, invocation, tasks := s3Batch(e)
	if err := keyparts.Required("job.id", job, "invocationId", invocation); err != nil {
		return lock.Key{}, err
	}
	switch {
	case len(tasks) > 1:
		return lock.Key{}, &lock.NoKeyError{Field: "tasks", Reason: fmt.Sprintf("holds %d tasks, and one lock cannot stand for them all: S3 sends one", len(tasks))}
	case len(tasks) == 0:
		return lock.Key{}, &lock.NoKeyError{Field: "tasks", Reason: "is empty or missing: " + keyparts.AnotherSource}
	case tasks[0] == "":
		return lock.Key{}, keyparts.Missing("tasks[0].taskId")
	}
	return lock.Key{Name: keyparts.Name("s3batch", job, tasks[0]), Event: invocation}, nil
}

// s3Batch returns what identifies the tasks of e. Go cannot reach a field
// through a type parameter, even if all its types have it.
func s3Batch[E awsevents.S3BatchEvent](e E) (job, invocation string, tasks []string) {
	if v1, ok := any(e).(events.S3BatchJobEvent); ok {
		for _, t := range v1.Tasks {
			tasks = append(tasks, t.TaskID)
		}
		return v1.Job.ID, v1.InvocationID, tasks
	}
	v2 := any(e).(events.S3BatchJobEventV2) // the constraint leaves no other type
	for _, t := range v2.Tasks {
		tasks = append(tasks, t.TaskID)
	}
	return v2.Job.ID, v2.InvocationID, tasks
}

package keyfuncs

import (
	"context"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// StepFunctionsFrom does each task of a state machine once. The machine passes
// its context object into the input of the task, and find returns it. With
// JSONPath:
//
//	"Parameters": {"FunctionName": "…", "Payload": {"order.$": "$.order", "context.$": "$$"}}
//
// With JSONata:
//
//	"Arguments": {"FunctionName": "…", "Payload": {"order": "{% $states.input.order %}", "context": "{% $states.context %}"}}
//
// Name is execution, state and the index of the item; Event is the time at
// which the state was entered: a loop that comes back to a state does new work.
// A retry does not enter the state anew: only State.RetryCount differs. If the
// work was completed after all, the retry is skipped, and the machine goes on
// with an empty result: use middleware.OnCompleted(middleware.Replay) if it
// needs the first result. No Order: each turn of a loop is completed before the
// next begins.
//
// Inside a Map state, items run side by side and may enter a state in the same
// millisecond: without the index, one would be taken for a duplicate of the
// other. Only ItemSelector is sure to see it in the context object. Pass it on
// from there ("index.$": "$$.Map.Item.Index"), and let find put it into
// Map.Item.Index. For a Map inside a Map, let find add the outer index to
// State.Name.
//
// A redriven execution keeps its id. AWS does not say whether it keeps the
// time, or what is the same in an Express workflow that is run twice. If the
// time differs, the task is done again.
//
// StepFunctionsFrom panics if find is nil.
//
// Sources: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/express-at-least-once-execution.html.
func StepFunctionsFrom[E any](find func(E) awsevents.StepFunctionsContext) Func[E] {
	if find == nil {
		panic("lambdalock: keyfuncs.StepFunctionsFrom(nil): give it the function that finds the context object in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		c := find(e)
		if c.Execution.ID == "" {
			return lock.Key{}, &lock.KeyError{Field: "Execution.Id", Reason: `is missing: pass the context object into the input of the task, with "context.$": "$$"`}
		}
		if err := required(part{"State.Name", c.State.Name}, part{"State.EnteredTime", c.State.EnteredTime}); err != nil {
			return lock.Key{}, err
		}
		return lock.Key{
			Name:  named("stepfunctions", c.Execution.ID, c.State.Name, c.Map.Item.Index.String()),
			Event: c.State.EnteredTime,
		}, nil
	}
}

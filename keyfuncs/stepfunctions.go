package keyfuncs

import (
	"context"
	"encoding/json"

	"github.com/lambdalock/lambdalock/lock"
)

// StepFunctionsContext is the part of a state machine's context object that says
// which task this is.
//
// Source: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html.
type StepFunctionsContext struct {
	Execution struct {
		ID string `json:"Id"` // an ARN
	} `json:"Execution"`
	State struct {
		Name        string `json:"Name"`
		EnteredTime string `json:"EnteredTime"` // ISO 8601, to the millisecond
	} `json:"State"`
	Map struct {
		Item struct {
			Index json.Number `json:"Index"` // empty outside of a Map state
		} `json:"Item"`
	} `json:"Map"`
}

// StepFunctions does each task of a state machine once. The machine passes its
// context object into the input of the task, and of finds it there. With JSONPath:
//
//	"Parameters": {"FunctionName": "…", "Payload": {"order.$": "$.order", "context.$": "$$"}}
//
// With JSONata:
//
//	"Arguments": {"FunctionName": "…", "Payload": {"order": "{% $states.input.order %}", "context": "{% $states.context %}"}}
//
// Name is execution, state and the index of the item; Event is the time at which
// the state was entered: a loop that comes back to a state does new work. An attempt
// of Retry does not enter the state anew, it has another State.RetryCount. If the work
// was completed all the same, the attempt is skipped, and the machine goes on with an
// empty result: give middleware.OnDone(middleware.Replay) if it needs the first one. No
// Order: what a loop does in one turn was completed before the next.
//
// Inside a Map state, items run side by side and may enter a state in the same
// millisecond: without the index, one would be taken for a duplicate of the other. Only
// ItemSelector is sure to see it in the context object. Pass it on from there
// ("index.$": "$$.Map.Item.Index"), and let of put it into Map.Item.Index. For a Map
// inside a Map, let of add the outer index to State.Name.
//
// A redriven execution keeps its id. AWS does not say whether it keeps the time, or
// what is the same in an Express workflow that is run twice; where the time differs,
// the task is done again.
//
// StepFunctions panics if of is nil.
//
// Sources: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/express-at-least-once-execution.html.
func StepFunctions[E any](of func(E) StepFunctionsContext) Func[E] {
	if of == nil {
		panic("lambdalock: StepFunctions(nil): give it the function that finds the context object in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		c := of(e)
		switch "" {
		case c.Execution.ID:
			return lock.Key{}, &lock.KeyError{Field: "Execution.Id", Reason: `is missing: pass the context object into the input of the task, with "context.$": "$$"`}
		case c.State.Name:
			return lock.Key{}, missing("State.Name")
		case c.State.EnteredTime:
			return lock.Key{}, missing("State.EnteredTime")
		}
		return lock.Key{
			Name:  named("stepfunctions", c.Execution.ID, c.State.Name, c.Map.Item.Index.String()),
			Event: c.State.EnteredTime,
		}, nil
	}
}

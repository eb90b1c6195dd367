package services

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// StepFunctions does each task of a state machine once. The machine passes
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
// which the state was entered, because a loop that comes back to a state does
// new work, and a digest of the input. A retry does not enter the state anew:
// only State.RetryCount differs, which the digest leaves out. If the work was
// completed after all, the retry is skipped, and the machine goes on with an
// empty result: use middleware.OnCompleted(middleware.Replay) if it needs the
// first result. A task that waits for a callback gets another Task.Token with
// each retry; if that is in the input, the retry is new work. No Order: each
// turn of a loop is completed before the next begins.
//
// Inside a Map state, items run side by side and may enter a state in the same
// millisecond. Only ItemSelector is sure to see the index of an item in the
// context object. Pass it on from there ("index.$": "$$.Map.Item.Index"), and
// let find put it into Map.Item.Index. For a Map inside a Map, let find add the
// outer index to State.Name. Without an index, the digest takes its place and
// tells items apart whose input differs. Items that enter the state in the same
// millisecond with the same input count as one.
//
// The digest is one of the input as E, written as JSON. What changes with every
// attempt, other than the context object, must not be in E: otherwise a retry
// runs again. Such are a random number that the state machine makes, and the
// time. Halves of surrogate pairs, which Go decodes as U+FFFD, tell inputs
// apart only if E is json.RawMessage.
//
// A redriven execution keeps its id. AWS does not say whether it keeps the
// time, or what is the same in an Express workflow that is run twice. If the
// time differs, the task is done again.
//
// StepFunctions panics if find is nil.
//
// Sources: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html,
// https://docs.aws.amazon.com/step-functions/latest/dg/express-at-least-once-execution.html.
func StepFunctions[E any](find func(E) awsevents.StepFunctionsContext) keyfuncs.Func[E] {
	if find == nil {
		panic("lambdalock: services.StepFunctions(nil): give it the function that finds the context object in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		c := find(e)
		if c.Execution.ID == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "Execution.Id", Reason: `is missing: pass the context object into the input of the task, with "context.$": "$$"`}
		}
		if err := keyparts.Required("State.Name", c.State.Name, "State.EnteredTime", c.State.EnteredTime); err != nil {
			return lock.Key{}, err
		}
		input, err := digestOfInput(e)
		if err != nil {
			return lock.Key{}, &lock.NoKeyError{Field: "input", Reason: "cannot be written as JSON, of which the key contains a digest", Err: err}
		}
		item := cmp.Or(c.Map.Item.Index.String(), input)
		return lock.Key{Name: keyparts.Name("stepfunctions", c.Execution.ID, c.State.Name, item), Event: c.State.EnteredTime + "/" + input}, nil
	}
}

// digestOfInput returns a digest that is the same for every attempt.
func digestOfInput(input any) (string, error) {
	text, raw := input.([]byte)
	if !raw {
		var err error
		if text, err = json.Marshal(input); err != nil {
			return "", err
		}
	}
	tree, err := canonical.Parse(text)
	if err != nil {
		return "", err
	}
	return keyparts.Digest(string(canonical.Text(withoutAttempts(tree)))), nil
}

// withoutAttempts drops what counts attempts from every context object in a
// JSON tree.
func withoutAttempts(tree any) any {
	switch v := tree.(type) {
	case []any:
		for i := range v {
			v[i] = withoutAttempts(v[i])
		}
	case canonical.Object:
		for i, m := range v {
			v[i].Value = withoutAttempts(m.Value)
			counters, ok := m.Value.(canonical.Object)
			if ok && (m.Name == "State" || m.Name == "Execution") && has(v, "State") && has(v, "Execution") {
				v[i].Value = slices.DeleteFunc(counters, func(c canonical.Member) bool {
					return c.Name == "RetryCount" || c.Name == "RedriveCount" || c.Name == "RedriveTime"
				})
			}
		}
	}
	return tree
}

func has(o canonical.Object, name string) bool {
	return slices.ContainsFunc(o, func(m canonical.Member) bool { return m.Name == name })
}

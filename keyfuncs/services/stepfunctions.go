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

// StepFunctions does each task of a state machine once. The machine passes its
// context object into the input of the task, with JSONPath or JSONata, and find
// returns it:
//
//	"Parameters": {"FunctionName": "…", "Payload": {"order.$": "$.order", "context.$": "$$"}}
//	"Arguments": {"FunctionName": "…", "Payload": {"order": "{% $states.input.order %}", "context": "{% $states.context %}"}}
//
// Name is execution, state and the index of the item of a Map state; Event is
// the time at which the state was entered, and a digest of the input as E. No
// Order. A retry is a duplicate: if the next state needs the result, use
// middleware.OnCompleted(middleware.Replay). docs/SOURCES.md#step-functions
// says what E must leave out, and how to pass the index. StepFunctions panics
// if find is nil.
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

package keyfuncs_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

type taskInput struct {
	Order   int                            `json:"order"`
	Context awsevents.StepFunctionsContext `json:"context"`
}

var byTask = keyfuncs.StepFunctionsFrom(func(e taskInput) awsevents.StepFunctionsContext { return e.Context })

func TestStepFunctionsFrom(t *testing.T) {
	t.Parallel()
	gives(t, "stepfunctions.json", byTask, lock.Key{
		Name:  "stepfunctions/arn:aws:states:eu-central-1:123456789012:execution:orders:1017/Charge%20customer/1",
		Event: "2026-11-21T08:15:30.123Z",
	})
	apart(t, "stepfunctions.json", byTask, map[string]func(*taskInput){
		"another execution": func(e *taskInput) { e.Context.Execution.ID += "8" },
		"another state":     func(e *taskInput) { e.Context.State.Name = "Send parcel" },
		"entered again":     func(e *taskInput) { e.Context.State.EnteredTime = "2026-11-21T08:15:30.124Z" },
		"another item":      func(e *taskInput) { e.Context.Map.Item.Index = "0" },
		"no item":           func(e *taskInput) { e.Context.Map.Item.Index = "" },
		"slash in a state":  func(e *taskInput) { e.Context.State.Name += "/1"; e.Context.Map.Item.Index = "" },
	})
	refuses(t, "stepfunctions.json", byTask, map[string]func(*taskInput){
		"State.Name":        func(e *taskInput) { e.Context.State.Name = "" },
		"State.EnteredTime": func(e *taskInput) { e.Context.State.EnteredTime = "" },
	})
	_, err := changed(t, "stepfunctions.json", byTask, func(e *taskInput) { e.Context.Execution.ID = "" })
	refused(t, "no execution", err, "Execution.Id", `"context.$": "$$"`)
}

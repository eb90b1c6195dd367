package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

type taskInput struct {
	Order   int                           `json:"order"`
	Context keyfuncs.StepFunctionsContext `json:"context"`
}

var byTask = keyfuncs.StepFunctions(func(e taskInput) keyfuncs.StepFunctionsContext { return e.Context })

func TestStepFunctions(t *testing.T) {
	t.Parallel()
	want := lock.Key{
		Name:  "stepfunctions/arn:aws:states:eu-central-1:123456789012:execution:orders:1017/Charge%20customer/1",
		Event: "2026-11-21T08:15:30.123Z",
	}
	if got, err := byTask(t.Context(), load[taskInput](t, "stepfunctions.json")); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestStepFunctionsTellsApart(t *testing.T) {
	t.Parallel()
	seen := map[lock.Key]string{}
	for name, change := range map[string]func(*keyfuncs.StepFunctionsContext){
		"as it is":          func(*keyfuncs.StepFunctionsContext) {},
		"another execution": func(c *keyfuncs.StepFunctionsContext) { c.Execution.ID += "8" },
		"another state":     func(c *keyfuncs.StepFunctionsContext) { c.State.Name = "Send parcel" },
		"entered again":     func(c *keyfuncs.StepFunctionsContext) { c.State.EnteredTime = "2026-11-21T08:15:30.124Z" },
		"another item":      func(c *keyfuncs.StepFunctionsContext) { c.Map.Item.Index = "0" },
		"no item":           func(c *keyfuncs.StepFunctionsContext) { c.Map.Item.Index = "" },
		"slash in a state":  func(c *keyfuncs.StepFunctionsContext) { c.State.Name += "/1"; c.Map.Item.Index = "" },
	} {
		e := load[taskInput](t, "stepfunctions.json")
		change(&e.Context)
		k, err := byTask(t.Context(), e)
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%s and %s both give %+v, %v", name, other, k, err)
		}
		seen[k] = name
	}
}

func TestStepFunctionsErrors(t *testing.T) {
	t.Parallel()
	with := func(change func(*keyfuncs.StepFunctionsContext)) error {
		e := load[taskInput](t, "stepfunctions.json")
		change(&e.Context)
		_, err := byTask(t.Context(), e)
		return err
	}
	refused(t, "no execution", with(func(c *keyfuncs.StepFunctionsContext) { c.Execution.ID = "" }), "Execution.Id", `"context.$": "$$"`)
	refused(t, "no state", with(func(c *keyfuncs.StepFunctionsContext) { c.State.Name = "" }), "State.Name", "missing")
	refused(t, "no time", with(func(c *keyfuncs.StepFunctionsContext) { c.State.EnteredTime = "" }), "State.EnteredTime", "missing")
}

func TestNilFunctionsPanicAtOnce(t *testing.T) {
	t.Parallel()
	for name, construct := range map[string]func(){
		"StepFunctions": func() { keyfuncs.StepFunctions[taskInput](nil) },
		"IoTRule":       func() { keyfuncs.IoTRule[keyfuncs.IoTMessage](nil) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "lambdalock: "+name+"(nil): ") || strings.Contains(s, "\n") {
					t.Errorf("%s(nil) panics with %q", name, s)
				}
			}()
			construct()
		}()
	}
}

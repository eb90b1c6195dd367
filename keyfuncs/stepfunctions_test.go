package keyfuncs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

type taskInput struct {
	Order   int                            `json:"order"`
	Context awsevents.StepFunctionsContext `json:"context"`
}

var byTask = services.StepFunctions(func(e taskInput) awsevents.StepFunctionsContext { return e.Context })

func TestStepFunctions(t *testing.T) {
	t.Parallel()
	gives(t, "stepfunctions.json", byTask, lock.Key{
		Name:  "stepfunctions/arn:aws:states:eu-central-1:123456789012:execution:orders:1017/Charge%20customer/1",
		Event: "2026-11-21T08:15:30.123Z/soelrNu24rWzh1rsMAhFak2GXY9q9pkVYJ3dn9a9kno",
	})
	apart(t, "stepfunctions.json", byTask, map[string]func(*taskInput){
		"another execution": func(e *taskInput) { e.Context.Execution.ID += "8" },
		"another state":     func(e *taskInput) { e.Context.State.Name = "Send parcel" },
		"entered again":     func(e *taskInput) { e.Context.State.EnteredTime = "2026-11-21T08:15:30.124Z" },
		"another item":      func(e *taskInput) { e.Context.Map.Item.Index = "0" },
		"another input":     func(e *taskInput) { e.Order++ },
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

// TestMapItemsWithoutIndex: items that enter a state in the same millisecond
// are different events without their index too, and an attempt that is repeated
// is none.
func TestMapItemsWithoutIndex(t *testing.T) { // F60
	t.Parallel()
	find := func(text []byte) (c awsevents.StepFunctionsContext) {
		var e taskInput
		_ = json.Unmarshal(text, &e)
		return e.Context
	}
	keys := map[string]keyfuncs.Func[string]{
		"a type of its own": decoding(byTask),
		"any JSON": decoding(services.StepFunctions(func(e map[string]any) awsevents.StepFunctionsContext {
			return find([]byte(marshal(t, e)))
		})),
		"raw JSON": decoding(services.StepFunctions(func(e json.RawMessage) awsevents.StepFunctionsContext { return find(e) })),
		"bytes": func(ctx context.Context, text string) (lock.Key, error) {
			return services.StepFunctions(find)(ctx, []byte(text))
		},
	}
	sample := strings.NewReplacer(`"Map"`, `"Mapped"`).Replace(text(t, "stepfunctions.json"))
	item := func(order string) string { return strings.Replace(sample, `"order": 1017`, `"order": `+order, 1) }
	repeated := map[string]string{
		"again":        sample,
		"retried":      strings.Replace(sample, `"RetryCount": 0`, `"RetryCount": 1`, 1),
		"redriven":     strings.Replace(sample, `"RedriveCount": 0`, `"RedriveCount": 1, "RedriveTime": "2026-11-21T09:00:00.000Z"`, 1),
		"other spaces": strings.ReplaceAll(sample, `": `, `":`),
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			distinct(t, map[string]func() (lock.Key, error){
				"first item":  func() (lock.Key, error) { return key(t.Context(), item("1016")) },
				"second item": func() (lock.Key, error) { return key(t.Context(), item("1017")) },
				"third item":  func() (lock.Key, error) { return key(t.Context(), item("1018")) },
			})
			want := keyOf(t, key, sample)
			for how, again := range repeated {
				if k := keyOf(t, key, again); k != want {
					t.Errorf("%s: %+v, want %+v", how, k, want)
				}
			}
		})
	}
	own := func(count string) lock.Key { // a State that is not that of a context object
		return keyOf(t, keys["raw JSON"], item(`{"State": {"RetryCount": `+count+`}}`))
	}
	if own("1") == own("2") {
		t.Error("two inputs have one key")
	}
	_, err := services.StepFunctions(func(e func()) awsevents.StepFunctionsContext {
		return load[taskInput](t, "stepfunctions.json").Context
	})(t.Context(), nil)
	refused(t, "no JSON", err, "input", "digest")
}

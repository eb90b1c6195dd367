package jmespath_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

type typedOrder struct {
	ID       int64  `json:"id"`
	Customer string `json:"customer,omitempty"`
	Ratio    float64
	Any      any `json:"any,omitempty"`
}

// A handler that takes a type of its own needs no key function of its own.
func ExampleTyped() {
	key := jmespath.Typed[typedOrder](jmespath.Path("[customer, id]"))
	show(key(context.Background(), typedOrder{ID: 9007199254740993, Customer: "jane"}))
	// Output: name "[\"jane\",9007199254740993]", event "", order "", error <nil>
}

func TestTyped(t *testing.T) {
	t.Parallel()
	order := typedOrder{ID: 17, Customer: "<jane>"}
	name := func(t *testing.T, k lock.Key, err error, want string) {
		t.Helper()
		if err != nil || k.Name != want {
			t.Errorf("%q, %v; want %q", k.Name, err, want)
		}
	}
	t.Run("value", func(t *testing.T) {
		k, err := jmespath.Typed[typedOrder](jmespath.Path("customer"))(t.Context(), order)
		name(t, k, err, `"<jane>"`)
	})
	t.Run("pointer", func(t *testing.T) {
		k, err := jmespath.Typed[*typedOrder](jmespath.Path("id"))(t.Context(), &order)
		name(t, k, err, "17")
	})
	t.Run("the whole event, like its payload", func(t *testing.T) {
		typed := expect.Value(jmespath.Typed[typedOrder](jmespath.Payload)(t.Context(), order))(t)
		raw, err := jmespath.Payload(t.Context(), json.RawMessage(`{"Ratio":0.0,"customer":"<jane>","id":17}`))
		name(t, raw, err, typed.Name)
	})
	t.Run("text that looks like an escape", func(t *testing.T) {
		k, err := jmespath.Typed[typedOrder](jmespath.Path("id"))(t.Context(), typedOrder{ID: 17, Customer: `{"note":"\ufffd"}`})
		name(t, k, err, "17")
	})
	t.Run("inside an envelope", func(t *testing.T) {
		k, err := keyfuncs.SQSBody(jmespath.Typed[typedOrder](jmespath.Path("id")))(t.Context(), events.SQSMessage{MessageId: "m", Body: `{"id":17}`})
		if name(t, k, err, "17"); k.Event != "m" {
			t.Errorf("event %q", k.Event)
		}
	})
}

func TestTypedErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path  string
		event any
		want  string
	}{
		"zero":             {"[customer, id]", typedOrder{}, "no key: [customer, id] is missing: it has no field of a jmespath_test.typedOrder: let the sender fill in what is missing, or correct the path or a json tag; if the event comes from another source, `lambdalock explain` names"},
		"nil pointer":      {"customer", (*typedOrder)(nil), "no key: customer is missing: it has no field of a *jmespath_test.typedOrder: "},
		"omitted":          {"customer", typedOrder{ID: 17}, "customer is missing or empty"},
		"without a form":   {"id", typedOrder{ID: 17, Any: func() {}}, "the event has no JSON form: as jmespath_test.typedOrder: "},
		"not declared":     {"total", typedOrder{ID: 17}, "total is missing or empty"},
		"by the Go's name": {"Customer", typedOrder{Customer: "jane"}, "Customer is missing or empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			switch e := c.event.(type) {
			case typedOrder:
				_, err = jmespath.Typed[typedOrder](jmespath.Path(c.path))(t.Context(), e)
			case *typedOrder:
				_, err = jmespath.Typed[*typedOrder](jmespath.Path(c.path))(t.Context(), e)
			}
			var e *lock.NoKeyError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want a NoKeyError with %q", err, c.want)
			}
		})
	}
	t.Run("in a body", func(t *testing.T) {
		for want, key := range map[string]keyfuncs.Func[json.RawMessage]{
			"no key: body.customer is missing: it has no field of a jmespath_test.typedOrder: ":                                    jmespath.Path("customer"),
			"no key: body lacks a field that its key is taken from: it has no field of a jmespath_test.typedOrder: let the sender": jmespath.Payload,
		} {
			_, err := keyfuncs.SQSBody(jmespath.Typed[typedOrder](key))(t.Context(), events.SQSMessage{Body: `{"other":1}`})
			var e *lock.NoKeyError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v; want %q in it", err, want)
			}
			if strings.Contains(e.Reason, "typedOrder") { // which HTTPBody shows to the client
				t.Errorf("a client reads %q", e.Reason)
			}
		}
	})
	t.Run("an event that encoding/json has changed", func(t *testing.T) { // F28
		key := jmespath.Typed[typedOrder](keyfuncs.EventFrom(jmespath.Path("id"), jmespath.Path("customer")))
		if k, err := key(t.Context(), typedOrder{ID: 17, Customer: "a\xff"}); !errors.As(err, new(*lock.NoKeyError)) {
			t.Errorf("%+v, %v", k, err)
		}
	})
	t.Run("nil any", func(t *testing.T) {
		if _, err := jmespath.Typed[any](jmespath.Payload)(t.Context(), nil); !errors.As(err, new(*lock.NoKeyError)) {
			t.Errorf("%v", err)
		}
	})
	t.Run("nil key function", func(t *testing.T) {
		defer func() {
			if p := recover(); p == nil || !strings.Contains(p.(string), "jmespath.Typed(nil)") {
				t.Errorf("panicked with %v", p)
			}
		}()
		jmespath.Typed[typedOrder](nil)
	})
}

package middleware_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestTypedEventBridgeEvents shows that a handler of one event of EventBridge
// that has a Go type of its own is told how to take the key from that type.
func TestTypedEventBridgeEvents(t *testing.T) {
	t.Parallel()
	type own struct {
		events.AutoScalingEvent
		More string
	}
	type unidentified struct {
		Kind string `json:"detail-type"`
	}
	advice := "keyfuncs.Once(keyfuncs.ByField(func(e %s) string { return e.ID }))"
	for event, want := range map[any]string{
		reflect.TypeFor[events.AutoScalingEvent]():            advice,
		reflect.TypeFor[*events.AutoScalingEvent]():           advice,
		reflect.TypeFor[events.CodeBuildEvent]():              advice,
		reflect.TypeFor[events.CodeDeployEvent]():             advice,
		reflect.TypeFor[events.CodePipelineCloudWatchEvent](): advice,
		reflect.TypeFor[events.ECRScanEvent]():                advice,
		reflect.TypeFor[events.ECRImageActionEvent]():         advice,
		reflect.TypeFor[events.ECSContainerInstanceEvent]():   advice,
		reflect.TypeFor[own]():                                advice,
		reflect.TypeFor[unidentified]():                       "keyfuncs.ByField",
		reflect.TypeFor[order]():                              "keyfuncs.ByField",
	} {
		in := event.(reflect.Type)
		if want == advice {
			want = fmt.Sprintf(advice, strings.TrimPrefix(in.String(), "*"))
		}
		t.Run(in.String(), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panic %q, want %q", text, want)
				}
			}()
			handler := reflect.MakeFunc(reflect.FuncOf([]reflect.Type{in}, []reflect.Type{reflect.TypeFor[error]()}, false), nil).Interface()
			middleware.WithLock(keyfuncs.EventBridgeEvent, handler, noLog)
		})
	}
	// As the advice says.
	var ran int
	h := middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(e events.AutoScalingEvent) string { return e.ID })), func(context.Context, events.AutoScalingEvent) error {
		ran++
		return nil
	}, newFixture().options()...)
	for range 2 {
		expect.OK(t, h(t.Context(), events.AutoScalingEvent{ID: "12345678-1234"}))
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
}

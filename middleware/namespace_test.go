package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestNamespaceOfTheEnvironment shows that the namespace comes from the option
// or from LOCK_NAMESPACE, which the construct sets, or is the name of the
// function, and that every observation has it.
func TestNamespaceOfTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		opts     []middleware.Option
		want     string
	}{
		"variable":              {"thumbnails", nil, "thumbnails"},
		"variable and option":   {"thumbnails", []middleware.Option{middleware.Namespace("thumbnails")}, "thumbnails"},
		"option":                {"", []middleware.Option{middleware.Namespace("pictures")}, "pictures"},
		"function and variable": {"thumbnails", nil, "thumbnails"},
		"function":              {"", nil, "fn"},
		"neither":               {"", nil, ""}, // there is no function's name outside Lambda
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LOCK_NAMESPACE", c.variable)
			if strings.HasPrefix(name, "function") {
				lambdacontext.FunctionName = "fn"
				t.Cleanup(func() { lambdacontext.FunctionName = "" })
			}
			f := newFixture()
			locker := expect.Value(lock.New(f.faulty, &lock.Options{Namespace: c.want}))(t)
			key := keyfuncs.ByField(func(o order) string { return o.ID })
			h := middleware.WithLock(keyfuncs.Optional(key), func(ctx context.Context, o order) error {
				if _, err := locker.Acquire(t.Context(), lock.Key{Name: "1"}); o.ID == "1" && !errors.Is(err, lock.ErrHeld) {
					t.Errorf("the name is not held in namespace %q: %v", c.want, err)
				}
				return nil
			}, f.options(c.opts...)...)
			expect.OK(t, h(t.Context(), order{ID: "1"}))
			expect.OK(t, h(t.Context(), order{}))
			for _, o := range f.observed {
				if o.Namespace != c.want {
					t.Errorf("%s was observed in namespace %q", o.Outcome, o.Namespace)
				}
			}
		})
	}
}

// TestOtherNamespaceIsRefused shows that every wrapper refuses a namespace that
// the construct does not allow.
func TestOtherNamespaceIsRefused(t *testing.T) {
	t.Setenv("LOCK_NAMESPACE", "thumbnails")
	for _, ns := range []string{"pictures", ""} {
		opts := newFixture().options(middleware.Namespace(ns))
		within := []string{`Namespace("` + ns + `")`, `LOCK_NAMESPACE`, `"thumbnails"`}
		t.Run("WithLock "+ns, func(t *testing.T) {
			wantPanic(t, func() {
				middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, opts...)
			}, within...)
		})
		t.Run("EachSQSMessage "+ns, func(t *testing.T) {
			wantPanic(t, func() {
				middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, opts...)
			}, within...)
		})
	}
}

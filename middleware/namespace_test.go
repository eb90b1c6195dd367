package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestNamespaceOfTheEnvironment: the construct allows one namespace and names it in the
// environment, so that code and permission agree.
func TestNamespaceOfTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		opts     []middleware.Option
		want     string
	}{
		"variable":            {"thumbnails", nil, "thumbnails"},
		"variable and option": {"thumbnails", []middleware.Option{middleware.Namespace("thumbnails")}, "thumbnails"},
		"option":              {"", []middleware.Option{middleware.Namespace("pictures")}, "pictures"},
		"neither":             {"", nil, ""}, // there is no function's name outside Lambda
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LOCK_NAMESPACE", c.variable)
			q := newQuiet()
			locker, err := lock.New(q.store, &lock.Options{Namespace: c.want})
			if err != nil {
				t.Fatal(err)
			}
			h := middleware.WithLock(byOrder, func(ctx context.Context, _ order) error {
				if _, err := locker.Acquire(t.Context(), lock.Key{Name: "orders"}); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("the name is not held in namespace %q: %v", c.want, err)
				}
				return nil
			}, q.with(c.opts...)...)
			if err := h(t.Context(), order{ID: "1"}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOtherNamespaceIsRefused(t *testing.T) {
	t.Setenv("LOCK_NAMESPACE", "thumbnails")
	for _, ns := range []string{"pictures", ""} {
		opts := newQuiet().with(middleware.Namespace(ns))
		refusedAtConstruction(t, "WithLock", func() {
			middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, opts...)
		}, `Namespace("`+ns+`")`, `LOCK_NAMESPACE`, `"thumbnails"`)
		refusedAtConstruction(t, "EachSQSMessage", func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, opts...)
		}, `Namespace("`+ns+`")`, `LOCK_NAMESPACE`, `"thumbnails"`)
	}
}

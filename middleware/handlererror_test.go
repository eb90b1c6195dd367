package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// invalidFields is an error that Go cannot compare, such as the
// ValidationErrors of github.com/go-playground/validator.
type invalidFields []string

func (invalidFields) Error() string { return "invalid" }

// failingWays are wrappers of each kind around a handler that fails. They
// return what AWS Lambda gets or, of a batch, what OnFailed does.
var failingWays = map[string]func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error{
	"no result": func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error {
		h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return key() }, func(context.Context, order) error { return failure }, opts...)
		return h(context.Background(), order{})
	},
	"a result": func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error {
		h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return key() }, func(context.Context, order) (int, error) { return 1, failure }, opts...)
		_, err := h(context.Background(), order{})
		return err
	},
	"bytes": func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error {
		h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return key() }, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return nil, failure })), opts...)
		_, err := h.Invoke(context.Background(), []byte("{}"))
		return err
	},
	"latest": func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error {
		h := middleware.Latest(func(context.Context, order) (lock.Key, error) { return key() }, func(context.Context, order) error { return failure }, opts...)
		return h(context.Background(), order{})
	},
	"only the latest records": func(key func() (lock.Key, error), failure error, opts ...middleware.Option) error {
		return failingRecords(key, failure, append(opts, middleware.OnlyLatest())...)
	},
	"records": failingRecords,
}

func failingRecords(key func() (lock.Key, error), failure error, opts ...middleware.Option) (err error) {
	onFailed := middleware.OnFailed(func(_ context.Context, f []*middleware.Failed[events.SQSMessage]) { err = f[0].Err })
	h := middleware.EachSQSMessage(func(context.Context, events.SQSMessage) (lock.Key, error) { return key() }, func(context.Context, events.SQSMessage) error { return failure }, append(opts, onFailed)...)
	_, _ = h(context.Background(), events.SQSEvent{Records: make([]events.SQSMessage, 1)})
	return err
}

// TestUncomparableError shows that an error of any type reaches AWS Lambda.
func TestUncomparableError(t *testing.T) {
	t.Parallel()
	for name, way := range failingWays {
		key := func() (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
		if got, ok := way(key, invalidFields{"a"}, newFixture().options()...).(invalidFields); !ok || len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPermanentWithoutALock shows that a handler that needed no lock may fail
// for good.
func TestPermanentWithoutALock(t *testing.T) {
	t.Parallel()
	for name, way := range failingWays {
		key := func() (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
		if err := way(key, middleware.Permanent(errRecord), newFixture().options()...); !errors.As(err, new(*middleware.PermanentError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

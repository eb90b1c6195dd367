package middleware_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestRememberFor lets the handler's result say for how many minutes it is
// remembered. A result of zero is not kept, but its event is completed.
func TestRememberFor(t *testing.T) {
	t.Parallel()
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for form, wrap := range map[string]func(*testing.T, *fixture, *int) func(result int) int{
		"value": func(t *testing.T, f *fixture, runs *int) func(int) int {
			h := middleware.WithLock(byOrder, func(_ context.Context, o order) (int64, error) { *runs++; return o.Item, nil },
				f.options(middleware.OnCompleted(middleware.Replay), middleware.RememberFor(func(n int64) time.Duration { return minutes(int(n)) }))...)
			return func(n int) int {
				got, err := h(t.Context(), order{ID: "1", Item: int64(n)})
				if err != nil {
					t.Error(err)
				}
				return int(got)
			}
		},
		"bytes": func(t *testing.T, f *fixture, runs *int) func(int) int {
			h := middleware.WithLock(byOrder, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { *runs++; return []byte{'0' + byte(*runs)}, nil })),
				f.options(middleware.OnCompleted(middleware.Replay), middleware.RememberFor(func(b []byte) time.Duration { return minutes(int(b[0] - '0')) }))...)
			return func(n int) int {
				*runs = n - 1 // so that the result is n
				got, err := h.Invoke(t.Context(), toJSON(t, order{ID: "1"}))
				if err != nil {
					t.Error(err)
				}
				return int(got[0] - '0')
			}
		},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				runs := 0
				call := wrap(t, f, &runs)
				if got := call(5); got != 5 {
					t.Errorf("the first result is %d", got)
				}
				time.Sleep(5 * time.Minute)
				if got := call(7); got != 5 {
					t.Errorf("after 5 minutes the result is %d, want the first one", got)
				}
				time.Sleep(time.Millisecond)
				if got := call(7); got != 7 {
					t.Errorf("later the result is %d, want that of another run", got)
				}
			})
		})
	}
}

// TestSecretIsNotKept shows that a result which RememberFor refuses is neither
// stored nor replayed, and that its event does not run again.
func TestSecretIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		runs := 0
		h := middleware.WithLock(byOrder, func(context.Context, order) (restResponse, error) {
			runs++
			return restResponse{StatusCode: 200, Body: "secret"}, nil
		}, f.options(middleware.RememberFor(func(r events.APIGatewayProxyResponse) time.Duration { return -time.Second }))...)
		for i := range 2 {
			time.Sleep(time.Duration(i) * 23 * time.Hour)
			r, err := h(t.Context(), order{ID: "1"})
			if want := []int{200, 409}[i]; err != nil || r.StatusCode != want {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		}
		for row, err := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
			if err != nil || runs != 1 || len(row.Memory.Completed) != 1 || row.Memory.Result.Event != "" {
				t.Errorf("%d runs, %+v, %v", runs, row, err)
			}
		}
	})
}

// TestRememberForKeepsNothingElse shows that a result which nobody is to get
// again is not stored because RememberFor gives it a time.
func TestRememberForKeepsNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(byOrder, func(context.Context, order) (restResponse, error) {
		return restResponse{StatusCode: 200, Body: "secret"}, nil
	}, f.options(middleware.OnCompleted(middleware.Fail), middleware.RememberFor(func(restResponse) time.Duration { return time.Hour }))...)
	expect.Value(h(t.Context(), order{ID: "1"}))(t)
	for row, err := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
		if err != nil || len(row.Memory.Completed) != 1 || row.Memory.Result.Event != "" {
			t.Errorf("%+v, %v", row, err)
		}
	}
}

// TestNotToBeKept shows that nothing is said of a result that cannot be stored
// if RememberFor does not want it stored.
func TestNotToBeKept(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return make(chan int), nil },
		f.options(middleware.OnCompleted(middleware.Replay), middleware.RememberFor(func(any) time.Duration { return 0 }))...)
	expect.Value(h(t.Context(), order{ID: "1"}))(t)
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
}

// TestSecretStreamIsNotKept shows that a streamed response, which the type of
// the result hides from RememberFor, is not stored either.
func TestSecretStreamIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(func(context.Context, events.LambdaFunctionURLRequest) (lock.Key, error) {
			return lock.Key{Name: "token", Event: "1"}, nil
		}, func(context.Context, events.LambdaFunctionURLRequest) (any, error) {
			return &events.LambdaFunctionURLStreamingResponse{Body: strings.NewReader("secret")}, nil
		}, f.options(middleware.RememberFor(func(any) time.Duration { return 0 }))...)
		r := expect.Value(h(t.Context(), events.LambdaFunctionURLRequest{}))(t)
		if _, err := io.Copy(io.Discard, r.(*events.LambdaFunctionURLStreamingResponse).Body); err != nil {
			t.Error(err)
		}
		for row, err := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
			if err != nil || len(row.Memory.Completed) != 1 || row.Memory.Result.Event != "" {
				t.Errorf("%+v, %v", row, err)
			}
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeResultDropped, lock.OutcomeReleased)
	})
}

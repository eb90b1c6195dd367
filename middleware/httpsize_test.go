package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestTooLargeForItsGateway shows that a response that the gateway refuses does
// not complete the request, whatever its status: the client gets an error, and
// after an error its retry runs.
func TestTooLargeForItsGateway(t *testing.T) {
	t.Parallel()
	const status = `{"statusCode":200,"body":"%s"}`
	for file, longest := range map[string]int{
		"apigateway-rest": 6291556, "apigateway-http": 6291556, "functionurl": 6291556, "alb": 1 << 20,
	} {
		doc := expect.Value(os.ReadFile("../keyfuncs/testdata/" + file + ".json"))(t)
		for size, completed := range map[int]bool{longest: true, longest + 1: false} {
			t.Run(fmt.Sprint(file, size), func(t *testing.T) {
				t.Parallel()
				body := bytes.Repeat([]byte("a"), size-len(status)+len("%s"))
				runs := 0
				handler := lambda.Handler(rawFunc(func([]byte) ([]byte, error) { runs++; return fmt.Appendf(nil, status, body), nil }))
				all := func(context.Context, any) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
				for _, opts := range [][]middleware.Option{nil, {middleware.CompletedIf(func([]byte) bool { return true })}} {
					runs = 0
					h := middleware.WithLock(all, handler, newFixture().options(opts...)...)
					for range 2 {
						if out, err := h.Invoke(t.Context(), doc); err != nil || runs > 1 && len(out) != size {
							t.Errorf("%d bytes, %v", len(out), err)
						}
					}
					if (runs == 1) != completed {
						t.Errorf("%d runs; want completed: %t", runs, completed)
					}
				}
			})
		}
	}
}

// TestTooLargeElsewhere shows that the same holds for a result that is stored
// without a gateway.
func TestTooLargeElsewhere(t *testing.T) {
	t.Parallel()
	runs := 0
	h := middleware.WithLock(byOrder, func(context.Context, order) (string, error) {
		runs++
		return string(bytes.Repeat([]byte("a"), 6291556)), nil // and two quotes
	}, newFixture().options(middleware.OnCompleted(middleware.Replay))...)
	for range 2 {
		if _, err := h(t.Context(), order{ID: "1"}); err != nil {
			t.Error(err)
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

package middleware_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestBatchTellsHowManyClaims shows that a store knows how many claims and
// releases may come at the same time: not more than records that wait for none.
func TestBatchTellsHowManyClaims(t *testing.T) {
	t.Parallel()
	single := []events.SQSMessage{message("a", ""), message("b", ""), message("c", "")}
	for name, c := range map[string]struct {
		messages          []events.SQSMessage
		concurrency, want int
	}{
		"one record":      {single[:1], 16, 1},
		"three records":   {single, 16, 3},
		"two at a time":   {single, 2, 2},
		"one group":       {[]events.SQSMessage{inGroup("g", message("a", "")), inGroup("g", message("b", "")), inGroup("g", message("c", ""))}, 16, 1},
		"two groups":      {[]events.SQSMessage{inGroup("g", message("a", "")), inGroup("h", message("b", "")), inGroup("g", message("c", ""))}, 16, 2},
		"two of one name": {[]events.SQSMessage{message("a", ""), message("a", ""), message("b", "")}, 16, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := make(chan int, 2*len(c.messages))
			store := fault.Hooks{Store: memstore.New(), Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
				claims <- invocation.BatchOf(ctx).Claims
				return r.Send(ctx)
			}}
			runs := &runLog{}
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, middleware.Store(store), noLog, middleware.Concurrency(c.concurrency))
			r, err := h(t.Context(), sqsBatch(c.messages...))
			wantReturned(t, r, err)
			close(claims)
			for got := range claims {
				if got != c.want {
					t.Errorf("a request may have the company of %d, want %d", got, c.want)
				}
			}
		})
	}
}

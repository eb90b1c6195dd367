package middleware_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestDuplicatesInACoalescedBatch sends a batch of two messages of one name,
// each five times: the copies wait for the first of them, and are skipped.
func TestDuplicatesInACoalescedBatch(t *testing.T) { // F32
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		runs := 0
		h := middleware.EachSQSMessage(func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "item", Event: m.Body}, nil
		}, func(context.Context, events.SQSMessage) error {
			runs++
			time.Sleep(time.Second)
			return nil
		}, f.options(middleware.OnHeld(middleware.Coalesce))...)
		var e events.SQSEvent
		for i := range 10 {
			e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: fmt.Sprint(i % 2), EventSource: "aws:sqs"})
		}
		answer, err := h(t.Context(), e)
		if err != nil || len(answer.BatchItemFailures) > 0 {
			t.Errorf("%d runs, %+v, %v, observed %v", runs, answer, err, f.outcomes())
		}
	})
}

// TestCoalesceRefusesSeveralLocks shows that the mistake is found before an
// event comes.
func TestCoalesceRefusesSeveralLocks(t *testing.T) {
	t.Parallel()
	wantPanic(t, func() {
		middleware.WithLocks(keyfuncs.All(keyfuncs.Func[order](ofItem)), func(context.Context, order) error { return nil }, newFixture().options(middleware.OnHeld(middleware.Coalesce))...)
	}, "OnHeld(Coalesce)", "one lock")
}

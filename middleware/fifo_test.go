package middleware_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestFIFOWithoutSequenceNumbers shows that the messages of a group keep their
// order if an emulator does not number them: the queue's name says what it is.
func TestFIFOWithoutSequenceNumbers(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		runs := &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, newFixture().options()...)
		batch := sqsBatch(inGroup("a", message("1", "")), inGroup("a", message("2", "fails")), inGroup("a", message("3", "")), inGroup("b", message("4", "")))
		for i := range batch.Records {
			delete(batch.Records[i].Attributes, "SequenceNumber")
		}
		answer, err := h(ctx, batch)
		wantReturned(t, answer, err, "2", "3")
		if slices.Sort(runs.began); !slices.Equal(runs.began, []string{"1", "2", "4"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}

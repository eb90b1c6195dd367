package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// failsForGood is a handler of messages whose body says so.
func (l *runLog) failsForGood(ctx context.Context, m events.SQSMessage) error {
	err := l.sqs(ctx, m)
	if m.Body == "permanent" {
		return middleware.Permanent(errRecord)
	}
	return err
}

// TestOnFailedInTurn shows when the function gets a message that failed with
// Permanent, and what becomes of its group.
func TestOnFailedInTurn(t *testing.T) {
	group := func(id, does string) events.SQSMessage { return inGroup(id[:1], message(id, does)) }
	acknowledges := func(f failed) { f[0].Err = nil }
	for name, c := range map[string]struct {
		batch    []events.SQSMessage
		on       func(failed)
		told     string // a bar after each call
		ran      string
		returned []string
	}{
		"moved": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", "permanent"), group("x3", "")},
			on:    acknowledges, told: "x1|x2|", ran: "x1 x2 x3",
		},
		"not moved": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", ""), group("x3", "")},
			on:    func(failed) {}, told: "x1|x1 x2 x3|", ran: "x1", returned: []string{"x1", "x2", "x3"},
		},
		"the last of its group": {
			batch: []events.SQSMessage{group("x1", ""), group("x2", "permanent"), group("y1", "permanent")},
			on:    acknowledges, told: "x2 y1|", ran: "x1 y1 x2", returned: []string{"y1"},
		},
		"of no group": {
			batch: []events.SQSMessage{message("a", "permanent"), message("b", "permanent")},
			on:    acknowledges, told: "a b|", ran: "a b", returned: []string{"b"},
		},
		"another failure": {
			batch: []events.SQSMessage{group("x1", "fails"), group("x2", "")},
			on:    acknowledges, told: "x1 x2|", ran: "x1", returned: []string{"x2"},
		},
		"another failure after it": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", "fails"), group("x3", "")},
			on:    func(f failed) { f[0].Err = map[bool]error{true: nil, false: errRecord}[f[0].Record.MessageId == "x1"] },
			told:  "x1|x2 x3|", ran: "x1 x2", returned: []string{"x2", "x3"},
		},
		"panics": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", "")},
			on:    func(failed) { panic("on failed") }, told: "x1|x1 x2|", ran: "x1", returned: []string{"x1", "x2"},
		},
		"panics after it has moved": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", "")},
			on:    func(f failed) { f[0].Err = nil; panic("on failed") }, told: "x1|", ran: "x1 x2",
		},
		"ends its goroutine": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", ""), group("y1", "permanent"), group("y2", "")},
			on: func(f failed) {
				if len(f) == 1 {
					runtime.Goexit()
				}
				for _, m := range f {
					if errors.As(m.Err, new(*middleware.PermanentError)) {
						m.Err = nil
					}
				}
			},
			told: "x1|y1|x1 x2 y1 y2|", ran: "x1 y1", returned: []string{"x2", "y2"},
		},
		"ends its goroutine after it has moved": {
			batch: []events.SQSMessage{group("x1", "permanent"), group("x2", "")},
			on:    func(f failed) { f[0].Err = nil; runtime.Goexit() }, told: "x1|", ran: "x1 x2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				var told strings.Builder
				l := &runLog{}
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, l.failsForGood, newFixture().options(middleware.Concurrency(1), middleware.OnFailed(func(_ context.Context, f failed) {
					var ids []string
					for _, m := range f {
						ids = append(ids, m.Record.MessageId)
					}
					told.WriteString(strings.Join(ids, " ") + "|")
					c.on(f)
				}))...)
				r, err := h(ctx, sqsBatch(c.batch...))
				var all *middleware.BatchError
				if errors.As(err, &all) && len(r.BatchItemFailures) == len(c.batch) {
					err = nil
				}
				wantReturned(t, r, err, c.returned...)
				if told.String() != c.told || strings.Join(l.began, " ") != c.ran {
					t.Errorf("told of %q, want %q; ran %q, want %q", &told, c.told, l.began, c.ran)
				}
			})
		})
	}
}

// TestOnFailedInTurnOfManyGroups shows that groups do not wait for each other,
// and that each goes on in order.
func TestOnFailedInTurnOfManyGroups(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		const groups = 8
		var all sync.WaitGroup
		all.Add(groups)
		l := &runLog{}
		var batch []events.SQSMessage
		for i := range 3 * groups {
			does := map[bool]string{true: "permanent"}[i < groups]
			batch = append(batch, inGroup(fmt.Sprint(i%groups), message(fmt.Sprint(i%groups, " ", i/groups), does)))
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, l.failsForGood, newFixture().options(middleware.OnFailed(func(_ context.Context, f failed) {
			f[0].Err = nil
			all.Done()
			all.Wait()
		}))...)
		r, err := h(ctx, sqsBatch(batch...))
		wantReturned(t, r, err)
		place := map[string]int{}
		for _, id := range l.began {
			g, n, _ := strings.Cut(id, " ")
			if fmt.Sprint(place[g]) != n {
				t.Errorf("ran %q", l.began)
			}
			place[g]++
		}
	})
}

// TestOnFailedInTurnOfAStream shows that a shard goes on after a record that
// was put elsewhere.
func TestOnFailedInTurnOfAStream(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		l := &runLog{}
		handle := func(ctx context.Context, r events.KinesisEventRecord) error {
			if err := l.kinesis(ctx, r); err != nil {
				return middleware.Permanent(err)
			}
			return nil
		}
		h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handle, newFixture().options(middleware.OnFailed(func(_ context.Context, f []*middleware.Failed[events.KinesisEventRecord]) {
			f[0].Err = nil
		}))...)
		r, err := h(ctx, kinesisBatch(map[string]string{"a1": "fails", "a2": "fails"}))
		wantReturned(t, r, err)
		if want := []string{"a1", "b1", "a2", "b2", "a3", "b3"}; !slices.Equal(l.began, want) {
			t.Errorf("ran %q", l.began)
		}
	})
}

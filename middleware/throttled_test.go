package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// fullFor throttles the requests of some kinds for a time.
func fullFor(d time.Duration, ops ...string) func(string) bool {
	until := time.Now().Add(d)
	return func(op string) bool {
		return time.Now().Before(until) && (len(ops) == 0 || op == ops[0])
	}
}

// flickering throttles everything for 3 s, and nothing for the next 3 s.
func flickering() func(string) bool {
	began := time.Now()
	return func(string) bool { return int(time.Since(began)/(3*time.Second))%2 == 0 }
}

// TestThrottledBatch shows that batches use what a table takes: every message
// is completed by its first delivery, before the deadline, with few requests.
func TestThrottledBatch(t *testing.T) { // F8, F55, F63
	type figures struct{ perMessage, used float64 }
	usual := figures{4, 0.9}
	at := func(n int) []middleware.Option { return []middleware.Option{middleware.Concurrency(n)} }
	for name, c := range map[string]struct {
		*load
		rate float64
		full func() func(string) bool
		want figures
	}{
		"1,000 messages":                          {&load{messages: 1000}, 100, nil, usual},
		"a handler of 50 ms":                      {&load{messages: 1000, work: 50 * time.Millisecond}, 100, nil, usual},
		"a handler of 1 s":                        {&load{messages: 1000, work: time.Second, options: at(100)}, 100, nil, usual},
		"one at a time":                           {&load{messages: 1000, options: at(1)}, 100, nil, usual},
		"1,000 at a time":                         {&load{messages: 1000, options: at(1000)}, 100, nil, usual},
		"10 environments":                         {&load{messages: 1000, batch: 100, environments: 10}, 100, nil, figures{4, 0.75}},
		"batches of 10 in 5 environments":         {&load{messages: 1000, batch: 10, environments: 5}, 100, nil, usual},
		"batches of 10 in 100 new environments":   {&load{messages: 1000, batch: 10, environments: 100}, 100, nil, figures{4.5, 0.7}},
		"groups":                                  {&load{messages: 1000, groups: 20}, 100, nil, usual},
		"10,000 messages":                         {&load{messages: 10_000}, 1000, nil, usual},
		"10,000 messages in 10 environments":      {&load{messages: 10_000, batch: 1000, environments: 10}, 1000, nil, usual},
		"a table that takes nothing for 20 s":     {&load{messages: 1000}, 100, func() func(string) bool { return fullFor(20 * time.Second) }, figures{4, 0.4}},
		"a table that completes nothing for 20 s": {&load{messages: 1000}, 100, func() func(string) bool { return fullFor(20*time.Second, fault.Release) }, figures{4, 0.4}},
		"a table that answers immediately":        {&load{messages: 1000, instant: true}, 100, nil, usual},
		"a table that flickers":                   {&load{messages: 600}, 100, flickering, figures{4, 0.25}}, // half of the time is lost; at 0.3, 800 messages take a whole minute
		"a table that is large enough":            {&load{messages: 1000}, 10_000, nil, figures{2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.messages > 1000 {
				t.Skip("takes seconds: run it without -short")
			}
			// The pace has chance in it, so most of five runs decide.
			var got []figures
			for few, busy := 0, 0; few < 3 || busy < 3; {
				if len(got) == 5 {
					t.Fatalf("requests a message, and the used part of the capacity: %.2f, want %v", got, c.want)
				}
				synctest.Test(t, func(t *testing.T) {
					l := &load{
						messages: c.messages, batch: c.batch, environments: c.environments, work: max(c.work, time.Millisecond), instant: c.instant,
						groups: c.groups, options: c.options, table: &fault.Limited{Rate: c.rate}, timeout: time.Minute,
					}
					if c.full != nil {
						l.table.Full = c.full()
					}
					l.run(t)
					l.wantAll(t)
					perMessage, used := l.figures()
					got = append(got, figures{perMessage, used})
					if perMessage <= c.want.perMessage {
						few++
					}
					if used >= c.want.used {
						busy++
					}
				})
			}
			t.Logf("requests a message, and the used part of the capacity: %.2f", got)
		})
	}
}

// wantAll checks that every message was completed by its first delivery, and
// those of a group in their order.
func (l *load) wantAll(t *testing.T) {
	t.Helper()
	if len(l.completed) != l.messages || l.dead > 0 || l.late > 0 {
		t.Error(l)
	}
	if first := max(1, l.messages/max(l.batch, 1)); l.batch > 0 && l.invocations != first || l.batch == 0 && l.invocations != 1 {
		t.Errorf("%d invocations: messages were returned that could have been completed", l.invocations)
	}
	l.wantOrder(t)
}

// wantOrder checks that the messages of a group were handled in their order.
func (l *load) wantOrder(t *testing.T) {
	t.Helper()
	last := map[string]string{}
	for _, id := range l.order {
		g := l.letters[id].Attributes["MessageGroupId"]
		if l.groups > 0 && id <= last[g] {
			t.Errorf("%s of %s was handled after %s", id, g, last[g])
		}
		last[g] = id
	}
}

// TestFullTable shows that a batch waits for a table that takes nothing, and
// gives its records back in time: before the deadline, when the invocation is
// cancelled, and without either after half a minute.
func TestFullTable(t *testing.T) { // F12, F63
	for name, c := range map[string]struct {
		deadline, cancelled time.Duration // zero: none
		fullFor             time.Duration
		least, most         time.Duration // that the batch takes
		completed           bool
	}{
		"a minute":                 {time.Minute, 0, time.Hour, 58 * time.Second, time.Minute, false},
		"3 s":                      {3 * time.Second, 0, time.Hour, 2500 * time.Millisecond, 3 * time.Second, false},
		"200 ms":                   {200 * time.Millisecond, 0, time.Hour, 0, 200 * time.Millisecond, false},
		"it recovers in time":      {time.Minute, 0, 50 * time.Second, 50 * time.Second, time.Minute, true},
		"cancelled":                {time.Minute, 10 * time.Second, time.Hour, 10 * time.Second, 10100 * time.Millisecond, false},
		"no deadline":              {0, 0, time.Hour, 30 * time.Second, 35 * time.Second, false},
		"no deadline, it recovers": {0, 0, 25 * time.Second, 25 * time.Second, 30 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.deadline > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, c.deadline)
					defer stop()
				}
				f, runs := newFixture(), &runLog{}
				table := &fault.Limited{Store: memstore.New(), Rate: 1000, Wait: 5 * time.Millisecond, Full: fullFor(c.fullFor)}
				if c.cancelled > 0 {
					time.AfterFunc(c.cancelled, func() { cancel(errRecord) })
					table.Wait = 0 // so that it comes during none: that claim would be given up, for up to 2 s
				}
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options(middleware.Store(table))...)
				var batch events.SQSEvent
				var ids []string
				for i := range 50 {
					ids = append(ids, fmt.Sprint(i))
					batch.Records = append(batch.Records, message(ids[i], ""))
				}
				began := time.Now()
				r, err := h(ctx, batch)
				if took := time.Since(began); took < c.least || took >= c.most {
					t.Errorf("took %v, want %v to %v", took, c.least, c.most)
				}
				if sent, _ := table.Requests(); sent > 200 {
					t.Errorf("%d requests", sent)
				}
				if n := f.count(lock.OutcomeStoreFailed); n > 0 || f.count(lock.OutcomeRequeued) == 0 {
					t.Errorf("%d claims that go back to the queue are errors", n)
				}
				if c.completed {
					wantReturned(t, r, err)
					return
				}
				wantAllReturned(t, r, err, ids...)
				notBegun := f.of(middleware.OutcomeNotBegun)
				for _, part := range []string{"the store throttled ", "50 of 50 records", "not begun, because", "injected"} {
					if len(notBegun) != 1 || !strings.Contains(notBegun[0].Err.Error(), part) {
						t.Errorf("%v does not say %q", notBegun, part)
					}
				}
				if len(runs.began) > 0 || c.cancelled > 0 && !errors.Is(err, errRecord) {
					t.Errorf("ran %q, %v", runs.began, err)
				}
			})
		})
	}
}

// TestHotName shows that a name which takes fewer writes than the table does
// not keep back the others, however many records are handled at a time.
func TestHotName(t *testing.T) { // F63
	for _, n := range []int{1, 16} {
		t.Run(fmt.Sprint(n, " at a time"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &load{
					messages: 1000, timeout: time.Minute, options: []middleware.Option{middleware.Concurrency(n)},
					table: &fault.Limited{Rate: 1000, Name: 3}, work: time.Millisecond,
					key: func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
						if m.MessageId < "m00200" {
							return lock.Key{Name: "hot", Event: m.MessageId}, nil
						}
						return lock.Key{Name: m.MessageId, Event: m.MessageId}, nil
					},
				}
				l.run(t)
				perMessage, _ := l.figures()
				t.Logf("%.2f requests a message", perMessage)
				if l.dead > 0 || l.late > 0 || len(l.completed) != l.messages || perMessage > 4 {
					t.Error(l)
				}
				for _, m := range l.letters {
					if m.MessageId >= "m00200" && m.received > 1 {
						t.Errorf("%s was received %d times", m.MessageId, m.received)
						break
					}
				}
			})
		})
	}
}

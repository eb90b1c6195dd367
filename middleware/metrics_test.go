package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// meter keeps the totals of every invocation.
type meter struct {
	mu  sync.Mutex
	all []middleware.Totals
}

func (m *meter) option() middleware.Option {
	return middleware.Metrics(func(_ context.Context, t middleware.Totals) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.all = append(m.all, t)
	})
}

// one returns the totals of the only invocation since the last call.
func (m *meter) one(t *testing.T) middleware.Totals {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) != 1 {
		t.Fatalf("%d totals for one invocation: %+v", len(m.all), m.all)
	}
	totals := m.all[0]
	m.all = nil
	return totals
}

// TestMetricsOfEveryWrapper shows that every wrapper calls the function given
// to Metrics once for each invocation, whatever becomes of it, with what the
// observer saw.
func TestMetricsOfEveryWrapper(t *testing.T) {
	t.Parallel()
	byID := keyfuncs.ByField(func(o order) string { return o.ID })
	ended := func(ctx context.Context, how string) error {
		switch how {
		case "error":
			return errRecord
		case "panic":
			panic("boom")
		}
		return ctx.Err()
	}
	of := func(ctx context.Context, o order) error { return ended(ctx, o.ID) }
	for name, invoke := range map[string]func(ctx context.Context, how string, opts []middleware.Option) error{
		"WithLock": func(ctx context.Context, how string, opts []middleware.Option) error {
			return middleware.WithLock(byOrder, of, opts...)(ctx, order{ID: how})
		},
		"WithLocks": func(ctx context.Context, how string, opts []middleware.Option) error {
			return middleware.WithLocks(keyfuncs.All(byOrder, lockPerOrder), of, opts...)(ctx, order{ID: how})
		},
		"Latest": func(ctx context.Context, how string, opts []middleware.Option) error {
			return middleware.Latest(lockPerOrder, of, opts...)(ctx, order{ID: how})
		},
		"lambda.Handler": func(ctx context.Context, how string, opts []middleware.Option) error {
			_, err := middleware.WithLock(byOrder, lambda.Handler(ending{ended}), opts...).Invoke(ctx, []byte(`{"id":"`+how+`"}`))
			return err
		},
		"WithEventBridgeDetail": func(ctx context.Context, how string, opts []middleware.Option) error {
			return middleware.WithEventBridgeDetail(byID, of, opts...)(ctx, events.EventBridgeEvent{ID: how, Detail: []byte(`{"id":"` + how + `"}`)})
		},
		"EachSQSBody": func(ctx context.Context, how string, opts []middleware.Option) error {
			_, err := middleware.EachSQSBody(byID, of, opts...)(ctx, sqsBatch(message("m1", `{"id":"`+how+`"}`)))
			return err
		},
		"EachS3Record without records": func(ctx context.Context, _ string, opts []middleware.Option) error {
			return middleware.EachS3Record(keyfuncs.S3Record, func(context.Context, events.S3EventRecord) error { return nil }, opts...)(ctx, middleware.S3Records{})
		},
	} {
		for _, how := range []string{"ok", "error", "panic", ""} {
			t.Run(name+"/"+how, func(t *testing.T) {
				f, m := newFixture(), meter{}
				func() {
					defer func() { _ = recover() }()
					_ = invoke(t.Context(), how, f.options(middleware.Namespace("shop"), m.option()))
				}()
				wantTotals(t, f, m.one(t), "shop")
			})
		}
	}
}

// ending is a raw handler that ends as its payload says.
type ending struct {
	as func(ctx context.Context, how string) error
}

func (e ending) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	how := strings.TrimSuffix(strings.TrimPrefix(string(payload), `{"id":"`), `"}`)
	return []byte("null"), e.as(ctx, how)
}

// wantTotals checks totals against what the observer saw.
func wantTotals(t *testing.T, f *fixture, got middleware.Totals, namespace string) {
	t.Helper()
	want := map[lock.Outcome]int{}
	requests, completed := 0, 0
	for _, o := range f.observed {
		want[o.Outcome] += max(1, o.Records)
		requests += o.Requests
		if o.Completed {
			completed++
		}
	}
	if len(want) == 0 || !maps.Equal(got.Outcomes, want) || got.Requests != requests || got.Completed != completed || got.Namespace != namespace || got.Began.IsZero() {
		t.Errorf("totals %+v, want %v, %d requests, %d completed", got, want, requests, completed)
	}
}

// TestMetricsOfABatch shows what the totals of a batch say: each number once.
func TestMetricsOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := newFixture(), meter{}
		busy, same := lock.Key{Name: "busy"}, lock.Key{Name: "same", Event: "same"}
		f.acquireElsewhere(t, busy)
		f.acquireElsewhere(t, same)
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			switch m.MessageId {
			case "busy1", "busy2":
				return busy, nil
			case "same":
				return same, nil
			}
			return lock.Key{Name: m.Body, Event: m.MessageId}, nil
		}
		handler := func(ctx context.Context, m events.SQSMessage) error {
			time.Sleep(10 * time.Second)
			if m.MessageId == "bad" {
				return errRecord
			}
			return nil
		}
		each := middleware.EachSQSMessage(key, handler, f.options(m.option(), middleware.Namespace(""), middleware.Concurrency(100))...)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, _ = each(ctx, sqsBatch(message("busy1", ""), message("busy2", ""), message("same", ""), message("bad", "a"), message("good", "b"),
			inGroup("g", message("1", "c")), inGroup("g", message("2", "d")), inGroup("g", message("3", "e")), inGroup("g", message("4", "e"))))
		got := m.one(t)
		for what, n := range map[string][2]int{
			"completed":      {got.Completed, 3},
			"overdue":        {got.Outcomes[middleware.OutcomeOverdue], 1},
			"in progress":    {got.InProgress, 1},
			"contended":      {got.Contended[busy.Digest()], 2},
			"handler failed": {got.Outcomes[middleware.OutcomeHandlerFailed], 1},
			"not begun":      {got.Outcomes[middleware.OutcomeNotBegun], 2},
			"acquires":       {len(got.Acquires), 4},
			"holds":          {len(got.Holds), 4},
			"waits":          {len(got.Waits), 0},
		} {
			if n[0] != n[1] {
				t.Errorf("%s: %d, want %d: %+v", what, n[0], n[1], got)
			}
		}
		if got.Holds[0] != 10*time.Second || got.Duration < 10*time.Second || len(got.Contended) != 1 {
			t.Errorf("totals %+v", got)
		}
	})
}

// TestMetricsOfAWait shows that a claim that waited counts as one, with its
// wait.
func TestMetricsOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := newFixture(), meter{}
		f.acquireElsewhere(t, lock.Key{Name: "orders"})
		h := middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, f.options(m.option(), middleware.Namespace(""), middleware.OnHeld(middleware.Wait(time.Minute)))...)
		expect.Must(t, h(t.Context(), order{ID: "1"}))
		got := m.all[0]
		if len(got.Waits) != 1 || got.Waits[0] < 5*time.Second || !slices.Equal(got.Waits, got.Acquires) || got.Outcomes[lock.OutcomeTakenOver] != 1 {
			t.Errorf("totals %+v", got)
		}
	})
}

// TestMetricsOfNestedWrappers shows that the outcomes of an inner wrapper count
// in the totals of the outer one, whether it has Metrics too or not.
func TestMetricsOfNestedWrappers(t *testing.T) {
	t.Parallel()
	for _, toInner := range []middleware.Option{middleware.Metrics(nil), middleware.Metrics(func(context.Context, middleware.Totals) {
		t.Error("the outer wrapper has Metrics")
	})} {
		f, m := newFixture(), meter{}
		opts := f.options(middleware.Namespace("shop"))
		inner := middleware.WithLock(keyfuncs.Static("partner"), func(context.Context, events.SQSMessage) error { return nil }, append(opts, toInner)...)
		outer := middleware.EachSQSMessage(keyfuncs.SQSMessage, inner, append(opts, m.option(), middleware.Concurrency(1))...)
		expect.Value(outer(t.Context(), sqsBatch(message("1", ""), message("2", ""))))(t)
		got := m.one(t)
		if got.Outcomes[lock.OutcomeAcquired] != 4 {
			t.Errorf("totals %+v", got)
		}
		wantTotals(t, f, got, "shop")
	}
}

// TestMetricsAtOnce shows that an outcome after which the process may die is
// told at once, with what there is until then, and the rest in the end.
func TestMetricsAtOnce(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(callbackCases)
	cases[lock.OutcomeInterrupted] = callbackCase{
		opts:   []middleware.Option{middleware.OnInterrupted(middleware.Ask(func(context.Context, order) (bool, error) { return false, nil }))},
		before: func(t *testing.T, f *fixture) { f.interrupt(t, lock.Key{Name: "n", Event: "1"}) },
	}
	for outcome, calls := range map[lock.Outcome]int{
		lock.OutcomeTakenOver: 1, lock.OutcomeInterrupted: 2, middleware.OutcomeUnlocked: 1, // calls before the handler
		lock.OutcomeLost: 0, // comes after it
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, m := cases[outcome], meter{}
				f := c.prepare(t, new(atomic.Int32))
				h := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return c.keyOf(o.ID) }, func(context.Context, order) error {
					if len(m.all) != calls {
						t.Errorf("%d calls before the handler, want %d", len(m.all), calls)
					}
					time.Sleep(time.Second)
					return c.run(t, f)
				}, f.options(append(c.opts, middleware.Namespace(""), m.option())...)...)
				_ = h(t.Context(), order{ID: "1"})
				last := len(m.all) - 1
				sum := m.all[last]
				for _, told := range m.all[:last] {
					if told.Duration != 0 {
						t.Errorf("totals of the whole invocation before its end: %+v", told)
					}
					for o, n := range told.Outcomes {
						sum.Outcomes[o] += n
					}
					sum.Requests += told.Requests
					sum.Completed += told.Completed
				}
				if m.all[max(0, last-1)].Outcomes[outcome] != 1 || sum.Duration < time.Second {
					t.Errorf("told %+v", m.all)
				}
				wantTotals(t, f, sum, "")
			})
		})
	}
}

// TestHoldsOfEveryEnd shows that the time of a lock counts once, however the
// lock ends.
func TestHoldsOfEveryEnd(t *testing.T) {
	t.Parallel()
	long := func(*testing.T, *fixture) error { time.Sleep(9 * time.Second); return nil }
	pure := func(string) (lock.Key, error) { return lock.Key{Name: "n"}, nil }
	for outcome, c := range map[lock.Outcome]callbackCase{
		lock.OutcomeReleased:       {},
		lock.OutcomeLost:           callbackCases[lock.OutcomeLost],
		lock.OutcomeCompleteFailed: callbackCases[lock.OutcomeCompleteFailed],
		lock.OutcomeStoreFailed:    {key: pure, store: func(f *fixture) { f.faulty.Always(fault.Release, fault.Deny) }},
		lock.OutcomeRenewed:        {opts: []middleware.Option{middleware.Heartbeat(10 * time.Second)}, work: long},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := meter{}
				f := c.prepare(t, new(atomic.Int32))
				h := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return c.keyOf(o.ID) }, func(context.Context, order) error {
					time.Sleep(time.Second)
					return c.run(t, f)
				}, f.options(append(c.opts, middleware.Namespace(""), m.option())...)...)
				_ = h(t.Context(), order{ID: "1"})
				var holds []time.Duration
				for _, told := range m.all {
					holds = append(holds, told.Holds...)
				}
				if f.count(outcome) == 0 || len(holds) != 1 || holds[0] < time.Second {
					t.Errorf("held for %v; observed %v", holds, f.observed)
				}
			})
		})
	}
}

// TestTotalsAreFinal shows that what is observed after the invocation, such as
// by a goroutine that outlives it, does not change the totals that were told.
func TestTotalsAreFinal(t *testing.T) { // F17
	t.Parallel()
	f := newFixture()
	var told middleware.Totals
	count := middleware.Metrics(func(_ context.Context, t middleware.Totals) { told = t })
	var within context.Context
	h := middleware.WithLock(byOrder, func(ctx context.Context, _ order) error {
		within = context.WithoutCancel(ctx)
		return nil
	}, f.options(count)...)
	expect.OK(t, h(t.Context(), order{ID: "1"}))
	outcomes := maps.Clone(told.Outcomes)
	late := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return nil }, f.options(count)...)
	expect.OK(t, late(within, order{ID: "2"}))
	if !maps.Equal(told.Outcomes, outcomes) {
		t.Errorf("the outcomes became %v, were %v", told.Outcomes, outcomes)
	}
}

// TestMetricsOfAStream shows that the totals include how a streamed response
// ended.
func TestMetricsOfAStream(t *testing.T) {
	t.Parallel()
	f, m := newFixture(), meter{}
	h := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return strings.NewReader("hello"), nil },
		f.options(m.option(), middleware.Namespace("shop"))...)
	out, err := h(t.Context(), order{ID: "1"})
	if err != nil || len(m.all) > 0 {
		t.Fatalf("%v; before the end of the stream: %+v", err, m.all)
	}
	_, _ = io.ReadAll(out)
	_ = out.(io.Closer).Close()
	wantTotals(t, f, m.one(t), "shop")
}

// TestSeveralMetrics shows that every function given to Metrics is called, in
// order and before the answer, also if one before it panics.
func TestSeveralMetrics(t *testing.T) {
	t.Parallel()
	var seen []string
	note := func(name string) middleware.Option {
		return middleware.Metrics(func(_ context.Context, got middleware.Totals) {
			seen = append(seen, fmt.Sprint(name, got.Completed))
			if name == "b" {
				panic(errors.New(name))
			}
		})
	}
	h := middleware.WithLock(byOrder, func(context.Context, order) error { return nil },
		newFixture().options(note("a"), middleware.Metrics(nil), note("b"), note("c"))...)
	func() {
		defer func() {
			if p := recover(); fmt.Sprint(p) != "b" {
				t.Errorf("recovered %v, want the panic of b", p)
			}
		}()
		_ = h(t.Context(), order{ID: "1"})
	}()
	if want := []string{"a1", "b1", "c1"}; !slices.Equal(seen, want) {
		t.Errorf("called %q, want %q", seen, want)
	}
}

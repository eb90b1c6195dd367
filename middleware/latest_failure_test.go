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

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestCoalescedBeforeAFailedCompletion coalesces an event during a run that
// succeeds but whose completion is not confirmed: the event of the holder must
// not be acknowledged, because nobody else runs for the coalesced one.
func TestCoalescedBeforeAFailedCompletion(t *testing.T) { // F7
	t.Parallel()
	for form, wrap := range rebuilds {
		for name, spoil := range map[string]func(*testing.T, *fixture){
			"the store is down": func(_ *testing.T, f *fixture) { f.faulty.Always(fault.Release, fault.DropBefore) },
			"an operator has released the lock": func(t *testing.T, f *fixture) {
				for row := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
					if _, ok, err := f.faulty.Store.Settle(t.Context(), &driver.Settlement{Name: row.Name, Token: row.Token, DeleteAfter: row.DeleteAfter}); !ok {
						t.Fatal(err)
					}
				}
			},
		} {
			t.Run(form+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					runs := 0
					var h func(context.Context, order) error
					h = wrap(func(context.Context) error {
						if runs++; runs == 1 {
							expect.OK(t, h(t.Context(), order{ID: "other"}))
							spoil(t, f)
						}
						return nil
					}, f.options()...)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := h(ctx, order{ID: "first"}); err == nil {
						t.Error("the event of the holder was acknowledged")
					}
					f.faulty.Always(fault.Release, fault.None)
					time.Sleep(time.Minute)
					if err := h(t.Context(), order{ID: "first"}); err != nil || runs != 2 {
						t.Errorf("%d runs, %v", runs, err)
					}
				})
			})
		}
	}
}

// TestFailureOnWhichOthersRely shows that the error of a handler reaches AWS
// Lambda unchanged also if another event relies on its run.
func TestFailureOnWhichOthersRely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var h func(context.Context, order) error
		h = middleware.Latest(ofItem, func(context.Context, order) error {
			expect.OK(t, h(t.Context(), order{ID: "other"}))
			return errRecord
		}, f.options()...)
		if err := h(t.Context(), order{ID: "first"}); err != errRecord {
			t.Errorf("got %v", err)
		}
	})
}

// TestOwedRecordIsReported shows that a record which is returned although its
// handler succeeded can be found in the log.
func TestOwedRecordIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var h func(context.Context, order) error
		h = rebuilds["records"](func(context.Context) error {
			time.Sleep(6 * time.Second) // of 10
			return h(t.Context(), order{ID: "other"})
		}, f.options()...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := h(ctx, order{ID: "first"}); err == nil {
			t.Error("the message does not come back")
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeCoalesced, lock.OutcomeReleased, middleware.OutcomeHandlerFailed)
	})
}

// TestOwedInsideARecordIsReportedOnce shows that a record whose handler returns
// the error of a wrapper inside it counts as one failure.
func TestOwedInsideARecordIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
		return &lock.DeadlineError{}
	}, f.options(middleware.OnlyLatest())...)
	if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSource: "aws:sqs"}}}); err == nil {
		t.Error("the message does not come back")
	}
	f.want(t, lock.OutcomeAcquired, middleware.OutcomeHandlerFailed, lock.OutcomeReleased)
}

// TestFailureBesideAPanic: that the observer panics when it is told why a
// record failed does not hide that, which says when the record comes again.
func TestFailureBesideAPanic(t *testing.T) { // F48
	t.Parallel()
	for name, c := range map[string]struct {
		around func(ctx context.Context, next next) error
		wants  any // points to a type of error
	}{
		"the function given to Around refuses it": {func(context.Context, next) error { return middleware.Permanent(errRecord) }, new(*middleware.PermanentError)},
		"no time for another run":                 {func(ctx context.Context, next next) error { return next(ctx) }, new(*lock.DeadlineError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				var told error
				var h func(context.Context, order) error
				h = rebuilds["records"](func(context.Context) error {
					time.Sleep(6 * time.Second) // of 10
					return h(t.Context(), order{ID: "other"})
				}, f.options(
					middleware.Observe(func(_ context.Context, o lock.Observation) {
						if o.Outcome == middleware.OutcomeHandlerFailed {
							panic("observer")
						}
					}),
					middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error { return c.around(ctx, next) }),
					middleware.OnFailed(func(_ context.Context, fs failed) { told = fs[0].Err }),
				)...)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_ = h(ctx, order{ID: "first"})
				if !errors.As(told, new(*middleware.PanicError)) || !errors.As(told, c.wants) {
					t.Errorf("the record failed with %v", told)
				}
			})
		})
	}
}

// TestAroundGivesUpWhatIsOwed shows that the function given to Around cannot
// say that a record failed for good while others rely on its event, or may.
func TestAroundGivesUpWhatIsOwed(t *testing.T) { // F7
	t.Parallel()
	fails := func(*fixture) error { return errRecord }
	for name, c := range map[string]struct {
		ends   func(*fixture) error // the run
		others bool                 // came during it
		owed   bool
		says   string
	}{
		"it fails":            {fails, true, true, "bad"},
		"it fails, alone":     {fails, false, false, "bad"},
		"it panics":           {func(*fixture) error { panic(errRecord) }, true, true, "sorry"},
		"no time for another": {func(*fixture) error { time.Sleep(6 * time.Second); return nil }, true, true, "once more"},
		"nobody knows who came": {func(f *fixture) error {
			f.faulty.Always(fault.Release, fault.DropBefore)
			return nil
		}, false, true, "complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				var told error
				var h func(context.Context, order) error
				h = rebuilds["records"](func(context.Context) error {
					if c.others {
						expect.OK(t, h(t.Context(), order{ID: "other"}))
					}
					return c.ends(f)
				}, f.options(
					middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error {
						return middleware.Permanent(recovering(errors.New("sorry"))(ctx, next))
					}),
					middleware.OnFailed(func(_ context.Context, fs failed) { told = fs[0].Err }),
				)...)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_ = h(ctx, order{ID: "first"})
				if errors.As(told, new(*middleware.PermanentError)) == c.owed || !strings.Contains(fmt.Sprint(told), c.says) {
					t.Errorf("the record failed with %v", told)
				}
			})
		})
	}
}

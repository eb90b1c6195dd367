package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
)

var _ clock.Clock = (*simclock.Clock)(nil)

// TestReadings shows that the two readings of a clock go their own ways: each
// must be what package time takes it for.
func TestReadings(t *testing.T) { // F14, F15
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := simclock.New(time.Hour, 0.01)
		first := c.Now()
		want := func(when string, wall, ran time.Duration) {
			t.Helper()
			if got := clock.Wall(c).Sub(start.Round(0)); got != wall {
				t.Errorf("%s, the wall clock shows %v, want %v", when, got, wall)
			}
			if got := c.Now().Sub(first); got != ran {
				t.Errorf("%s, the process has run %v, want %v", when, got, ran)
			}
		}
		want("at first", time.Hour, 0)
		time.Sleep(100 * time.Second)
		want("with its drift", time.Hour+101*time.Second, 100*time.Second)
		c.Step(-2 * time.Hour)
		want("after it was set back", 101*time.Second-time.Hour, 100*time.Second)
		c.Freeze()
		time.Sleep(100 * time.Second)
		want("while frozen", 202*time.Second-time.Hour, 100*time.Second)
		c.Thaw()
		want("after the thaw", 202*time.Second-time.Hour, 100*time.Second)
		time.Sleep(100 * time.Second)
		want("running again", 303*time.Second-time.Hour, 200*time.Second)
	})
}

// TestFrozenTimers shows that timers, sleeps and deadlines stand still with
// their process.
func TestFrozenTimers(t *testing.T) { // F15
	synctest.Test(t, func(t *testing.T) {
		c := simclock.New(0, 0)
		start := time.Now()
		fired := make(chan time.Duration, 10)
		since := func() { fired <- time.Since(start) }
		want := func(what string, d time.Duration) {
			t.Helper()
			if got := <-fired; got != d {
				t.Errorf("%s after %v, want %v", what, got, d)
			}
		}
		c.AfterFunc(10*time.Second, since)
		go func() {
			_ = c.Sleep(t.Context(), 11*time.Second)
			since()
		}()
		ctx, cancel := c.WithDeadlineCause(t.Context(), c.Now().Add(12*time.Second), errors.New("why"))
		defer cancel()
		context.AfterFunc(ctx, since)
		stopped, moved := c.AfterFunc(10*time.Second, since), c.AfterFunc(10*time.Second, since)
		time.Sleep(9 * time.Second)
		c.Freeze()
		c.Freeze() // changes nothing
		if !stopped.Stop() || stopped.Stop() {
			t.Error("a timer that waits was not stopped, or one that does not was")
		}
		moved.Reset(4 * time.Second)
		c.AfterFunc(5*time.Second, since)
		go func() {
			if !c.Awake() || c.Awake() {
				t.Error("not known to have been frozen, or not to have run")
			}
			since()
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		c.Thaw()
		c.Thaw()
		want("awake", time.Hour+9*time.Second)
		want("a timer", time.Hour+10*time.Second)
		want("a sleep", time.Hour+11*time.Second)
		want("a deadline", time.Hour+12*time.Second)
		want("a timer that was moved", time.Hour+13*time.Second)
		want("a timer that was made while frozen", time.Hour+14*time.Second)
		time.Sleep(time.Hour)
		if len(fired) > 0 {
			t.Error("a timer that was stopped fired, or one fired twice")
		}
	})
}

// TestDeadline shows that a context with a deadline is one like that of package
// context, and so are those below it.
func TestDeadline(t *testing.T) {
	why, stop := errors.New("why"), errors.New("stop")
	for name, c := range map[string]struct {
		end        func(cancel context.CancelFunc, parent context.CancelCauseFunc)
		at         time.Duration
		err, cause error
	}{
		"expired":          {func(context.CancelFunc, context.CancelCauseFunc) { time.Sleep(time.Minute) }, time.Minute, context.DeadlineExceeded, why},
		"cancelled":        {func(cancel context.CancelFunc, _ context.CancelCauseFunc) { cancel() }, time.Minute, context.Canceled, context.Canceled},
		"parent cancelled": {func(_ context.CancelFunc, parent context.CancelCauseFunc) { parent(stop) }, time.Minute, context.Canceled, stop},
		"over already":     {func(context.CancelFunc, context.CancelCauseFunc) {}, 0, context.DeadlineExceeded, why},
	} {
		t.Run(name, func(t *testing.T) {
			for _, clk := range []clock.Clock{clock.From(t.Context()), nil} {
				synctest.Test(t, func(t *testing.T) {
					if clk == nil {
						clk = simclock.New(time.Hour, 0)
					}
					parent, end := context.WithCancelCause(t.Context())
					defer end(nil)
					at := clk.Now().Add(c.at)
					ctx, cancel := clk.WithDeadlineCause(parent, at, why)
					defer cancel()
					later, cancelLater := clk.WithDeadlineCause(ctx, at.Add(time.Hour), stop)
					defer cancelLater()
					below, cancelBelow := context.WithCancel(later)
					defer cancelBelow()
					c.end(cancel, end)
					synctest.Wait()
					for which, ctx := range map[string]context.Context{"it": ctx, "one with a later deadline below": later, "one below that": below} {
						select {
						case <-ctx.Done():
						default:
							t.Errorf("%s is not done", which)
						}
						if err, cause := ctx.Err(), context.Cause(ctx); err != c.err || cause != c.cause {
							t.Errorf("%s ended with %v, because of %v", which, err, cause)
						}
						if got, ok := ctx.Deadline(); !ok || !got.Equal(at) {
							t.Errorf("%s has the deadline %v, %v", which, got, ok)
						}
					}
				})
			}
		})
	}
}

// TestSchedule shows that the chance of a scheduled clock is that of its seed,
// that of any other is not, and that timers of one instant take turns.
func TestSchedule(t *testing.T) {
	t.Parallel()
	play := func(seed uint64) (chance string, fired []int) {
		synctest.Test(t, func(*testing.T) {
			turns := schedule.Start(seed)
			defer turns.Stop()
			c := simclock.New(0, 0)
			c.Schedule(turns, 1, seed)
			chance = fmt.Sprint(c.Text(), c.Uint64())
			for i := range 5 {
				at := simclock.New(0, 0)
				at.Schedule(turns, uint64(i), seed)
				at.AfterFunc(time.Second, func() { fired = append(fired, i) })
			}
			time.Sleep(2 * time.Second)
		})
		return chance, fired
	}
	chance, fired := play(1)
	if again, firedAgain := play(1); chance != again || !slices.Equal(fired, firedAgain) {
		t.Errorf("the same seed: %s and %v, then %s and %v", chance, fired, again, firedAgain)
	}
	if other, firedThere := play(2); chance == other || slices.Equal(fired, firedThere) {
		t.Errorf("another seed: %s and %v again", other, firedThere)
	}
	c, other := simclock.New(0, 0), simclock.New(0, 0)
	if text := c.Text(); text == other.Text() || len(text) != 26 || c.Uint64() == other.Uint64() {
		t.Errorf("without a seed: %s again", text)
	}
}

//go:build unix

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	overtimeTimeout = 2 * time.Second // of the function
	overtimeApart   = 1900 * time.Millisecond
	overtimeMost    = 4 * time.Second // beyond the deadline
)

// overtimeEvent is what the function is invoked with.
type overtimeEvent struct{ Name, ID string }

// overtimeLine is what the function prints: one of these about the lock with
// that fence.
type overtimeLine struct {
	Begun, Ended, Renewed, Lost bool
	Name, ID                    string
	Fence                       int64
	At                          time.Time
}

// elsewhere is a store whose client knows the machine's clock only, for a
// process with another.
func elsewhere(store driver.Store, process *simclock.Clock) driver.Store {
	return fault.Hooks{Store: store, Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
		deadline, _ := ctx.Deadline() // every request has one
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline.Sub(process.Now()))
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return r.Send(timed)
	}}
}

// outlive is the part of a child that is a function in Lambda. Its handler does
// not heed its context, and ends seconds after its deadline. The clocks of half
// of the processes are ahead of the others'.
func outlive(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	process := simclock.New(time.Duration(os.Getpid()%2)*overtimeApart-overtimeApart/2, 0)
	var mu sync.Mutex
	say := func(l overtimeLine) {
		mu.Lock()
		defer mu.Unlock()
		l.At = time.Now()
		_ = json.NewEncoder(os.Stdout).Encode(l) // the platform may have gone
	}
	observe := func(_ context.Context, o lock.Observation) {
		if o.Op == "renew" {
			say(overtimeLine{Renewed: o.Outcome == lock.OutcomeRenewed, Lost: o.Outcome == lock.OutcomeLost, Name: o.Key.Name, ID: o.Key.Event, Fence: o.Fence})
		}
	}
	key := func(_ context.Context, e overtimeEvent) (lock.Key, error) {
		return lock.Key{Name: e.Name, Event: e.ID}, nil
	}
	handler := middleware.WithLock(key, func(ctx context.Context, e overtimeEvent) error {
		lease, _ := lock.FromContext(ctx)
		line := overtimeLine{Begun: true, Name: e.Name, ID: e.ID, Fence: lease.Fence}
		say(line)
		end, _ := ctx.Deadline()
		time.Sleep(time.Until(end) + rand.N(overtimeMost))
		line.Begun, line.Ended = false, true
		say(line)
		return nil
	}, middleware.Store(elsewhere(store, process)), middleware.Namespace(""), middleware.Logger(discard), middleware.Observe(observe))
	lambda.Start(func(ctx context.Context, e overtimeEvent) error { return handler(clock.With(ctx, process), e) })
	return nil
}

// TestTimedOutHandlersLiveOn shows that a handler that goes on after its
// deadline, in a process that nobody ends, is not overlapped by a retry, by
// clocks that differ by almost Grace; and that its event is completed, so that
// no retry runs (F14, F16). A process that the machine starves for so long that
// it loses its lease says so, and does not count.
func TestTimedOutHandlersLiveOn(t *testing.T) {
	inEach(t, func(t *testing.T, b backend, p place) {
		events := 1000
		if testing.Short() {
			events = 24
		}
		if b.killsShort == 0 {
			t.Skip("one table is enough for so many processes")
		}
		text, err := json.Marshal(task{Place: p, Who: "function"})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var lines []overtimeLine
		platform, err := locallambda.Start(t.Context(), locallambda.Config{
			Command: []string{os.Args[0]}, Env: []string{roleVariable + "=outlive", taskVariable + "=" + string(text)},
			Timeout: overtimeTimeout, LivesOn: true, Environments: 12,
			Logs: func(_ int, line string) {
				var l overtimeLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					return // why an invocation failed
				}
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, l)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var deliveries sync.WaitGroup
		for i := range events {
			payload := expect.Value(json.Marshal(overtimeEvent{Name: fmt.Sprint("name", i/2), ID: fmt.Sprint("event", i)}))(t)
			deliveries.Go(func() { deliverUntilAcknowledged(t, platform, payload) })
		}
		deliveries.Wait()
		expect.OK(t, platform.Close())
		checkOvertime(t, lines, events)
	})
}

// deliverUntilAcknowledged delivers an event again and again, as its source
// would.
func deliverUntilAcknowledged(t *testing.T, platform *locallambda.Platform, payload []byte) {
	for {
		r, err := platform.Invoke(t.Context(), locallambda.Invocation{Payload: payload})
		if err != nil {
			t.Error(err)
			return
		}
		if r.Outcome == locallambda.Succeeded {
			return
		}
		select {
		case <-time.After(200*time.Millisecond + rand.N(500*time.Millisecond)):
		case <-t.Context().Done():
			return
		}
	}
}

func checkOvertime(t *testing.T, lines []overtimeLine, events int) {
	t.Helper()
	type run struct {
		name  string
		fence int64
	}
	begun, lost := map[run]overtimeLine{}, map[run]bool{}
	excused, completed := map[string]bool{}, map[string]int{} // by event
	renewals := 0
	for _, l := range lines {
		r := run{l.Name, l.Fence}
		switch {
		case l.Begun:
			begun[r] = l
		case l.Lost:
			lost[r] = true
			excused[l.ID] = true
		case l.Renewed:
			renewals++
		case l.Ended:
			completed[l.ID]++
		}
	}
	var holds []history.Hold
	for _, l := range lines {
		r := run{l.Name, l.Fence}
		if l.Ended && !lost[r] {
			holds = append(holds, history.Hold{Name: l.Name, Holder: l.ID, Fence: l.Fence, Start: begun[r].At, End: l.At})
		}
	}
	for _, o := range history.Overlaps(holds) {
		t.Error(o)
	}
	for event, runs := range completed {
		if runs != 1 && !excused[event] {
			t.Errorf("%s ran %d times", event, runs)
		}
	}
	if len(completed) != events {
		t.Errorf("%d events ran, want %d", len(completed), events)
	}
	t.Logf("%d handlers outlived their deadline: %d renewals, %d leases lost", len(holds), renewals, len(lost))
}

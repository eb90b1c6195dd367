//go:build unix

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

const (
	onceNames = 2
	// onceKillsShort is how many processes the short form of TestNeverTwice kills.
	onceKillsShort = 60
	// onceWithin is how soon a process is killed after it is ready, or its work has
	// begun.
	onceWithin = 30 * time.Millisecond
	// mostDeliveries of one event: more than there are in any run.
	mostDeliveries = 500
)

// onceLine is a line of a process that handles one delivery: one of these.
type onceLine struct {
	Ready, Begun bool
	Outcome      string
	Asked        bool // about an interrupted run
}

// ledger is a directory where the work of each event writes.
type ledger string

// note adds a line to the event's list of that kind.
func (l ledger) note(kind, event string) error {
	f, err := os.OpenFile(filepath.Join(string(l), event+"."+kind), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("once\n")
	return errors.Join(err, f.Close())
}

// lines returns how often that was noted.
func (l ledger) lines(kind, event string) (int, error) {
	text, err := os.ReadFile(filepath.Join(string(l), event+"."+kind))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return strings.Count(string(text), "\n"), err
}

// handleOnce is the part of a child that handles one delivery. The first word
// of the event says what OnInterrupted does.
func handleOnce(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	out, files := json.NewEncoder(os.Stdout), ledger(t.Ledger)
	policy, _, _ := strings.Cut(t.Key.Event, "-")
	asked := false
	decide := map[string]func(context.Context, *lock.InterruptedError) (*lock.Completion, error){
		"skip": lock.SkipInterrupted,
		"fail": lock.FailInterrupted,
		"ask": func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
			n, err := files.lines("done", t.Key.Event)
			if err != nil || n == 0 {
				return nil, err
			}
			return &lock.Completion{}, nil
		},
	}[policy]
	o := &lock.Options{Lease: lock.Heartbeat(workerLease), Grace: workerGrace, MaxWait: 5 * time.Second, RememberEvents: rememberedEvents, Logger: discard}
	if decide != nil {
		o.OnInterrupted = func(ctx context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
			asked = true
			return decide(ctx, i)
		}
	}
	l, err := lock.New(store, o)
	if err != nil {
		return err
	}
	_ = out.Encode(onceLine{Ready: true})
	err = l.Do(context.Background(), t.Key, func(ctx context.Context) error {
		if err := files.note("begun", t.Key.Event); err != nil {
			return err
		}
		_ = out.Encode(onceLine{Begun: true})
		if err := delayFor(ctx, time.Duration(rand.IntN(20))*time.Millisecond); err != nil {
			return err
		}
		return errors.Join(files.note("done", t.Key.Event), delayFor(ctx, time.Duration(rand.IntN(20))*time.Millisecond))
	})
	end := onceLine{Outcome: outcomeStore, Asked: asked}
	switch {
	case err == nil:
		end.Outcome = outcomeCompleted
	case errors.Is(err, lock.ErrCompleted):
		end.Outcome = outcomeBefore
	case errors.Is(err, lock.ErrHeld):
		end.Outcome = outcomeHeld
	case errors.As(err, new(*lock.InterruptedError)):
		end.Outcome = "interrupted"
	}
	return out.Encode(end)
}

// TestNeverTwice delivers events, each until it is acknowledged, to processes
// that are killed at random moments (F19). With SkipInterrupted and
// FailInterrupted the work of an event begins at most once; with a question to
// a file that the work writes, each event is written once. Other events and
// mutexes without OnInterrupted take the names over.
func TestNeverTwice(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, b := range backends {
		kills := b.kills
		if testing.Short() {
			kills = min(b.killsShort, 1) * onceKillsShort
		}
		if kills == 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			o := &once{t: t, place: b.start(t), ledger: ledger(t.TempDir()), kills: kills, random: rand.New(rand.NewPCG(testSeed(t), 3)), counts: map[string]int{}}
			var all sync.WaitGroup
			for name := range onceNames {
				for _, policy := range []string{"skip", "fail", "ask", "none"} {
					all.Go(func() { o.source(fmt.Sprint("once/", name), policy) })
				}
			}
			all.Wait()
			t.Log(o.counts)
			for _, policy := range []string{"skip", "fail", "ask"} {
				if o.counts[policy+" asked"] == 0 {
					t.Errorf("no event with %s was interrupted", policy)
				}
			}
		})
	}
}

// once is the source of the events, and knows what became of them.
type once struct {
	t      *testing.T
	place  place
	ledger ledger

	mu     sync.Mutex
	random *rand.Rand
	kills  int // that are left
	counts map[string]int
}

// source delivers events of one name and policy, one after the other, for as
// long as processes are killed. With none, every second one is a mutex.
func (o *once) source(name, policy string) {
	for i := 0; o.left() > 0; i++ {
		key := lock.Key{Name: name, Event: fmt.Sprintf("%s-%s-%d", policy, strings.ReplaceAll(name, "/", "-"), i)}
		if policy == "none" && i%2 == 1 {
			key.Event = ""
		}
		deliveries, outcome := 0, ""
		for ; outcome != outcomeCompleted && outcome != outcomeBefore && outcome != "interrupted" && deliveries < mostDeliveries && !o.t.Failed(); deliveries++ {
			outcome = o.deliver(key, policy)
		}
		if key.Event != "" {
			o.check(key.Event, policy, outcome)
		}
	}
}

func (o *once) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kills
}

// check checks an event that is over.
func (o *once) check(event, policy, outcome string) {
	begun, err := o.ledger.lines("begun", event)
	done, err2 := o.ledger.lines("done", event)
	if err := errors.Join(err, err2); err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[fmt.Sprintf("%s, begun %d times", policy, begun)]++
	over := outcome == outcomeCompleted || outcome == outcomeBefore || outcome == "interrupted" && policy == "fail"
	switch {
	case !over:
	case (policy == "skip" || policy == "fail") && begun <= 1:
		return
	case policy == "ask" && done == 1, policy == "none" && done > 0:
		return
	}
	o.t.Errorf("%s ended with %q, had begun %d times and was written %d times", event, outcome, begun, done)
}

// deliver starts a process for a delivery, and perhaps kills it: some time
// after it is ready, or after its work has begun. It returns the outcome, which
// is empty if the process was killed.
func (o *once) deliver(key lock.Key, policy string) string {
	o.mu.Lock()
	at, delay := o.random.IntN(5), time.Duration(o.random.Int64N(int64(onceWithin)))
	if o.kills == 0 {
		at = 0
	}
	o.mu.Unlock()
	c := startChild(o.t, "once", task{Place: o.place, Who: key.Event, Key: key, Ledger: string(o.ledger)})
	defer func() {
		_ = c.stdin.Close()
		_ = c.cmd.Wait() // it may have been killed
	}()
	for {
		var l onceLine
		if c.lines.Decode(&l) != nil {
			return ""
		}
		if l.Ready && at >= 3 || l.Begun && (at == 1 || at == 2) {
			time.AfterFunc(delay, func() {
				if c.cmd.Process.Kill() == nil {
					o.mu.Lock()
					defer o.mu.Unlock()
					o.kills = max(0, o.kills-1)
					o.counts["killed"]++
				}
			})
		}
		if l.Outcome != "" {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.counts[policy+" "+l.Outcome]++
			if l.Asked {
				o.counts[policy+" asked"]++
			}
			return l.Outcome
		}
	}
}

package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// order is the event of handlers that are not for an AWS service.
type order struct {
	ID   string `json:"id"`
	Item int64  `json:"item"`
}

// byOrder gives all orders one lock, under which each is its own event.
func byOrder(_ context.Context, o order) (lock.Key, error) {
	return lock.Key{Name: "orders", Event: o.ID}, nil
}

// lockPerOrder gives every order its own lock.
func lockPerOrder(_ context.Context, o order) (lock.Key, error) {
	return lock.Key{Name: o.ID, Event: o.ID}, nil
}

var noLogger = slog.New(slog.DiscardHandler)

var noLog = middleware.Logger(noLogger)

// fixture is a store that can be made to fail, and what was observed of it.
type fixture struct {
	faulty   *fault.Scripted
	mu       sync.Mutex
	observed []sighting
}

type sighting struct {
	lock.Observation
	at time.Time
}

// engine is the option for what others do not change.
var engine = middleware.Engine

func fixedLease(d time.Duration) middleware.Option {
	return engine(func(o *lock.Options) { o.Lease = lock.FixedLease(d) })
}

// unlawful has what any fixture observed that disagreed with itself. TestMain
// fails for it, whatever the test looks at.
var unlawful sync.Map

func newFixture() *fixture { return &fixture{faulty: fault.NewScripted(memstore.New())} }

// options returns the options for a wrapper that uses the fixture and writes
// no log. Those of more count last.
func (r *fixture) options(more ...middleware.Option) []middleware.Option {
	observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
		if err := lawful.Check(o); err != nil {
			unlawful.Store(err.Error(), true)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.observed = append(r.observed, sighting{o, time.Now()})
	})
	return append([]middleware.Option{middleware.Store(r.faulty), noLog, observe}, more...)
}

// acquireElsewhere acquires a lock as another function would, with a lease of
// 5 s, and unseen by the fixture.
func (r *fixture) acquireElsewhere(t *testing.T, k lock.Key) *lock.Lock {
	t.Helper()
	locker := expect.Value(lock.New(r.faulty.Store, &lock.Options{Lease: lock.FixedLease(5 * time.Second), Logger: slog.New(slog.DiscardHandler)}))(t)
	l := expect.Value(locker.Acquire(t.Context(), k))(t)
	return l
}

// outcomes returns what was observed since the last want.
func (r *fixture) outcomes() []lock.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []lock.Outcome
	for _, s := range r.observed {
		all = append(all, s.Outcome)
	}
	return all
}

// of returns the observations of one outcome since the last want.
func (r *fixture) of(outcome lock.Outcome) []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.observed), func(s sighting) bool { return s.Outcome != outcome })
}

func (r *fixture) count(outcome lock.Outcome) int { return len(r.of(outcome)) }

// want checks what was observed since the last want.
func (r *fixture) want(t *testing.T, outcomes ...lock.Outcome) {
	t.Helper()
	if got := r.outcomes(); !slices.Equal(got, outcomes) {
		t.Errorf("observed %q, want %q", got, outcomes)
	}
	r.forget()
}

func (r *fixture) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observed = nil
}

// warnings is a log of warnings and errors, safe for concurrent use.
type warnings struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *warnings) option() middleware.Option {
	return middleware.Logger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

func (w *warnings) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(w.b.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// wantPanic checks that use panics with one line that says all of within.
func wantPanic(t *testing.T, use func(), within ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		p := recover()
		text, ok := p.(string)
		if !ok || !strings.HasPrefix(text, "lambdalock: ") || strings.Contains(text, "\n") {
			t.Errorf("panicked with %v, want one line of text", p)
		}
		for _, part := range within {
			if !strings.Contains(text, part) {
				t.Errorf("panicked with %q, want %q in it", fmt.Sprint(p), part)
			}
		}
	}()
	use()
}

// Package invocation holds what packages lock and middleware must both know
// about an invocation and callers need not: until when work may begin, and
// which events came together.
package invocation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
)

const (
	// MinRun is the least time that work must have between acquire and reserve.
	MinRun = 100 * time.Millisecond
	// TimeToAnswer is left before the deadline for the runtime to send the result.
	TimeToAnswer = 100 * time.Millisecond
	// LongestOnDemand is the longest timeout of a Lambda function.
	// https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
	LongestOnDemand = 15 * time.Minute
	// LongestDeadline is the longest on managed instances, for asynchronous
	// invocations and event source mappings. A deadline further away is not the
	// platform's. See the same page.
	LongestDeadline = 90 * time.Minute

	maxReserve = time.Second
)

// ErrUnbegun makes lock.Lock.Fail release a lock whose work has not begun, such
// as that of a command that cannot be started: nothing cools down then.
var ErrUnbegun = errors.New("the work has not begun")

// Believable returns ctx without its deadline if that lies so far in the past
// that no invocation can have it. A deadline in 1970, for example, is how a
// missing header reads. Every other ctx is returned unchanged.
func Believable(ctx context.Context) context.Context {
	if d, ok := ctx.Deadline(); ok && d.Sub(clock.From(ctx).Now()) < -LongestDeadline {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Reserve returns how long before the deadline work must end: chosen if that is
// not zero, else the smaller of 1 s and a tenth of the remaining time.
func Reserve(chosen, remaining time.Duration) time.Duration {
	if chosen > 0 {
		return chosen
	}
	return min(maxReserve, max(remaining, 0)/10)
}

// LastStart returns the latest time at which work under ctx's deadline can
// still start and have [MinRun] before the reserve. It reports false if ctx has
// no believable deadline.
func LastStart(ctx context.Context, reserve time.Duration) (time.Time, bool) {
	deadline, ok := Believable(ctx).Deadline()
	if !ok {
		return time.Time{}, false
	}
	return deadline.Add(-MinRun - Reserve(reserve, deadline.Sub(clock.From(ctx).Now()))), true
}

// Work is what the lock that a context carries tells about the work under it.
type Work struct {
	// Deadline is the latest deadline of the lock and those around it, at which the
	// platform ends work that ignores its context. Zero: none.
	Deadline time.Time
	// Reserve is how long before the lock's own deadline its work must end. Zero:
	// the lock has no deadline.
	Reserve time.Duration
	// Repeats is whether the work may have to run again once it has succeeded: it
	// is that of Latest, or inside it.
	Repeats bool
}

// Worker is what each driver.Lock of package lock also is.
type Worker interface{ Work() Work }

// Batch is the events that came together in one delivery, such as the records
// of a batch, by the lock name under which they run. The delivery may come
// again as a whole, so none of its completed events should be forgotten for
// lack of room while another event of the batch completes.
type Batch struct {
	// Claims is how many locks the delivery may claim or release at the same time.
	// A store may send that many requests together, and need not wait for more.
	// Zero: unknown.
	Claims int
	// LeastHold is lock.Options.HoldAtLeast of the delivery's locks.
	LeastHold time.Duration
	// Renews says that the delivery's leases are renewed from their beginning on.
	Renews bool
	// Coalesces says that an event which finds its lock held need not have it: the
	// holder runs once more for it, unless the lock is in its cooldown.
	Coalesces bool

	events map[string][]string

	mu     sync.Mutex
	stored map[string]map[string]bool
}

// Add adds an event of name.
func (b *Batch) Add(name, event string) {
	if b.events == nil {
		b.events = map[string][]string{}
	}
	b.events[name] = append(b.events[name], event)
}

// Stored returns the set of the events of name, each spelled as spell does. The
// first spelling of a name's events is kept.
func (b *Batch) Stored(name string, spell func(string) string) map[string]bool {
	if b == nil || len(b.events[name]) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stored == nil {
		b.stored = map[string]map[string]bool{}
	}
	if b.stored[name] == nil {
		set := make(map[string]bool, len(b.events[name]))
		for _, event := range b.events[name] {
			set[spell(event)] = true
		}
		b.stored[name] = set
	}
	return b.stored[name]
}

type batchKey struct{}

// WithBatch returns a context that carries b to every lock acquired under it.
// The context has ctx's deadline if that is believable.
func WithBatch(ctx context.Context, b *Batch) context.Context {
	return context.WithValue(Believable(ctx), batchKey{}, b)
}

// BatchOf returns the batch that ctx carries, or nil.
func BatchOf(ctx context.Context) *Batch {
	b, _ := ctx.Value(batchKey{}).(*Batch)
	return b
}

type rememberKey struct{}

// WithRemember returns a context for work without the lock that it asked for,
// which would have remembered its event for d. The locks inside remember theirs
// as long, because both are for what one source delivers.
func WithRemember(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, rememberKey{}, max(d, RememberOf(ctx)))
}

// RememberOf returns what WithRemember was given, the longest if there are
// several, or zero.
func RememberOf(ctx context.Context) time.Duration {
	d, _ := ctx.Value(rememberKey{}).(time.Duration)
	return d
}

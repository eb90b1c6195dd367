package lock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultGrace    = 2 * time.Second
	DefaultRemember = 24 * time.Hour
	DefaultLease    = 30 * time.Second // of a heartbeat that was not asked for
)

const (
	// minRun is the least time that work must have between acquire and reserve.
	minRun = 100 * time.Millisecond
	// longestDeadline is the longest a Lambda function may run; a deadline
	// further away is not the platform's.
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	longestDeadline = 15 * time.Minute
	attemptTimeout  = time.Second
	maxBudget       = 2 * time.Second
	maxReserve      = time.Second
	// timeToAnswer is left before the deadline for the runtime to send the result.
	timeToAnswer = 100 * time.Millisecond
	// shortestWork is what Grace must leave of a lease: one request may take that long.
	shortestWork = time.Second
	// claimPatience is how often a claim is turned away for the store's load before it
	// gives up.
	claimPatience = 2
	// keepRow outlives any clock skew, so that a fence that starts again from
	// the clock starts above the old one.
	keepRow = 24 * time.Hour
)

// Options configure a [Locker]. The zero value, like a nil pointer, is a
// 30-second lease with a heartbeat.
type Options struct {
	// Namespace separates the names of users of one store. At most 256 bytes;
	// empty is a namespace like any other.
	Namespace string
	// Lease is a fixed lease that is not renewed: work that is not finished
	// shortly before its end sees its context end with ErrLost. Zero: see
	// Heartbeat and KilledAtDeadline.
	Lease time.Duration
	// Heartbeat is a lease that is renewed every third of it, or sooner if Grace
	// takes up most of it, while the work runs. Zero, with Lease zero too: 30 s,
	// unless KilledAtDeadline applies.
	Heartbeat time.Duration
	// KilledAtDeadline says that the platform kills this process at the
	// deadline of the context, as classic Lambda does: the lease then lasts to
	// that deadline plus Grace and needs no renewing. Where a context has no
	// deadline, or one more than 15 minutes away, the heartbeat is used.
	KilledAtDeadline bool
	// Grace is how much clocks may differ and a kill may be late. Zero: 2 s.
	// Lease and Heartbeat are treated as lost that long before they end, and must be
	// at least 1 s longer.
	Grace time.Duration
	// Reserve is how long before the context's deadline the work's context
	// ends, so that the release fits in. Zero: the smaller of 1 s and 10 % of
	// the remaining time.
	Reserve time.Duration
	// Wait is how long to wait for a name that is held. Zero: not at all.
	Wait time.Duration
	// Remember is how long a completed Event is refused. Zero: 24 h; at most 366
	// days. It should exceed the time after which the source can still redeliver.
	Remember time.Duration
	// RememberAtLeast is how many completed Events of a name are remembered in any
	// case, each for as long as Remember says. Beyond them, the ones completed first
	// are forgotten as soon as the row would cost more than one write unit, which is 1 KB
	// and has room for ten to twenty events. A [Forgotten] observation tells. Zero: 8,
	// which fit.
	RememberAtLeast int
	// CompleteWithin is how long [Lock.Complete] may try to record an event, for work
	// whose result somebody is waiting for. Zero: until shortly before the deadline.
	CompleteWithin time.Duration
	// Holder describes this process to those who find the name held. Nil: host
	// and program name.
	Holder func(context.Context) string
	// Logger gets one line per outcome. Nil: slog.Default().
	Logger *slog.Logger
	// LogKeys adds names as they are to the log lines; otherwise only their
	// digest is logged.
	LogKeys bool
	// Observe is called with every outcome, on the goroutine that caused it, and
	// must be quick and safe for concurrent use. Nil: nobody is told.
	Observe func(context.Context, Observation)
}

// Locker acquires locks in one store. It is safe for concurrent use.
type Locker struct {
	store     Store
	opts      Options
	prefix    string
	clock     func() time.Time // time.Now, but for tests
	lastStamp atomic.Int64     // microseconds; see nextStamp
	// pressed is how many settlements the store has turned away for its load, and that
	// go on trying.
	pressed atomic.Int32
}

// New makes a Locker. opts may be nil. The error is a [*ConfigError].
func New(store Store, opts *Options) (*Locker, error) {
	l := &Locker{store: store, clock: time.Now}
	if opts != nil {
		l.opts = *opts
	}
	if store == nil {
		return nil, &ConfigError{Reason: "the store is nil"}
	}
	if err := l.opts.fill(); err != nil {
		return nil, err
	}
	var err error
	l.prefix, err = namespacePrefix(l.opts.Namespace)
	return l, err
}

func (o *Options) fill() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Lease", o.Lease}, {"Heartbeat", o.Heartbeat}, {"Grace", o.Grace}, {"Reserve", o.Reserve}, {"Wait", o.Wait}, {"Remember", o.Remember}, {"CompleteWithin", o.CompleteWithin}} {
		if d.value < 0 {
			return &ConfigError{Reason: fmt.Sprintf("%s is negative (%v)", d.name, d.value)}
		}
	}
	if o.Lease > 0 && o.Heartbeat > 0 {
		return &ConfigError{Reason: fmt.Sprintf("both Lease(%v) and Heartbeat(%v) are set: a heartbeat is itself a lease, renewed every third of it; set only one of them", o.Lease, o.Heartbeat)}
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if lease := cmp.Or(max(o.Lease, o.Heartbeat), DefaultLease); lease < o.Grace+shortestWork {
		return &ConfigError{Reason: fmt.Sprintf("a lease of %v is too short for a Grace of %v, by which clocks may differ: the work would have to end that long before its lease; use a lease of at least %v", lease, o.Grace, o.Grace+shortestWork)}
	}
	if o.Remember > longestRemember {
		return &ConfigError{Reason: fmt.Sprintf("Remember is %v; use at most %v (366 days)", o.Remember, longestRemember)}
	}
	if o.RememberAtLeast < 0 {
		return &ConfigError{Reason: fmt.Sprintf("RememberAtLeast is negative (%d)", o.RememberAtLeast)}
	}
	if o.Remember == 0 {
		o.Remember = DefaultRemember
	}
	if o.RememberAtLeast == 0 {
		o.RememberAtLeast = defaultRememberAtLeast
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Holder == nil {
		host, _ := os.Hostname() // an unnamed host is still described by the program
		self := fmt.Sprintf("%s on %s pid %d", filepath.Base(os.Args[0]), host, os.Getpid())
		o.Holder = func(context.Context) string { return self }
	}
	return nil
}

// wall is the time that is stored and compared with what is stored. It has no monotonic
// part, which would stand still while an environment is frozen. What is limited within
// one invocation is measured by time.Now.
func (l *Locker) wall() time.Time { return l.clock().Round(0) }

// Check opens the connection to the store; see [Store].
func (l *Locker) Check(ctx context.Context) error {
	err := l.store.Check(ctx)
	if err == nil {
		return nil
	}
	return storeError("check", 1, err)
}

// Do runs work while it owns key, and records the event as completed if work
// returns nil. Work's error is returned as it is. If the lock cannot be had,
// work does not run and the error says why. If work succeeded but that could not
// be recorded, the error is Complete's. The context given to work carries
// the lease and ends when it is lost.
func (l *Locker) Do(ctx context.Context, key Key, work func(context.Context) error) error {
	lk, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = lk.Release() }() // does nothing after Complete, and reports its own errors
	if err := work(lk.Context()); err != nil {
		return err
	}
	return lk.Complete(nil)
}

// keepHeld is until when the row of a lease is kept, if its owner dies. What the row
// remembers is known only to whoever releases it, and others may remember longer than
// this Locker: so it is as long as anything may be remembered.
func keepHeld(until time.Time) time.Time { return until.Add(longestRemember) }

// shedClaim: a claim that the store turns away for its load gives up soon, because its
// source delivers the event again. A settlement has no second chance, and goes first.
func (l *Locker) shedClaim(times int) bool {
	return times >= claimPatience || l.pressed.Load() > 0
}

func (l *Locker) reserve(remaining time.Duration) time.Duration {
	if l.opts.Reserve > 0 {
		return l.opts.Reserve
	}
	return min(maxReserve, remaining/10)
}

// LastStart is until when work may begin that shares the deadline of ctx, by the
// reserve that applies now: what begins later would not have the least time to run.
// False: ctx has no deadline, or one that cannot be believed. It is for callers that
// acquire many locks, one after the other, under one deadline.
func (l *Locker) LastStart(ctx context.Context) (time.Time, bool) {
	deadline, ok := believable(ctx).Deadline()
	if !ok {
		return time.Time{}, false
	}
	return deadline.Add(-minRun - l.reserve(time.Until(deadline))), true
}

// believable is ctx, unless its deadline lies so far in the past that no invocation
// can have it, as one of 1970 does, which is what a missing header may read as. Such
// a context has no deadline.
func believable(ctx context.Context) context.Context {
	if d, ok := ctx.Deadline(); ok && time.Until(d) < -longestDeadline {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// timing is what one acquisition may spend and get.
type timing struct {
	deadline time.Time // of the caller's context; zero: none
	reserve  time.Duration
	budget   time.Duration // of one round of requests to acquire
	lease    time.Duration // zero: to deadline + grace
	margin   time.Duration // how long before the end of lease it counts as lost
	renew    bool
	beat     time.Duration // between renewals
}

func (l *Locker) timing(ctx context.Context, now time.Time) (timing, error) {
	t := timing{budget: maxBudget, lease: l.opts.Lease, margin: l.opts.Grace}
	deadline, ok := ctx.Deadline()
	var remaining time.Duration
	if ok {
		remaining = deadline.Sub(now)
		t.deadline = deadline
		t.budget = min(maxBudget, remaining/10)
		t.reserve = l.reserve(remaining)
		if need := minRun + t.reserve; remaining < need {
			return t, &DeadlineError{Left: remaining, Need: need}
		}
	}
	if t.lease == 0 && !(ok && l.opts.KilledAtDeadline && l.opts.Heartbeat == 0 && remaining <= longestDeadline) {
		t.renew = true
		t.lease = cmp.Or(l.opts.Heartbeat, DefaultLease)
		t.beat = min(t.lease/3, (t.lease-t.margin)/2)
	}
	return t, nil
}

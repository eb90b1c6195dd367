package lock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// Defaults of [Options], whose fields give the reasons.
const (
	DefaultGrace    = 2 * time.Second
	DefaultRemember = 24 * time.Hour
	DefaultLease    = 30 * time.Second // with a heartbeat
)

const (
	// defaultRememberEvents is how many of the longest events fit into one write
	// unit beside a stored name of 140 bytes.
	defaultRememberEvents = 8
	// longestRemember bounds Remember, and with it how long the row of a dead
	// holder is kept.
	longestRemember = 366 * 24 * time.Hour
)

// Options configures a [Locker]. The zero value and a nil pointer mean the
// defaults.
type Options struct {
	// Namespace separates the names of users that share a store. At most 256
	// bytes. Empty is a namespace like any other.
	Namespace string
	// Lease says how long a lease lasts and whether it is renewed. Zero: a
	// heartbeat of 30 s. It is renewed every 10 s, so a failed renewal can be
	// repeated for 18 s; and after a crash the name stays held for no longer than
	// 30 s.
	Lease LeaseMode
	// Grace is how much clocks may differ. A heartbeat or fixed lease counts as
	// lost that long before it ends, and must be at least 1 s longer. Zero: 2 s,
	// far more than synchronised clocks differ, and a short delay after a crash.
	Grace time.Duration
	// Reserve is how long before the context's deadline the work's context ends, so
	// that the release fits in. Zero: the smaller of 1 s, in which a release can be
	// repeated if its connection breaks, and a tenth of the remaining time.
	Reserve time.Duration
	// MaxWait is how long to wait for a name that is held. Zero: not at all,
	// because Lambda bills the wait, and every source except a synchronous caller
	// delivers the event again. Nobody waits for a cooldown that lasts longer. If
	// the store is a [driver.Line], waiters are served roughly first come, first
	// served; this is not guaranteed.
	MaxWait time.Duration
	// HoldAtLeast keeps a name held for at least that long from when it was
	// acquired, whether the work succeeds or fails, and without a further request.
	// After [Locker.AcquireOneOf], each slot stays held. A holder that dies, loses
	// its lease or cannot end it leaves the name held until its lease ends. On
	// DynamoDB the time differs by as much as the clocks of the holder and of the
	// next claimant do. At most 366 days. Zero: the end of the work frees the name.
	HoldAtLeast time.Duration
	// Remember is how long a completed Event is refused, at most 366 days, unless
	// more events of its name than RememberEvents came after it. A completed Order
	// is refused for at least as long after the last use of the name, until its row
	// is deleted. It should be longer than the source can take to deliver the event
	// again. Zero: 24 h, longer than Lambda repeats an asynchronous invocation and
	// as long as a stream keeps its records by default; or, if that is longer, as
	// long as a lock around this one remembers, because both are for what one
	// source delivers. SQS and Kafka keep messages longer: package middleware has
	// defaults for them.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
	// https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html
	Remember time.Duration
	// RememberEvents is how many completed Events of a name are remembered whatever
	// the row costs, each for as long as Remember says. Those completed before them
	// are forgotten once the row would cost more than one write unit of 1 KB, which
	// has room for a dozen UUIDs, or for three dozen events of six digits;
	// [OutcomeForgotten] reports it. A row of 350 KB, with 5,000 events or more,
	// takes no more. Zero: 8.
	RememberEvents int
	// OnInterrupted decides about an event that was interrupted: an earlier run of
	// it began, and nothing is known of its end, because the process died, the
	// lease was lost, the context of the work had ended when it failed, or no
	// request to end the lock was applied. It is called under the lock, with the
	// context of the work. If it returns a Completion, the event is completed with
	// that and the work does not run; if an error, that is what Acquire returns (if
	// it is the answer of another lock, only its text), and the event stays
	// interrupted; otherwise the work runs. [SkipInterrupted] and [FailInterrupted]
	// are such functions.
	//
	// Any other error of the work, or panic, is a known end, unless the error wraps
	// [ErrUnknown]. So is work that never began, if the store could be told. A name
	// remembers the last 64 such events, each for as long as Remember says after
	// the end of its lease. With OnInterrupted every key needs an Event (of several
	// keys, one is enough), and the store must be a [driver.Coalescer]; Latest and
	// AcquireOneOf do not use it. Nil: the work runs again.
	OnInterrupted func(ctx context.Context, i *InterruptedError) (*Completion, error)
	// CompleteWithin limits how long [Lock.Complete] tries, for work whose caller
	// waits for the result. Zero: until shortly before the deadline, because only
	// the holder can complete the event.
	CompleteWithin time.Duration
	// Holder describes this process to others who find the name held, in up to 512
	// bytes; what is longer is cut. Nil or empty: program, host and process id.
	Holder func(context.Context) string
	// Logger gets one line per outcome. Nil: slog.Default(), or, in a Lambda
	// function with log format JSON, one that writes JSON if no default is set.
	Logger *slog.Logger
	// LogKeys adds names and events to the log lines. Otherwise only the digest
	// of a name is logged.
	LogKeys bool
	// Observe is called with every outcome, on the goroutine that caused it. It
	// must be quick and safe for concurrent use: the end of a lock waits for up to
	// 250 ms for an observer that its heartbeat has called, even if that observer
	// ends it. Nil: outcomes are only logged.
	Observe func(context.Context, Observation)
}

// Completion says what is kept of an event beside that it is completed.
type Completion struct {
	// Result is what a duplicate gets in its [*CompletedError], while the event is
	// the last completed one of its name. Nil: nothing.
	Result []byte
	// Remember overrides Options.Remember for the Event, up to 366 days. Zero: it
	// does not. It has no say about the Order, which every use of the name keeps
	// for as long as Options.Remember says.
	Remember time.Duration
}

// withDefaults returns the options with every zero value replaced, or a
// [*ConfigError].
func (o Options) withDefaults() (Options, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if o.RememberEvents == 0 {
		o.RememberEvents = defaultRememberEvents
	}
	if o.Logger == nil {
		o.Logger = defaultlog.Logger()
	}
	o.Holder = described(o.Holder)
	return o, nil
}

// longestHolder leaves room for events in a row that costs one write unit.
const longestHolder = 512

// described returns a function like holder whose result is neither empty, which
// would hide that a dead holder was taken over, nor too long for a row.
func described(holder func(context.Context) string) func(context.Context) string {
	self := invocation.Process()
	return func(ctx context.Context) string {
		text := ""
		if holder != nil {
			text = holder(ctx)
		}
		return cmp.Or(strings.ToValidUTF8(text[:min(len(text), longestHolder)], ""), self)
	}
}

func (o *Options) check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
		most  time.Duration
	}{
		{"Grace", o.Grace, math.MaxInt64},
		{"Reserve", o.Reserve, math.MaxInt64},
		{"MaxWait", o.MaxWait, math.MaxInt64},
		{"CompleteWithin", o.CompleteWithin, math.MaxInt64},
		{"HoldAtLeast", o.HoldAtLeast, longestRemember},
		{"Remember", o.Remember, longestRemember},
	} {
		switch {
		case d.value < 0:
			return &ConfigError{Reason: fmt.Sprintf("%s is negative (%v)", d.name, d.value)}
		case d.value > d.most:
			return &ConfigError{Reason: fmt.Sprintf("%s is %v; use at most %v (366 days)", d.name, d.value, d.most)}
		}
	}
	if err := o.Lease.check(o.Grace); err != nil {
		return err
	}
	if o.RememberEvents < 0 {
		return &ConfigError{Reason: fmt.Sprintf("RememberEvents is negative (%d)", o.RememberEvents)}
	}
	return nil
}

package middleware

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Option changes a default of [WithLock], or of [EachSQSMessage] and its
// siblings. If an option other than [Observe], [Metrics] and [Holder] is given
// twice, the last one counts. An option that makes no sense panics when the
// handler is wrapped, with one line that says what to change.
type Option func(*settings)

// settings are what the options of one wrapper ask for.
type settings struct {
	config
	each eachSettings
}

// newSettings returns the settings for events, or records, of type event. It
// panics at the first mistake, so that the function fails when it starts and
// not when an event arrives.
func newSettings(event reflect.Type, opts []Option) *settings {
	s := &settings{config: newConfig()}
	s.apply(opts)
	s.check(event)
	return s
}

func (s *settings) apply(opts []Option) {
	for i, o := range opts {
		if o == nil {
			refuse("option %d is nil: leave it out", i+1)
		}
		o(s)
	}
}

// Group returns one option that stands for all of opts, for packages that offer
// several under one name.
func Group(opts ...Option) Option {
	return func(o *settings) { o.apply(opts) }
}

// Store keeps the locks in s, which must not be nil. Default: [DefaultStore].
// Inside Lambda a warning is logged for a memstore.Store, because locks in the
// memory of one execution environment protect nothing from the others. During
// INIT a driver.Checker is checked, for at most 5 s.
func Store(s driver.Store) Option {
	return func(o *settings) {
		if isNil(s) {
			refuse("Store(nil): pass a store, or leave the option out to use the DynamoDB table named in LOCK_TABLE_NAME")
		}
		o.store = s
	}
}

// Namespace separates the lock names of functions that share a table. Default:
// the environment variable LOCK_NAMESPACE, which the CDK construct sets, or the
// name of the Lambda function. Functions with one namespace contend for names;
// then names that are bare values, as those of keyfuncs.ByField, need a
// keyfuncs.Prefix.
//
// A namespace that differs from LOCK_NAMESPACE panics: the construct permits
// the function only the rows of that one.
func Namespace(ns string) Option {
	return func(o *settings) { o.engine.Namespace = ns }
}

// OnHeld says what to do if another invocation holds the lock. Default: [Fail],
// with a *lock.HeldError; over HTTP a response with status 409, also after
// [Wait].
func OnHeld(p HeldPolicy) Option {
	return func(o *settings) {
		if isNil(p) {
			refuse("OnHeld(nil): use Skip, Fail, Wait or Respond")
		}
		o.held, o.onHeld = p.forHeld(), true
		checkDuration("Wait", o.held.wait, time.Millisecond, "5*time.Second")
		o.engine.MaxWait = o.held.wait
	}
}

// OnCompleted says what to do with an event that was already completed, or is
// stale. Default: [Skip]; over HTTP [Replay].
func OnCompleted(p CompletedPolicy) Option {
	return func(o *settings) {
		if isNil(p) {
			refuse("OnCompleted(nil): use Skip, Fail or Replay")
		}
		o.completed = p.forCompleted()
	}
}

// OnInterrupted says what to do with an event of which an earlier run began and
// nothing is known of its end: the function was killed, it lost its lease, its
// completion was not answered, its context had ended when it failed, or it
// returned an error of [Unknown]. Any other error, a panic and a response such
// as one with status 502 are a known end, and the handler runs again. Default:
// [Run].
//
// With [Skip] the event is completed without a run, so the handler runs at most
// once; but if the function died or ran out of time before the handler had its
// effect, the event is lost.
// With [Fail] it fails with a *lock.InterruptedError, as a record of a batch
// for good like one of [Permanent], and stays so until somebody decides with
// the command lambdalock complete or lambdalock forget; over HTTP the answer
// has status 500. [Ask] finds out.
//
// The key needs an Event; of several keys, one does. All functions that share a
// name should choose; what another one interrupts is not kept if it does not.
// OnInterrupted panics beside [FailOpen] and in [Latest], [OnlyLatest] and
// [WithLimit], and needs a store that is a driver.Coalescer. See
// docs/GUIDE.md#never-twice.
func OnInterrupted(p InterruptedPolicy) Option {
	return func(o *settings) {
		if isNil(p) {
			refuse("OnInterrupted(nil): use Run, Ask, AskFor, Fail or Skip")
		}
		o.interrupted = p.forInterrupted()
		o.engine.OnInterrupted = o.interrupted.decide
	}
}

// CompletedIf says which results complete an event. If f returns false, the
// result is returned, but the lock is released and nothing is recorded, so that
// the next delivery runs. T is the handler's result type or an interface that
// it implements, and []byte for a lambda.Handler. f must not read the body of a
// streamed result, which completes the event only if it is also read to its
// end. Default: every result but one that asks for the event again, as a
// partial answer with failures does; over HTTP see
// docs/GUIDE.md#repeatable-answers.
func CompletedIf[T any](f func(result T) bool) Option {
	if f == nil {
		refuse("CompletedIf(nil): pass a function, or leave the option out")
	}
	return func(o *settings) {
		o.completedIfTakes = reflect.TypeFor[T]()
		o.completedIf = func(result any) bool { return f(typed[T](result)) }
	}
}

// OnError turns an error that says why the handler did not run into a result: a
// *lock.HeldError, *lock.CompletedError, *lock.InterruptedError,
// *lock.PayloadMismatchError, *lock.NoKeyError, *lock.StoreError,
// *lock.DeadlineError, *lock.LostError or *lock.ConfigError. T must be
// assignable to the handler's result type; for a lambda.Handler, it is encoded
// as JSON unless it is bytes. Default: none.
//
// If f returns the error it was given, that is answered as without OnError; if
// it returns another one, the invocation fails with that. f is called only
// where the invocation would fail, or over HTTP answer with status 409, 422 or
// 400, so not for [Skip], OnHeld([Respond]) or a replayed result. Of its
// results for an event of a queue or a stream that is not completed, only a
// partial answer with failures counts, because any other would acknowledge the
// event: the invocation fails with the error given to f.
func OnError[T any](f func(ctx context.Context, err error) (T, error)) Option {
	if f == nil {
		refuse("OnError(nil): pass a function, or leave the option out")
	}
	return func(o *settings) {
		o.onErrorGives = reflect.TypeFor[T]()
		o.onError = func(ctx context.Context, err error) (any, error) { return f(ctx, err) }
	}
}

// HoldAtLeast keeps the name held until d after the lock was acquired, whether
// the handler succeeds or fails: for at most one run of each name in d, or for
// schedules that begin on several hosts, with a d that is shorter than their
// period by more than their times vary. It takes no further request. An event
// that comes meanwhile meets a *lock.HeldError with Cooldown, and [OnHeld] says
// what becomes of it. A further run of [Latest] does not wait for d, and if
// the process dies, the name is free when its lease ends. At least 1 ms, at
// most 366 days. Default, and zero: the name is free when the handler ends.
func HoldAtLeast(d time.Duration) Option {
	return func(o *settings) {
		checkDuration("HoldAtLeast", d, time.Millisecond, "30*time.Second")
		o.engine.HoldAtLeast = d
	}
}

// Remember sets how long a completed event is remembered, so that its
// duplicates are skipped: at least 1 s, at most 366 days. It should be longer
// than the source can take to deliver the event again. Default, and zero: 4
// days for SQS and 7 days for Kafka, which keep messages that long by default;
// 24 h otherwise, longer than Lambda repeats an asynchronous invocation and as
// long as a stream keeps its records by default, or as long as the wrapper
// around this one if that is longer. Set it if the source keeps them longer, or
// if the handler takes events of SQS or Kafka as a type of your own, which does
// not tell the source.
//
// Of the events of one Name, only the 8 that were completed last are certain to
// be remembered for so long. If more of them may come before a duplicate, raise
// RememberEvents with [Engine], or give each event a Name of its own, as
// keyfuncs.Once does. Events with an Order have no such limit, unless they come
// again with another one, as a redriven message of a FIFO queue does.
//
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
// https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html
func Remember(d time.Duration) Option {
	return func(o *settings) {
		checkDuration("Remember", d, time.Second, "24*time.Hour") // every source can deliver an event again later than that
		o.engine.Remember = d
	}
}

// RememberFor overrides [Remember] by the result that the handler returned, up
// to 366 days. If f returns zero or less, the result is not kept, for example
// because it has a secret: the event is remembered as Remember says, and a
// duplicate gets no result. The same holds for a stream behind a result of type
// any. A result that is kept stays in the row after that time, until the name
// is used again or the row is deleted. T is as for [CompletedIf]. Default:
// every result, as Remember says.
func RememberFor[T any](f func(result T) time.Duration) Option {
	if f == nil {
		refuse("RememberFor(nil): pass a function, or leave the option out")
	}
	return func(o *settings) {
		o.rememberForTakes = reflect.TypeFor[T]()
		o.rememberFor = func(result any) time.Duration { return f(typed[T](result)) }
	}
}

// Engine lets f change what the options above do not, such as the Lease, the
// Grace, the Reserve, CompleteWithin and RememberEvents of package lock:
//
//	middleware.Engine(func(o *lock.Options) { o.Reserve = 3 * time.Second })
//
// f is called once, when the handler is wrapped, with what the options before
// it have set. A handler whose types show that it answers over HTTP has a
// CompleteWithin of 5 s: long enough for five attempts of 1 s, and API Gateway
// gives up after 29 or 30 s by default.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
func Engine(f func(*lock.Options)) Option {
	return func(o *settings) {
		if f == nil {
			refuse("Engine(nil): pass a function, or leave the option out")
		}
		f(&o.engine)
		checkDuration("Reserve", o.engine.Reserve, time.Millisecond, "500*time.Millisecond")
		checkDuration("CompleteWithin", o.engine.CompleteWithin, time.Millisecond, "5*time.Second")
	}
}

// Heartbeat takes a lease of at least 3 s that is renewed while the handler
// runs: after each third of its length, or sooner if it is shorter than 6 s. A
// short lease ends soon after a crash, at the price of more writes. Default,
// and zero: in an on-demand function a lease that lasts to the deadline plus 2
// s and is renewed only if the handler goes on; elsewhere one of 30 s.
func Heartbeat(lease time.Duration) Option {
	return func(o *settings) {
		checkDuration("Heartbeat", lease, time.Millisecond, "20*time.Second")
		o.engine.Lease = lock.Heartbeat(lease)
	}
}

// FailOpen runs the handler without a lock if the store does not answer: there
// is no connection, no answer within the time for an acquire, or a status of
// 500 and above. Default: the invocation fails with a *lock.StoreError, because
// an event that runs unprotected may run twice.
//
// The invocation still fails if the store refuses, such as a table that does
// not exist or an action that is denied, and if the store cannot be opened:
// otherwise a mistake in the deployment would switch the locks off for good.
// Every claim is first tried for up to 2 s, or a tenth of the time left, also
// in a batch: 100 records, 16 at a time, take up to 14 s more.
//
// FailOpen excludes [Latest] and [OnlyLatest]. lock.FromContext tells the
// handler whether it has a lease; without one, dynamostore.Transact fails.
func FailOpen() Option {
	return func(o *settings) { o.failOpen = true }
}

// Logger gets one line per outcome: successes at level debug, skipped and held
// events at info, the rest as a warning or an error. Default, and nil:
// slog.Default() or, if the program sets none and the function's log format is
// JSON, one that writes JSON with the level that Lambda filters by.
func Logger(l *slog.Logger) Option {
	return func(o *settings) { o.engine.Logger = l }
}

// LogKeys adds the name and the event of the key to the log lines. Default:
// only a digest of the name, because a key may hold personal data.
func LogKeys() Option {
	return func(o *settings) { o.engine.LogKeys = true }
}

// Observe calls f with every outcome, for metrics. If Observe is given several
// times, every observer is called, in that order. f must be quick and safe for
// concurrent use. Default, and nil: none. If f panics, so does the invocation,
// after the other observers were called and the lock was released; in a batch
// the record fails with a [*PanicError].
func Observe(f func(context.Context, lock.Observation)) Option {
	return func(o *settings) { o.engine.Observe = both(o.engine.Observe, f) }
}

// Metrics calls f in every invocation, also if the handler fails or panics:
// after the last lock has ended and before the answer, or at the end of a
// streamed response. It also calls f with what there is so far when a lock was
// taken over or lost, an earlier run was interrupted, or a handler runs without
// a lock: the process may die before the end, as the one before did. Then later
// totals have the rest. If Metrics is given several times, every f is called,
// in that order. f must be quick and safe for concurrent use; it may be called
// after the deadline. If it panics, so does the invocation. Default, and nil:
// none.
//
// The outcomes of a wrapper inside another one count in the totals of the outer
// one, if that has Metrics: then the f of the inner one is not called. Those of
// a lock.Locker of your own do not count. What was not told when the process
// dies is lost.
func Metrics(f func(context.Context, Totals)) Option {
	return func(o *settings) { o.metrics = both(o.metrics, f) }
}

// Holder changes how the holder of a lock is described to those who find it
// held: in errors, log lines and rows. f gets the description so far and
// returns the one that takes its place, cut to 512 bytes. Default: function,
// request and log stream, or outside Lambda program, host and process id. If
// Holder is given several times, every f is called, in that order. f must be
// safe for concurrent use; if it panics, so does the invocation.
func Holder(f func(ctx context.Context, description string) string) Option {
	return func(o *settings) {
		if f == nil {
			refuse("Holder(nil): pass a function, or leave the option out")
		}
		before := o.engine.Holder
		if before == nil { // Engine has set it so
			before = holder()
		}
		o.engine.Holder = func(ctx context.Context) string { return f(ctx, before(ctx)) }
	}
}

// AcrossTenants lets the tenants of a function with tenant isolation share
// their locks, for example in front of a partner whom all of them call.
// Default: each tenant has its own locks and stored results, because its id,
// which Lambda passes in the context, becomes part of the Name.
//
// Also across tenants, the same event of another tenant is not a duplicate, but
// an Order counts for all of them. [Latest] and [OnlyLatest] panic.
func AcrossTenants() Option { return func(s *settings) { s.acrossTenants = true } }

// typed returns a result for a callback that takes a T.
func typed[T any](result any) T {
	r, _ := result.(T) // a nil interface stays nil
	return r
}

package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// Option changes a default of [WithLock], or of [EachSQSMessage] and its like. Of an
// option that is given twice the last one counts. What makes no sense panics when the
// handler is wrapped, with one line that says what to change.
type Option func(*settings)

// Store keeps the locks in s, which must not be nil. Default: a DynamoDB table, see
// [Table]. Inside Lambda a warning is logged for a memstore.Store: what is in the memory
// of one execution environment protects nothing from the others.
func Store(s lock.Store) Option {
	return func(o *settings) {
		if isNil(s) {
			refuse("Store(nil): give it a store, or leave it out to use the DynamoDB table in LOCK_TABLE_NAME")
		}
		o.store = s
	}
}

// Table names the DynamoDB table, and is of no use beside [Store]. Default: the one in the
// environment variable LOCK_TABLE_NAME; an empty name is refused, because it may be that of
// a variable that was forgotten. The client is built from the default AWS configuration.
func Table(name string) Option {
	return func(o *settings) {
		if name == "" {
			refuse(`Table(""): name the table, or leave the option out to take it from LOCK_TABLE_NAME`)
		}
		o.table = name
	}
}

// Namespace separates the names of those who share a table. Default: the environment
// variable LOCK_NAMESPACE, which the CDK construct sets, or the name of the Lambda function,
// so that two functions never contend. Give two functions the same namespace to let them
// contend.
//
// Another namespace than LOCK_NAMESPACE panics: the construct limits the function's
// permission to the rows of that one, so that every event would fail in production with
// access denied.
func Namespace(ns string) Option { return func(o *settings) { o.engine.Namespace = ns } }

// OnHeld says what to do when somebody else holds the lock. Default: [Fail], with
// a *lock.HeldError.
func OnHeld(p HeldPolicy) Option {
	return func(o *settings) {
		if isNil(p) {
			refuse("OnHeld(nil): use Skip, Fail, Wait or Respond")
		}
		o.held = p.forHeld()
		o.engine.Wait = o.held.wait
	}
}

// OnDone says what to do with an event that was already completed, or overtaken.
// Default: [Skip].
func OnDone(p DonePolicy) Option {
	return func(o *settings) {
		if isNil(p) {
			refuse("OnDone(nil): use Skip, Fail or Replay")
		}
		o.done = p.forDone()
	}
}

// Remember is how long a completed event is refused: at least 1 s, at most 366 days.
// Default, and zero: 24 h. It should exceed the time after which the source may still deliver it again: 6 h for
// asynchronous invocations, the retention of the queue for SQS (up to 14 days).
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func Remember(d time.Duration) Option { return func(o *settings) { o.engine.Remember = d } }

// RememberAtLeast is how many completed events of a name are remembered in any case,
// each for as long as [Remember] says. Beyond them, the ones completed first are
// forgotten as soon as the row would cost more than one write unit (1 KB), with a
// lock.Forgotten observation. An event takes some 50 bytes, and every write of the row
// costs a write unit for each KB. The records of a batch are remembered together in any
// case. Default, and zero: 8, which fit.
func RememberAtLeast(events int) Option {
	return func(o *settings) { o.engine.RememberAtLeast = events }
}

// Reserve is how long before Lambda's deadline the handler's context ends, so that
// the release fits in before the kill: at least 1 ms. Default, and zero: the smaller of
// 1 s and 10 % of the remaining time.
func Reserve(d time.Duration) Option { return func(o *settings) { o.engine.Reserve = d } }

// CompleteWithin is how long to try to record what was completed, where the store does
// not take it: at least 1 ms. Meanwhile the result of the handler waits. Default, and
// zero: until shortly before the deadline, or [DefaultAnswerWithin] where the result is an
// HTTP response, because a client waits for it and the gateway for no longer than 29 s.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
func CompleteWithin(d time.Duration) Option {
	return func(o *settings) { o.engine.CompleteWithin = d }
}

// DefaultAnswerWithin is [CompleteWithin] for handlers whose result is an HTTP response.
const DefaultAnswerWithin = 5 * time.Second

// Lease is a fixed lease instead of one that lasts to the deadline. A handler that
// is not finished 2 s before its end, by which clocks may differ, sees its context end
// with lock.ErrLost. At least 3 s. Zero: none.
func Lease(d time.Duration) Option { return func(o *settings) { o.engine.Lease = d } }

// Heartbeat is a short lease that is renewed every third of it while the handler
// runs: after a crash the lock is free sooner, at the price of more writes. At least
// 3 s. Zero: none, unless the platform does not kill at the deadline.
func Heartbeat(lease time.Duration) Option {
	return func(o *settings) { o.engine.Heartbeat = lease }
}

// FailOpen runs the handler without a lock when the store does not answer: there is
// no connection, no answer within the time for an acquire, or a status of 500 and
// above. Default: the invocation fails with a *lock.StoreError.
//
// It still fails where the store did answer (throttled, a conflicting request, a
// table that does not exist or has another key, an action that is denied), where
// the store cannot be opened (no table name, no credentials), and where the
// invocation itself has ended. Otherwise a mistake in the deployment would switch the
// locks off for good. Under FailOpen lock.FromContext tells the handler whether it has a
// lease.
func FailOpen() Option { return func(o *settings) { o.failOpen = true } }

// Logger gets one line per outcome. Default, and nil: slog.Default(). Successes are
// debug, refusals info, what needs a look is a warning or an error.
func Logger(l *slog.Logger) Option { return func(o *settings) { o.engine.Logger = l } }

// LogKeys adds names and events to the log lines as they are. Default: only a
// digest of the name, because names may hold personal data.
func LogKeys() Option { return func(o *settings) { o.engine.LogKeys = true } }

// Observe is called with every outcome, for metrics. It must be quick and safe
// for concurrent use. Nil: nobody is told. If it panics, so does the invocation, after
// the lock was released; in a batch the record fails with a [*PanicError].
func Observe(f func(context.Context, lock.Observation)) Option {
	return func(o *settings) { o.engine.Observe = f }
}

// DefaultConcurrency is how many records of a batch are handled at a time, unless
// [Concurrency] says otherwise.
const DefaultConcurrency = 16

// Concurrency is how many records of a batch are handled at a time. Default:
// [DefaultConcurrency]. Records that must keep their order count as one.
func Concurrency(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("lambdalock: Concurrency(%d): use at least 1", n))
	}
	return func(o *settings) { o.each.concurrency = n }
}

// OrderByName keeps the order of stream records of the same lock name only, so that
// other names are handled side by side and go on after a failure. Default: the order
// of the whole shard or partition. FIFO queues keep the order of their message
// groups in any case.
func OrderByName() Option { return func(o *settings) { o.each.byName = true } }

// RaisePanics panics again, with the first value, after all records of a batch are
// settled: Lambda then starts a new process, and delivers the whole batch again.
// Default: a panic fails its record only.
func RaisePanics() Option { return func(o *settings) { o.each.raise = true } }

// Package middleware wraps AWS Lambda handlers with distributed locks and
// idempotency: one invocation at a time per resource, and duplicate deliveries
// are skipped.
//
//	func main() {
//		lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle))
//	}
//
// [WithLock] locks a whole event. [EachSQSMessage] and its siblings lock every
// record of a batch, so that only the records that failed are delivered again.
// [EachSQSBody] and its siblings, and [WithEventBridgeDetail], are for handlers
// of what a message carries. [WithLocks] takes several locks for one event, and
// with [Latest] one run serves a burst of events.
//
// # Guarantees
//
// The wrapped handler has the same type as the bare one and runs only while it
// owns the lock. Its result, error and panic reach Lambda unchanged. It runs on
// the calling goroutine (handlers of records run on others, up to [Concurrency]
// of them), and no goroutine outlives the invocation. By default an event is
// acknowledged only if its handler succeeded, or it, or an identical one, was
// completed before; with a key function that sets an Order, a later one counts
// too.
//
// # Not guaranteed
//
// Nothing stops a handler that goes on after its context has ended, or after
// its lease was lost. Store the fencing token of [lock.FromContext] with your
// data, and refuse a write if a larger one is already there. If the process
// dies after the handler has returned and before the event is completed, the
// event runs again: a handler must be safe to repeat, or write with
// dynamostore.Transact.
//
// # Errors
//
// If the handler cannot run, the invocation fails with a *lock.HeldError,
// *lock.CompletedError (with OnCompleted(Fail), or over HTTP if no response is
// stored and the result is only the body of one), *lock.PayloadMismatchError,
// *lock.NoKeyError, *lock.StoreError, *lock.DeadlineError, *lock.LostError (the
// store took longer than the lease) or *lock.ConfigError, and Lambda reports
// the name of the type as errorType. A batch fails with a [*BatchError] that
// unwraps to the errors of its records, to [context.DeadlineExceeded] for one
// that is not begun near the deadline. A mistake in the code, such as a key
// function for another event type, panics when the handler is wrapped. Over
// HTTP, an error that the client can do something about becomes a response; see
// [WithLock].
//
// # Timing
//
// In an on-demand function the lease lasts to the deadline of the invocation
// plus 2 s, which costs no renewals; only if the handler goes on although its
// context has ended, the lease is renewed from shortly before the deadline on.
// Elsewhere (managed instances, several invocations in one process, or no
// believable deadline), a lease of 30 s is renewed while the handler runs.
//
// # Concurrency
//
// Wrapped handlers are safe for several invocations in one process.
package middleware

// Package middleware wraps AWS Lambda handlers so that at most one invocation at
// a time works on a thing, and a repeated event does nothing:
//
//	func main() {
//		lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle))
//	}
//
// A handler of one record becomes a handler of batches with [EachSQSMessage] and its
// like: each record has a lock of its own, and only what failed is delivered again.
//
// # Guarantees
//
// The wrapped handler has the type of the bare one. Its result, error and panic
// reach Lambda as they would without the decorator. It runs on the calling
// goroutine (handlers of records on a few others), and only while it owns the lock; no
// goroutine outlives the invocation. An event is acknowledged only if it, or an identical one, completed
// (with a key function that sets an Order: or a later one).
//
// # Not guaranteed
//
// A handler that works on after its context has ended, for example in a goroutine
// it left behind, is not stopped by anybody but the platform. Between the return
// of the handler and the write that records it lies a moment in which a crash
// makes the event run again: handlers must bear that, or use the fencing token of
// [lock.FromContext].
//
// # Errors
//
// What keeps a handler from running is returned as *lock.HeldError,
// *lock.CompletedError (only with OnCompleted(Fail)), *lock.StoreError, *lock.KeyError or
// *lock.ConfigError; handlers of batches without a partial answer, or of which nothing
// succeeded, return a [*BatchError] that unwraps to them. Where the result is an HTTP response, a
// *lock.KeyError of the client becomes status 400. Lambda reports the name of the type as errorType. A mistake in
// the code, such as a key function for another event type, panics when WithLock
// is called.
//
// # Timing
//
// On classic Lambda the lease lasts to the deadline of the invocation plus a
// grace of 2 s, because the platform kills the process at the deadline. Where it
// does not (several invocations in one process, or no deadline that can be
// believed), a lease of 30 s is renewed while the handler runs.
//
// # Concurrency
//
// Wrapped handlers are safe for several invocations in one process.
package middleware

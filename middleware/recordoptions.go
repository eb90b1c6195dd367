package middleware

import "context"

// refuseEach panics if there are options for records, which a wrapper of whole
// events has none of.
func (s *settings) refuseEach() {
	if s.each != (eachSettings{}) {
		refuse("Concurrency, OrderPerName, PartialAnswers, OnlyLatest, Around and OnFailed are for handlers of single records: leave them out, or wrap the handler of one record with EachSQSMessage or one of its siblings")
	}
}

// DefaultConcurrency is the default of [Concurrency]: enough to hide the
// latency of the store, and few enough for the memory of the smallest function.
const DefaultConcurrency = 16

// Concurrency sets how many records of a batch are handled at a time: at least
// 1. Default: [DefaultConcurrency]. Records that must keep their order are
// handled one after the other.
func Concurrency(n int) Option {
	if n < 1 {
		refuse("Concurrency(%d): use at least 1", n)
	}
	return func(o *settings) { o.each.concurrency = n }
}

// OrderPerName keeps the order of stream records only among those of the same
// lock name, so that other names are handled at the same time and go on after a
// failure. A record whose key function fails may be of any name, so all records
// after it in its shard or partition are returned, unless [OnlyLatest] is
// given. Default: the order of the whole shard or partition. Other wrappers
// panic: FIFO queues always keep the order of their message groups.
func OrderPerName() Option {
	return func(o *settings) { o.each.orderPerName = true }
}

// PartialAnswers lets [EachKafkaRecord] return the records that failed, so that
// Lambda does not repeat the others. The event source mapping must have
// ReportBatchItemFailures, for which it needs provisioned mode: without it,
// Lambda ignores the answer, and the records that failed are lost. Default: an
// error, after which every mapping repeats the batch. Other wrappers panic:
// their sources leave no choice.
//
// Source:
// https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html.
func PartialAnswers() Option {
	return func(o *settings) { o.each.partialAnswers = true }
}

// OnlyLatest is [Latest] for records: those of one name in a batch are one run,
// too, with the first of them: take the name from it and read the current state
// yourself. If the run fails, the next record takes its turn; those of a stream
// or a FIFO queue come again together.
func OnlyLatest() Option { return func(s *settings) { s.each.onlyLatest = true } }

// Around calls f around the lock and the handler of each record of a batch, for
// example to start a span:
//
//	middleware.Around(func(ctx context.Context, m events.SQSMessage, next func(context.Context) error) error {
//		ctx, span := tracer.Start(ctx, "order")
//		defer span.End()
//		return next(ctx)
//	})
//
// R is the type of the record, also where the handler takes its body. next
// acquires the lock, runs the handler and releases the lock; it returns why the
// record failed, as for a malformed one, or nil if it was completed or skipped.
// Its context must derive from that of f.
//
// f must call next once, or return an error, which fails the record. It cannot
// hide an error of next, nor make it [Permanent] if the handler, or a wrapper
// in it, did not run because of a held lock or of the store, or for another
// reason that is not in the event, or while others rely on the event with
// [OnlyLatest]. A panic in f fails the record. If the store throttles the
// claim, next returns a *lock.StoreError, and f is called again when the
// record's turn comes.
//
// Default: none. Around panics if f is nil, and the wrapper if R is not the
// type of its records.
func Around[R any](f func(ctx context.Context, record R, next func(context.Context) error) error) Option {
	if f == nil {
		refuse("Around(nil): pass the function to call around each record, or leave the option out")
	}
	return func(o *settings) { o.each.around = f }
}

// OnFailed calls f once for each batch of which a record failed, when all of
// its records have ended and before the batch is answered. f gets the records
// that would be returned, in the order of the batch, also those that were not
// begun. It may put one elsewhere and set its Err to nil: then the record is
// acknowledged, but not remembered. If another record brings the batch back, as
// in a stream, it runs again and f gets it again, so put it there under its id.
// Package redelivery does that for SQS.
//
// If a record failed with [Permanent] and others wait for it in order, f is
// called with it alone before the next one begins, possibly for several groups
// at the same time. If f sets its Err to nil, these go on; otherwise they are
// not begun, and f gets the record once more at the end.
//
// R is the type of the record, also where the handler takes its body. ctx ends
// 100 ms before the invocation does. A panic of f is reported as
// [OutcomeHandlerFailed]. Default: none. OnFailed panics if f is nil, and the
// wrapper if R is not the type of its records.
func OnFailed[R any](f func(ctx context.Context, failed []*Failed[R])) Option {
	if f == nil {
		refuse("OnFailed(nil): pass the function to call with the records that failed, or leave the option out")
	}
	return func(o *settings) { o.each.onFailed = f }
}

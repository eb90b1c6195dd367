// Package delivery checks what package middleware promises for the way AWS
// delivers events: at least once, in copies, again after failures and lost
// answers, to environments that die at any moment. It has tests only.
//
// The tests simulate the sources (SQS standard and FIFO queues, asynchronous
// invocation for S3, Kinesis shards, Kafka with partial answers, Custom Event
// Buses) and the environments of a function in fake time. Environments have
// their own clocks, which differ by less than Grace and are set at times; they
// are frozen between invocations and sometimes within one; those of managed
// instances take several invocations at a time and are not killed at the
// deadline. Requests meet the faults of package fault; handlers fail, panic,
// hang and ignore their context; observers and log handlers panic. Dead letters
// of queues are redriven once, under new ids. The locks are in memory, in
// DynamoDB or in objects. An oracle compares every answer and every effect with
// what happened:
//
//   - an acknowledged event had its effect; one that cannot be handled ends
//     in the dead-letter queue or failure destination, and no other without a
//     reason;
//   - each event had its effect exactly once, and once more for each run whose
//     completion did not reach the store for a reason: its environment died,
//     or the middleware reported that it could not complete the event;
//   - a completed event has no effect any more, and is completed once;
//   - the effects of an ordered group happen in its order;
//   - no two handlers of one name overlap, and fences rise; the effects of a
//     handler that may have lost its lease go to a resource that checks the
//     fence, and no other handler's are refused there;
//   - a function that has returned or panicked holds nothing, unless the store
//     did not take the release, and it sends no more requests;
//   - AWS can read every answer;
//   - the metrics of an invocation are what happened in it.
//
// TestDeadline lets the store hang at every request of an invocation, which
// must end before its deadline nevertheless. In both, a history is a function
// of its seed.
package delivery

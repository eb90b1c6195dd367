// Package delivery checks what package middleware promises for the way AWS
// delivers events: at least once, in copies, again after failures and lost
// answers, to environments that die at any moment. It has tests only.
//
// The tests simulate the sources (SQS standard and FIFO queues, asynchronous
// invocation for S3, Kinesis shards) and the environments of a function in fake
// time, and compare every answer and every effect with an oracle:
//
//   - an acknowledged event had its effect; one that cannot be handled ends
//     in the dead-letter queue or failure destination, and no other without a
//     reason;
//   - each event had its effect exactly once, and once more for each completion
//     that did not reach the store because the environment died or was refused;
//   - the effects of an ordered group happen in its order;
//   - no two handlers of one name overlap, and fences rise;
//   - AWS can read every answer.
package delivery

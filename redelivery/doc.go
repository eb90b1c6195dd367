// Package redelivery decides when SQS delivers a message again that a wrapper
// of package middleware returns, and moves a message that can never succeed to
// a dead-letter queue.
//
//	client := sqs.NewFromConfig(cfg)
//	lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, handle,
//		redelivery.SQS(client, &redelivery.Options{DeadLetterQueue: url})))
//
// # Held messages
//
// A message that is returned comes back after the visibility timeout of its
// queue, which should be six times the function's timeout: 90 minutes if that
// is 15. So a message whose lock was held for seconds is late, and in a FIFO
// queue the rest of its message group with it. Before a batch is answered,
// [SQS] changes the visibility timeout of every message that failed with a
// *lock.HeldError, so that it comes back when the lock is likely to be free:
//
//   - The holder is expected to hold the lock for as long as this process held
//     its own, by the last 64 that succeeded: first their median, at the next
//     attempt the longest. If it has held the lock for longer already, up to
//     twice the longest. Where a key has neither an Event nor an Order, those
//     that failed count too: nothing tells them apart.
//   - If the lease ends before that, or nothing is known, the message comes
//     back at the end of the lease or up to one second later.
//   - Messages that wait for the same lock in one process come back one hold
//     after the other. A process knows nothing of the messages of another one,
//     so if another holder was faster than a message that came back, several
//     wait: the next attempt is up to 7 holds later by chance, and the one
//     after it 8 to 63.
//   - middleware.HoldAtLeast is the least hold, and while it lasts no estimate
//     is needed. Then chance doubles: up to 15 holds later, then 16 to 127,
//     then 64 to 511, up to 10 hours.
//   - A message that held its own name and found a lock inside held comes back
//     no sooner than the HoldAtLeast of its own name ends.
//   - A message of a FIFO queue comes back without chance: it waits for those
//     ahead of it in its group, not beside them.
//   - With middleware.OnlyLatest, what met a cooldown comes back together when
//     it ends: one run is for all of it.
//   - Without HoldAtLeast, a message that was received four times keeps the
//     timeout of its queue. Each receive brings it nearer to the dead-letter
//     queue, so set maxReceiveCount to at least 5, as AWS advises, and to 20
//     for a busy name.
//   - What waits behind a held message in its message group comes back with it.
//   - With middleware.OnlyLatest, a message comes back after a second if others
//     rely on another run for which no time was left, or that failed for good.
//   - The timeouts are changed when the whole batch has ended, so a message
//     does not come back while other messages of its batch are being handled.
//
// Where a holder renews its lease (middleware.Heartbeat, which is the default
// of managed instances), the lease ends later than it says now, so a process
// that renews its own leases goes by the estimate alone.
//
// Every other failure keeps the visibility timeout of the queue: that of a
// handler, of a store that throttles or does not answer, and of messages that
// were not begun. There a pause is what the handler or the store needs. A
// handler that knows how long, such as from a Retry-After, sets the timeout of
// its message itself, which middleware.RecordFromContext returns, and fails.
//
// # Permanent failures
//
// A message whose handler returned an error of middleware.Permanent is sent to
// [Options.DeadLetterQueue] and acknowledged, instead of failing until SQS
// moves it. The copy has the body, the message attributes, the message group,
// and the reason in the attribute ErrorMessage, as in Lambda's own dead-letter
// queues. In a FIFO queue, the message is moved before the next of its message
// group begins, and the group goes on. If it cannot be moved, it is tried once
// more when the batch has ended, and the rest of the group comes back: at once
// if the message has moved then, otherwise with it.
//
// Nothing is acknowledged before SQS has accepted the copy. If that answer gets
// lost, or that of the function, there will be a second copy. A message that is
// too large with the reason, or has ten other attributes, is moved without it.
//
// The copy is a new message with an id of its own, and SQS does not know which
// queue it came from: a redrive of the dead-letter queue must name the queue to
// send it to.
//
// # Permissions
//
//	{
//	  "Version": "2012-10-17",
//	  "Statement": [
//	    {"Effect": "Allow", "Action": "sqs:ChangeMessageVisibility", "Resource": "ARN of the queue"},
//	    {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "ARN of the dead-letter queue"}
//	  ]
//	}
//
// A dead-letter queue that is encrypted with your own KMS key also needs
// kms:GenerateDataKey and kms:Decrypt on the key.
//
// # Capacity
//
// Each attempt to get a busy lock costs a message a receive.
// Measured with the visibility timeout and maxReceiveCount that AWS advises, as
// messages of one name that were dead letters although none had failed:
//
//	its lock is held    environments   maxReceiveCount 5   20
//	50 % of the time    1              2 of 3,000          none
//	50 % of the time    10             31 of 3,000         none
//	70 % of the time    1              3 of 3,000          none
//	70 % of the time    10             131 of 3,000        1 of 3,000
//
// With HoldAtLeast(time.Minute), up to 20 messages that come at once are all
// handled. Of 50 and 100, none is a dead letter in one environment, and 0 and 2
// of 500 in five, but the last may be handled eleven hours later. In a FIFO
// queue, each cooldown costs every message of the batch a receive: take a batch
// size of 1, or a maxReceiveCount above the batch size.
//
// If a run for the latest event is enough, add middleware.OnlyLatest to
// HoldAtLeast: that is a debounce. 100 messages of a name in ten minutes were
// 13 to 22 runs, and none was a dead letter. 1,000 were about 50 runs; with a
// maxReceiveCount of 20 none was a dead letter, with 5 once 41, because a
// message that comes back just after a run of 100 ms finds the next cooldown.
//
// # Cost
//
// One request for ten held messages, and one for each message that is moved, up
// to ten at a time; none for any other batch. Those at the end of a batch take
// ten seconds at most, one that moves a message in its group's turn takes five,
// and all end before the deadline of the invocation. If requests fail, one
// warning is logged for them, and their messages come back after the visibility
// timeout of the queue.
//
// # Sources
//
//   - https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
//   - https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
//   - https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
package redelivery

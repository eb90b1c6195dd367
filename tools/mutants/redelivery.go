package main

// redelivery has the bugs in when a record comes back, and in what moves it
// elsewhere.
var redelivery = []mutant{
	{
		file: "middleware/failed.go", breaks: "P6", bug: "another record is acknowledged than the one that was moved",
		old: `d.onFailed(ctx, slices.Clone(failed))`,
		new: `d.onFailed(ctx, failed)`,
		by:  "TestOnFailed",
	},
	{
		file: "middleware/failed.go", breaks: "F12", bug: "no time is left to answer",
		old: `deadline.Add(-min(invocation.TimeToAnswer, left/2))`,
		new: `deadline.Add(-min(0, left/2))`,
		by:  "TestOnFailedHasTimeToAnswer",
	},
	{
		file: "middleware/failed.go", breaks: "F48", bug: "a panic of what OnFailed calls ends the invocation",
		old: `if p := recover(); p != nil {`,
		new: `if p := any(nil); p != nil {`,
		by:  "TestOnFailedThatPanics",
	},
	{
		file: "middleware/batch.go", breaks: "P5", bug: "records are acknowledged in a batch whose panic is repeated",
		old: `	errs := d.errors()
	d.tellFailed(errs)
`,
		new: `	errs := make([]error, len(d.tasks))
	for i := range d.tasks {
		errs[i] = d.tasks[i].err
	}
	d.tellFailed(errs)
	errs = d.errors()
`,
		by: "TestOnFailedBeforeRepanic",
	},
	{
		file: "middleware/permanent.go", breaks: "P6", bug: "a permanent error that nothing moves is passed over in silence",
		old: `if errors.As(errors.Join(errs...), new(*PermanentError)) {`,
		new: `if false {`,
		by:  "TestPermanentWithoutDestination",
	},
	{
		file: "redelivery/deadletter.go", breaks: "P6", bug: "a message is acknowledged that was not sent",
		old: `		if err == nil {
			permanent[i].Err = nil
			moved`,
		new: `		permanent[i].Err = nil
		if err == nil {
			moved`,
		by: "TestNothingIsLost",
	},
	{
		file: "redelivery/each.go", breaks: "P6", bug: "a message is acknowledged whose request ended with its goroutine",
		old: `		errs[i] = errNoAnswer
`,
		new: ``,
		by:  "TestNothingIsLost",
	},
	{
		file: "redelivery/each.go", breaks: "F48", bug: "a panic of the client ends the process",
		old: `if p := recover(); p != nil {`,
		new: `if p := any(nil); p != nil {`,
		by:  "TestNothingIsLost",
	},
	{
		file: "redelivery/deadletter.go", breaks: "redelivery", bug: "a message goes round in its own queue for ever",
		old: `strings.HasSuffix(r.DeadLetterQueue, queue)`,
		new: `r.DeadLetterQueue == queue`,
		by:  "TestDeadLetterQueueIsTheQueueItself",
	},
	{
		file: "redelivery/deadletter.go", breaks: "P6", bug: "a control character in an error keeps the message from being moved",
		old: `r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE`,
		new: `r == 0xFFFE`,
		by:  "TestCopy",
	},
	{
		file: "redelivery/deadletter.go", breaks: "P6", bug: "an error without text keeps the message from being moved",
		old: `cmp.Or(permanent.Error(), "permanent")`,
		new: `permanent.Error()`,
		by:  "TestCopy",
	},
	{
		file: "redelivery/deadletter.go", breaks: "P6", bug: "a message with ten attributes is not moved",
		old: `has || len(all) < mostAttributes`,
		new: `has || len(all) <= mostAttributes`,
		by:  "TestCopy",
	},
	{
		file: "redelivery/deadletter.go", breaks: "P5", bug: "a FIFO dead-letter queue keeps both copies of a message",
		old: `in.MessageDeduplicationId = &m.MessageId`,
		new: `in.MessageDeduplicationId = &m.ReceiptHandle`,
		by:  "TestCopy",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a message behind a held one keeps its group waiting",
		old: `			if before.leads {
				add`,
		new: `			if before.leads && before.back.IsZero() {
				add`,
		by: "TestHeldMessageOfAGroup",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a message behind one that was moved waits",
		old: `first{leads: true}`,
		new: `first{}`,
		by:  "TestPermanentOfAGroup",
	},
	{
		file: "internal/event/eventkind/fifo.go", breaks: "redelivery", bug: "messages of a standard queue wait for each other",
		old: `	if !IsFIFO(m) {
		return ""
	}
`,
		new: ``,
		by:  "TestHeldMessageComesBack|TestRefusedEntries|TestThousandHeldMessages", in: "redelivery",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a message comes back before its lease has ended",
		old: `int32(math.Ceil(left.Seconds()))`,
		new: `int32(left.Seconds())`,
		by:  "TestHeldMessageComesBack",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a message uses up its receives at once",
		old: `max(back.Sub(now), time.Second)`,
		new: `max(back.Sub(now), 0)`,
		by:  "TestVisibilityTimeout",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "SQS refuses a visibility timeout of more than 12 h",
		old: `min(max(back.Sub(now), time.Second), longestTimeout)`,
		new: `max(back.Sub(now), time.Second)`,
		by:  "TestVisibilityTimeout",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a wrong estimate makes a dead letter of a message",
		old: `early := receives(m) <= mostReceives`,
		new: `early := true`,
		by:  "TestVisibilityTimeout",
	},
	{
		file: "redelivery/visibility.go", breaks: "observation", bug: "entries that SQS refuses are not reported",
		old: `if err == nil && len(out.Failed) > 0 {`,
		new: `if err != nil && len(out.Failed) > 0 {`,
		by:  "TestRefusedEntries",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "SQS refuses a request for more than ten messages",
		old: `slices.Chunk(changes, mostEntries)`,
		new: `slices.Chunk(changes, mostEntries+1)`,
		by:  "TestThousandHeldMessages",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "nothing is learned from locks that were held",
		old: `		h.add(o.HeldFor)
	}`,
		new: `	}`,
		by:  "TestHeldMessageComesBack",
	},
	{
		file: "redelivery/visibility.go", breaks: "redelivery", bug: "a message that owes a run waits for 90 minutes",
		old: `errors.Is(f.Err, lock.ErrOwed)`,
		new: `errors.Is(f.Err, lock.ErrReleased)`,
		by:  "TestOwedMessageComesBack",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "one long hold makes all messages late",
		old: `	if !longest {`,
		new: `	if false {`,
		by:  "TestHeldMessageComesBack",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "a holder that takes slightly longer than any before counts as dead",
		old: `hold := 2*sorted[len(sorted)-1] + alike; hold > age`,
		new: `hold := 2*sorted[len(sorted)-1] + alike; false`,
		by:  "TestHeldMessageComesBack",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "a message comes back later than its lease ends",
		old: `free.After(held.Until) && !batch.Renews`,
		new: `false && !batch.Renews`,
		by:  "TestVisibilityTimeout",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "a message whose holder renews its lease is received in vain",
		old: ` && !batch.Renews {`,
		new: ` {`,
		by:  "TestRenewedLease",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "messages that wait for one lock come back in the same second",
		old: `at = times[i] + apart`,
		new: `at = times[i]`,
		by:  "TestManyMessagesOfOneName",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "messages of several batches meet again and again",
		old: `	if again && !eventkind.IsFIFO(m) && wasBefore(m, held.Since) {`,
		new: `	if false {`,
		by:  "TestAnotherWasFaster",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "a message that meets the same holder again is late",
		old: `if again && !eventkind.IsFIFO(m) && wasBefore(m, held.Since) {`,
		new: `if again && !eventkind.IsFIFO(m) {`,
		by:  "TestAnotherWasFaster",
	},
	{
		file: "middleware/schedule.go", breaks: "redelivery", bug: "nobody knows when a record had failed",
		old: `t.err, t.ended = err, clock.From(d.ctx).Now()`,
		new: `t.err = err`,
		by:  "TestOnFailedSaysWhen",
	},
	{
		file: "redelivery/holds.go", breaks: "redelivery", bug: "a batch that takes long makes its held messages late",
		old: `h.longerThan(f.Ended.Sub(held.Since), again)`,
		new: `h.longerThan(time.Since(held.Since), again)`,
		by:  "TestHeldMessageComesBack",
	},
	{
		file: "redelivery/sqs.go", breaks: "F11", bug: "a request that SQS does not answer takes all the time of the invocation",
		old: `	ctx, cancel := c.WithDeadlineCause(ctx, c.Now().Add(longest), nil)
`,
		new: `	ctx, cancel := c.WithDeadlineCause(ctx, c.Now().Add(time.Hour), nil)
`,
		by: "TestNothingIsLost",
	},
}

package main

// batches has the bugs in how a batch is handled, and what it says about its
// records.
var batches = []mutant{
	{
		file: "middleware/answer.go", breaks: "P5", bug: "the caller of a replay can change what is stored",
		old: `bytes.Clone(a.result), nil // a store`,
		new: `a.result, nil // a store`,
		by:  "TestRawReplayKeepsACopy",
	},
	{
		file: "middleware/answer.go", breaks: "P6", bug: "a handler without an error acknowledges what it could not lock",
		old: `		panic(a.err) // the only way`,
		new: `		return make([]reflect.Value, 0, len(a.result)) // the only way`,
		by:  "TestHandlerWithoutErrorFailsByPanic",
	},
	{
		file: "middleware/overdue.go", breaks: "F16", bug: "a short deadline passes before the overdue record is named",
		old: `min(deadline.Sub(end)/2, longestPatience)`,
		new: `min(deadline.Sub(end), longestPatience)`,
		by:  "TestOverdueBeforeAShortDeadline",
	},
	{
		file: "middleware/overdue.go", breaks: "F48", bug: "a panic of the observer of an overdue record is swallowed",
		old: `			err = panicked
`,
		new: `			_ = panicked
`,
		by: "TestOverdueObserverThatPanics",
	},
	{
		file: "middleware/overdue.go", breaks: "F39", bug: "a report of an overdue record outlives the invocation",
		old: `		<-reported
`,
		new: `		_ = reported
`,
		by: "TestOverdueObserverIsWaitedFor",
	},
	{
		file: "middleware/around.go", breaks: "P1", bug: "a record is handled with the context of another one",
		old: `if ctx == nil || ctx.Value(recordKey[R]{}) != any(t.record) {`,
		new: `if ctx == nil || ctx.Value(recordKey[R]{}) == nil {`,
		by:  "TestAroundMixesUpContexts",
	},
	{
		file: "middleware/around.go", breaks: "P6", bug: "a record that was never handled counts as completed",
		old: `	case called == 0:
		return errNextNotCalled
`,
		new: ``,
		by:  "TestAround",
	},
	{
		file: "middleware/around.go", breaks: "P6", bug: "a record whose handler failed is completed by what runs around it",
		old: `	return n.err
}

// surrounded`,
		new: `	return nil
}

// surrounded`,
		by: "TestAround",
	},
	{
		file: "middleware/schedule.go", breaks: "P5", bug: "a record of a group runs although one before it failed",
		old: `		next.blocked = next.blocked || err != nil
`,
		new: `		next.blocked = false
`,
		by: "TestBatchFIFO|TestBatchFIFOPoison",
	},
	{
		file: "middleware/schedule.go", breaks: "P5", bug: "only the next record of a group is returned after a failure",
		old: `		next.blocked = next.blocked || err != nil
`,
		new: `		next.blocked = err != nil && !t.blocked
`,
		by: "TestBatchFIFO",
	},
	{
		file: "middleware/schedule.go", breaks: "F32", bug: "two records of one name wait for each other's lock",
		old: `			if before := lastOfName[name]; before != nil {`,
		new: `			if before := lastOfName[name]; before != nil && !d.source.strict {`,
		by:  "TestBatchDuplicatesInside|TestBatchSameName",
	},
	{
		file: "middleware/schedule.go", breaks: "P5", bug: "a FIFO queue is ordered by name",
		old: `if d.each.orderPerName && !d.source.strict {`,
		new: `if d.each.orderPerName {`,
		by:  "TestOrderPerNameLeavesQueues",
	},
	{
		file: "middleware/schedule.go", breaks: "F32", bug: "a handler that ends its goroutine takes a worker with it",
		old: `			d.workers.Go(d.work)
		}
	}()`,
		new: `		}
	}()`,
		by: "TestBatchGoexit",
	},
	{
		file: "middleware/schedule.go", breaks: "F63", bug: "records do not wait for their turn",
		old: `		d.awaitTurn(t)
`,
		new: ``,
		by:  "TestRecordsThatClaimNothing",
	},
	{
		file: "middleware/schedule.go", breaks: "F12, F63", bug: "a record waits for its turn beyond the last moment to begin",
		old: `			wait = min(wait, d.lastStart.Sub(now))
		}
		_ = c.Sleep(d.ctx, min(wait, longestNap))`,
		new: `			wait = max(wait, d.lastStart.Sub(now))
		}
		_ = c.Sleep(d.ctx, max(wait, longestNap))`,
		by: "TestFullTable",
	},
	{
		file: "middleware/schedule.go", breaks: "F63", bug: "a record that claims nothing takes the turn of another",
		old: `	if t != nil && !t.blocked && t.err == nil && !t.isServed() { // it claims a lock`,
		new: `	if t != nil && !t.blocked {`,
		by:  "TestRecordsThatClaimNothing",
	},
	{
		file: "middleware/source.go", breaks: "P6", bug: "a batch in which nothing succeeded returns no error",
		old: `	if len(failed) == len(records) { // also`,
		new: `	if len(failed) == len(records) && len(failed) == 0 { // also`,
		by:  "TestBatchAllFail|TestBatchOfWhichNothingSucceeded",
	},
	{
		file: "middleware/source.go", breaks: "P6", bug: "a failed record without an identifier is lost",
		old: `			return []F{}, s.wholeAnswer(errs, records)
`,
		new: `			continue
`,
		by: "TestBatchWithoutIdentifier",
	},
	{
		file: "middleware/source.go", breaks: "P6", bug: "no failure is null, which some read as a failure of all",
		old: `	failed := []F{}
`,
		new: `	var failed []F
`,
		by: "TestBatchesInTheRuntime|TestEachKinesisRecord",
	},
	{
		file: "middleware/source.go", breaks: "P6", bug: "a source that takes no partial answer acknowledges failed records",
		old: `if e.Records > 0 && len(e.Failed) == 0 {`,
		new: `if e.Records > len(e.Failed) {`,
		by:  "TestEachS3Record|TestEachKafkaRecord|TestEachSNSRecord",
	},
	{
		file: "middleware/task.go", breaks: "F12", bug: "a record begins although the deadline is near",
		old: `case !d.lastStart.IsZero() && !clock.From(d.ctx).Now().Before(d.lastStart):`,
		new: `case d.lastStart.IsZero() && !clock.From(d.ctx).Now().Before(d.lastStart):`,
		by:  "TestBatchNearTheDeadline|TestNothingBeginsWithinReserve",
	},
	{
		file: "middleware/task.go", breaks: "P6, F18", bug: "a handler that ended its goroutine counts as a success",
		old: `			err = errGoexit
		}`,
		new: `			err = nil
		}`,
		by: "TestBatchGoexit|TestBatchPanicWithNil",
	},
	{
		file: "middleware/task.go", breaks: "F31", bug: "a record that cannot be decoded is handled as an empty one",
		old: `	if err := d.source.broken[t.index]; err != nil {`,
		new: `	if err := d.source.broken[-1-t.index]; err != nil {`,
		by:  "TestS3EventDecodesEachRecord",
	},
	{
		file: "middleware/task.go", breaks: "P6, F18", bug: "a record that panicked after its claim was throttled is handled once more",
		old: `		if !returned {
			t.again = false
		}
`,
		new: ``,
		by:  "TestAroundRequeuedRecord",
	},
	{
		file: "middleware/task.go", breaks: "F63", bug: "without a deadline a batch waits for a full store for ever",
		old: `d.pace.Full(clock.From(d.ctx).Now()) > longestOutage:`,
		new: `d.pace.Full(clock.From(d.ctx).Now()) < 0:`,
		by:  "TestFullTable",
	},
	{
		file: "middleware/task.go", breaks: "F63", bug: "a record that is returned does not say that the store throttled it",
		old: `		if t.throttled != nil {`,
		new: `		if t.throttled == nil && t.again {`,
		by:  "TestFullTable",
	},
	{
		file: "middleware/batch.go", breaks: "P5, F46", bug: "the events of a batch are not remembered together",
		old: `		if k := d.tasks[i].key; k.Event != "" && k.Order == "" {`,
		new: `		if k := d.tasks[i].key; k.Event == "" && k.Order == "" {`,
		by:  "TestBatchOfOneNameComesAgain",
	},
	{
		file: "middleware/batch.go", breaks: "F25", bug: "keys are computed after other handlers may have changed the event",
		old: `	for i := range records { // before`,
		new: `	for i := range records[:0] { // before`,
		by:  "TestHandlerThatMutatesItsBody|TestBatchSameName|TestEachSNSRecord",
	},
	{
		file: "middleware/batch.go", breaks: "replay", bug: "the gaps between the claims of a batch are not part of the seed",
		old: `Chance: clock.From(ctx)`,
		new: `Chance: clock.From(context.Background())`,
		by:  "TestDeliveryIsItsSeed|TestDeadlineIsItsSeed", in: "internal/robustness/delivery",
	},
	{
		file: "middleware/records.go", breaks: "P5", bug: "the records of a shard run at the same time",
		old: `shard, _, _ := strings.Cut(r.EventID, ":")
		return r.EventSourceArn + " " + shard`,
		new: `shard, _, _ := strings.Cut(r.EventID, "#")
		return r.EventSourceArn + " " + shard`,
		by: "TestEachKinesisRecord",
	},
	{
		file: "middleware/s3records.go", breaks: "P6", bug: "an event of another source is acknowledged",
		old: `		if reason := eventkind.NoS3Records(b, nil); reason != "" {`,
		new: `		if reason := eventkind.NoS3Records(b, nil); reason == "-" {`,
		by:  "TestEachS3RecordOfAnotherSource",
	},
	{
		file: "middleware/body.go", breaks: "P6", bug: "a Limit that refuses every message is seen at the first one",
		old: `	b.refuseLimit()
`,
		new: ``,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/body.go", breaks: "P6", bug: "an error of a record's key is blamed on its body",
		old: `errors.As(err, &ofRecord) {`,
		new: `errors.As(err, &ofRecord) && ofRecord.err == nil {`,
		by:  "TestRecordKeyErrors",
	},
	{
		file: "middleware/batcherror.go", breaks: "P6", bug: "the error of a large batch names every record",
		old: `e.Failed[:min(shown, len(e.Failed))]`,
		new: `e.Failed[:min(1000, len(e.Failed))]`,
		by:  "TestBatchErrorStaysShort",
	},
	{
		file: "middleware/record.go", breaks: "F31", bug: "RecordFromContext returns a record of another type",
		old: `	if r, ok := ctx.Value(recordKey[R]{}).(*R); ok {`,
		new: `	if r, ok := ctx.Value(anyRecordKey{}).(*R); ok || ctx.Value(anyRecordKey{}) != nil {
		if !ok {
			r = new(R)
		}`,
		by: "TestRecordFromContext",
	},
	{
		file: "middleware/record.go", breaks: "F30", bug: "a Kafka record is named without its partition",
		old: `fmt.Sprintf("%s-%d@%d", r.Topic, r.Partition, r.Offset)`,
		new: `fmt.Sprintf("%s-%d@%d", r.Topic, 0*r.Partition, r.Offset)`,
		by:  "TestLinesOfKafkaRecordsNameThem",
	},
}

package main

// handlers has the bugs in what happens around a handler.
var handlers = []mutant{
	{
		file: "middleware/wrapper.go", breaks: "P1, F13", bug: "FailOpen runs the handler after any error",
		old: `case w.failOpen && ctx.Err() == nil && unanswered(err):`,
		new: `case w.failOpen && ctx.Err() == nil:`,
		by:  "TestFailOpen|TestFailOpenAsksWhatTheStoreSays",
	},
	{
		file: "middleware/wrapper.go", breaks: "P1, F13", bug: "FailOpen runs the handler after a refusal",
		old: `errors.As(err, &e) && e.Temporary && !e.Answered`,
		new: `errors.As(err, &e) && e.Temporary`,
		by:  "TestFailOpen|TestFailOpenAsksWhatTheStoreSays",
	},
	{
		file: "middleware/wrapper.go", breaks: "P1, F13", bug: "FailOpen runs the handler after a refusal if an earlier attempt had no answer",
		old: `errors.As(err, &e) && e.Temporary && !e.Answered`,
		new: `errors.As(err, &e) && e.Temporary && !e.Unapplied`,
		by:  "TestFailOpenAsksWhatTheStoreSays",
	},
	{
		file: "middleware/wrapper.go", breaks: "F13", bug: "FailOpen runs the handler of an invocation that has ended",
		old: `case w.failOpen && ctx.Err() == nil && `,
		new: `case w.failOpen && `,
		by:  "TestFailOpenOfAnEndedInvocation",
	},
	{
		file: "middleware/wrapper.go", breaks: "F13", bug: "a store that does not answer lets the handler run",
		old: `case w.failOpen && ctx.Err() == nil && unanswered(err):`,
		new: `case ctx.Err() == nil && unanswered(err):`,
		by:  "TestStoreFailure",
	},
	{
		file: "middleware/wrapper.go", breaks: "P6", bug: "a duplicate in progress is acknowledged",
		old: `return run, &answer{action: w.held.action, response`,
		new: `return run, &answer{action: max(w.held.action, skip), response`,
		by:  "TestDuplicateInProgressIsNotAcknowledged",
	},
	{
		file: "middleware/wrapper.go", breaks: "P6", bug: "an event without a key is acknowledged",
		old: `return &answer{action: fail, err: e}`,
		new: `return &answer{action: skip, err: e}`,
		by:  "TestNoKeyNoHandler",
	},
	{
		file: "middleware/wrapper.go", breaks: "F26", bug: "an event with nothing to work on fails",
		old: `	if errors.Is(e, keyfuncs.ErrIgnore) {`,
		new: `	if errors.Is(e, keyfuncs.ErrNoLock) {`,
		by:  "TestNoKeyNoHandler|TestNothingToWorkOnOverHTTP",
	},
	{
		file: "middleware/wrapper.go", breaks: "F39", bug: "a key function's error value is edited",
		old: `	outer := *inner
	outer.Err = err
	return &outer`,
		new: `	inner.Err = err
	return inner`,
		by: "TestNoKeyErrorIsNotEdited",
	},
	{
		file: "middleware/funchandler.go", breaks: "P5, F18", bug: "a handler that failed completes its event",
		old: `err != nil {
				return out
			}`,
		new: `err != nil {
				run.complete(nil)
				return out
			}`,
		by: "TestFailedEventRunsAgain",
	},
	{
		file: "middleware/funchandler.go", breaks: "P4, F18", bug: "a handler that panics or fails keeps the name held",
		old: `		defer run.release()
`,
		new: `		_ = run.release
`,
		by: "TestErrorAndPanicPassThrough|TestFailedEventRunsAgain",
	},
	{
		file: "middleware/funchandler.go", breaks: "P2", bug: "the handler gets a context that does not end with its lease",
		old: `args[0] = reflect.ValueOf(run.ctx)`,
		new: `args[0] = reflect.ValueOf(ctx)`,
		by:  "TestEverySignature|TestLeaseFitsThePlatform",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P5", bug: "the event of a handler without a result is not completed",
		old: `	if r.lock != nil {
		_ = r.lock.CompleteWith(result)`,
		new: `	if r.lock != nil && result != nil {
		_ = r.lock.CompleteWith(result)`,
		by: "TestDuplicateIsSkipped",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P4", bug: "the lock of a stream is released when the handler returns",
		old: `if r.lock != nil && !r.streamed {`,
		new: `if r.lock != nil {`,
		by:  "TestStreamHoldsTheLockToItsEnd",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P5", bug: "a duplicate over HTTP gets no response to replay",
		old: `(byDefault || r.w.completed.action == replay)`,
		new: `(byDefault && r.w.failOpen || r.w.completed.action == replay)`,
		by:  "TestHTTPReplay",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P5, F49", bug: "a failed work of a record completes it",
		old: `	err := work(run.ctx)
	if err == nil {
		run.complete(nil)
	}`,
		new: `	err := work(run.ctx)
	run.complete(nil)`,
		by: "TestBatchPoison|TestEachS3Record|TestEventBridgeDetail",
	},
	{
		file: "middleware/rawhandler.go", breaks: "P5", bug: "a replay answers with the buffer of another event",
		old: `stored = bytes.Clone(out)`,
		new: `stored = out`,
		by:  "TestRawReplayKeepsACopy",
	},
	{
		file: "middleware/rawhandler.go", breaks: "F25", bug: "a key function can change the payload that the handler gets",
		old: `	case *json.RawMessage:
		*e = bytes.Clone(payload)`,
		new: `	case *json.RawMessage:
		*e = payload`,
		by: "TestRawPayloadIsCopiedForTheKey",
	},
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
		file: "middleware/stream.go", breaks: "P5, F35", bug: "a stream that broke off completes the event",
		old: `if err == io.EOF && s.completes {`,
		new: `if s.completes {`,
		by:  "TestStreamThatFails|TestStreamClosedBeforeItsEndIsNotCompleted",
	},
	{
		file: "middleware/stream.go", breaks: "P5, F35", bug: "an error that wraps io.EOF completes the event",
		old: `if err == io.EOF && s.completes {`,
		new: `if errors.Is(err, io.EOF) && s.completes {`,
		by:  "TestStreamThatFails",
	},
	{
		file: "middleware/stream.go", breaks: "P4, F35", bug: "a stream that is closed before its end keeps the name held",
		old: `	defer s.end(io.ErrUnexpectedEOF) // does`,
		new: `	_ = s.end // does`,
		by:  "TestStreamClosedBeforeItsEndIsNotCompleted",
	},
	{
		file: "middleware/stream.go", breaks: "P4, F35", bug: "a body that panics keeps the name held",
		old: `	err = errBodyPanicked
	defer`,
		new: `	defer`,
		by:  "TestStreamThatPanics",
	},
	{
		file: "middleware/stream.go", breaks: "P1, P5", bug: "a stream that cannot be encoded completes the event before its body is read",
		old: `		return nil, errNotJSON
`,
		new: `		s.end(io.EOF)
		return nil, errNotJSON
`,
		by: "TestStreamThatBreaksOffInTheRuntime",
	},
	{
		file: "middleware/stream.go", breaks: "F35", bug: "the last bytes of a stream are not stored if they come with its end",
		old: `	s.keep(p, n)
	return`,
		new: `	if err == nil {
		s.keep(p, n)
	}
	return`,
		by: "TestLastBytesWithTheEndOfAStream",
	},
	{
		file: "middleware/stream.go", breaks: "P1", bug: "the lock ends before the body is closed",
		old: `	defer s.end(io.ErrUnexpectedEOF) // does`,
		new: `	s.end(io.ErrUnexpectedEOF) // does`,
		by:  "TestStreamHoldsTheLockWhileItCloses",
	},
	{
		file: "middleware/defaultstore.go", breaks: "F59", bug: "a given store looks at its server when the first event comes",
		old: `		checkWithin(checkTimeout, s)
`,
		new: ``,
		by:  "TestStoreIsCheckedDuringINIT",
	},
	{
		file: "middleware/defaultstore.go", breaks: "F10", bug: "a default store that could not be opened is never opened again",
		old: `	d.store, err = dynamostore.Open(ctx, d.table)
`,
		new: `	d.store, err = dynamostore.Open(ctx, d.table)
	if err != nil && d.table != "" {
		d.store = dynamostore.New(nil, d.table)
	}
`,
		by: "TestDefaultStoreOpensAgain",
	},
	{
		file: "middleware/reply.go", breaks: "P7", bug: "an error in which OnError wraps its own is swallowed",
		old: `		case err != a.err:`,
		new: `		case !errors.Is(err, a.err):`,
		by:  "TestHTTPOptionsWin",
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
		file: "middleware/around.go", breaks: "P1", bug: "a record is handled with the context of another one",
		old: `if ctx == nil || ctx.Value(recordKey[R]{}) != any(t.record) {`,
		new: `if ctx == nil || ctx.Value(recordKey[R]{}) == nil {`,
		by:  "TestAroundMixesUpContexts",
	},
	{
		file: "middleware/wrapper.go", breaks: "P6", bug: "an invocation that has ended does not get the answer for a held lock",
		old: `	case errors.Is(err, lock.ErrHeld):`,
		new: `	case errors.Is(err, lock.ErrHeld) && ctx.Err() == nil:`,
		by:  "TestHeldPolicyOfAnEndedInvocation",
	},
	{
		file: "middleware/resume.go", breaks: "F35", bug: "a step whose stored result is dropped does not say whose",
		old: `		run.key = completed.Key
`,
		new: ``,
		by:  "TestReplayOfAnotherType",
	},
	{
		file: "middleware/resume.go", breaks: "F54", bug: "a step that failed releases the lock, so that its retry has none",
		old: `	l.Leave()
	return nil
`,
		new: `	return l.Lock.Release()
`,
		by: "TestResume",
	},
	{
		file: "middleware/remember.go", breaks: "P5", bug: "an SQS message is forgotten before its queue forgets it",
		old: `events.SQSMessage]():  4 * day,`,
		new: `events.SQSMessage]():  1 * day,`,
		by:  "TestRememberedAsLongAsTheSourceKeeps|TestBodyIsRememberedBySource",
	},

	// Batches.
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
		file: "middleware/overdue.go", breaks: "F39", bug: "a report of an overdue record outlives the invocation",
		old: `		<-reported
`,
		new: `		_ = reported
`,
		by: "TestOverdueObserverIsWaitedFor",
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
		file: "middleware/records.go", breaks: "P5", bug: "the records of a shard run at the same time",
		old: `shard, _, _ := strings.Cut(r.EventID, ":")
		return r.EventSourceArn + " " + shard`,
		new: `shard, _, _ := strings.Cut(r.EventID, "#")
		return r.EventSourceArn + " " + shard`,
		by: "TestEachKinesisRecord",
	},
	{
		file: "middleware/s3records.go", breaks: "P6", bug: "an event of another source is acknowledged",
		old: `		if reason := eventkind.NoS3Records(b, ""); reason != "" {`,
		new: `		if reason := eventkind.NoS3Records(b, ""); reason == "-" {`,
		by:  "TestEachS3RecordOfAnotherSource",
	},
}

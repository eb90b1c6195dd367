package main

// handlers has the bugs in what happens around a handler.
var handlers = []mutant{
	{
		file: "middleware/policy.go", breaks: "P6", bug: "an event whose wait has ended is acknowledged",
		old: `policy{action: fail, wait: time.Duration(p)}`,
		new: `policy{action: skip, wait: time.Duration(p)}`,
		by:  "TestSimulation",
	},
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
		file: "middleware/wrapper.go", breaks: "P3, F13", bug: "a handler without its lock seems to have that of a wrapper around it, and hands it over",
		old: `run.ctx = driver.NewContext(ctx, nil)`,
		new: `run.ctx = ctx`,
		by:  "TestFailOpenInsideALock",
	},
	{
		file: "lock/lease.go", breaks: "P2, F33", bug: "inside a handler without its lock, those around it are not known",
		old: `l, _ := ctx.Value(heldKey{}).(*Lock)`,
		new: `l := innermost(ctx)`,
		by:  "TestFailOpenInsideALock", in: "middleware",
	},
	{
		file: "middleware/handlerrun.go", breaks: "F48", bug: "a stream that nobody reads after a panic keeps the lock of a wrapper inside the handler",
		old: `if !r.streamed {`,
		new: `if false {`,
		by:  "TestStreamThatNobodyReads",
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
		file: "middleware/wrapper.go", breaks: "P6", bug: "an invocation that has ended does not get the answer for a held lock",
		old: `	case errors.Is(err, lock.ErrHeld):`,
		new: `	case errors.Is(err, lock.ErrHeld) && ctx.Err() == nil:`,
		by:  "TestHeldPolicyOfAnEndedInvocation",
	},
	{
		file: "middleware/wrapper.go", breaks: "F26", bug: "nobody sees that a handler runs without a lock",
		old: `			w.report(ctx, lock.Observation{Outcome: OutcomeNoLock})
`,
		new: ``,
		by:  "TestErrNoLock|TestLevels",
	},
	{
		file: "middleware/funchandler.go", breaks: "P5, F18", bug: "a handler that failed completes its event",
		old: `out[len(out)-1] = reflect.ValueOf(run.failed(err))`,
		new: `_ = run.complete(nil, 0)`,
		by:  "TestFailedEventRunsAgain",
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
		file: "middleware/caller.go", breaks: "F28", bug: "with a key function of the user's, everybody who knows the key gets the answer",
		old: `		k.Payload = by
`,
		new: `		_ = k
`,
		by: "TestStrangerGetsNoStoredAnswer",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P5", bug: "the event of a handler without a result is not completed",
		old: `	if r.lock == nil {
		return nil
	}
	err := r.lock.CompleteFor(result, remember)`,
		new: `	if r.lock == nil || result == nil {
		return nil
	}
	err := r.lock.CompleteFor(result, remember)`,
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
		old: `			return run.failed(err)`,
		new: `			run.complete(nil, 0)
			return err`,
		by: "TestBatchPoison|TestEachS3Record|TestEventBridgeDetail",
	},
	{
		file: "middleware/handlerrun.go", breaks: "F49", bug: "any number as a status makes a result a response",
		old: `status >= http.StatusContinue && status < 600`,
		new: `status != 0`,
		by:  "TestNotOverHTTP",
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
		file: "middleware/rawhandler.go", breaks: "F49", bug: "the status that a lambda.Handler returns means nothing",
		old: `	run.judge(out)
`,
		new: ``,
		by:  "TestHTTPByValue",
	},
	{
		file: "middleware/policy.go", breaks: "P6", bug: "a handler without an error acknowledges an event whose lock is held",
		old: `sig.t.NumOut() == 0 && (held == fail || held == coalesce || completed == fail)`,
		new: `sig.t.NumOut() == 0 && (held == coalesce || completed == fail)`,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/policy.go", breaks: "P5", bug: "Replay takes a result that cannot be decoded",
		old: `case sig.result.Kind() == reflect.Interface && sig.result.NumMethod() > 0:`,
		new: `case sig.result.Kind() == reflect.Struct && sig.result.NumMethod() < 0:`,
		by:  "TestReplayNeedsAResultThatCanBeDecoded",
	},
	{
		file: "middleware/policy.go", breaks: "P6", bug: "one stream is returned to several callers",
		old: `if bodyOf(response) != nil {`,
		new: `if false {`,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/stream.go", breaks: "P6", bug: "one streaming response without a body is returned to several callers",
		old: `body != nil && *body != nil {`,
		new: `body != nil {`,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/observe.go", breaks: "P7", bug: "names of keys are logged without LogKeys",
		old: `if w.engine.LogKeys {`,
		new: `if !w.engine.LogKeys {`,
		by:  "TestLogKeys",
	},
	{
		file: "middleware/metrics.go", breaks: "observation", bug: "an invocation inside another one has totals of its own",
		old: `w.metrics == nil || tallyOf(ctx) != nil`,
		new: `w.metrics == nil`,
		by:  "TestMetricsOfNestedWrappers",
	},
	{
		file: "middleware/stream.go", breaks: "observation", bug: "the totals end before a streamed response",
		old: `completes: r.completes(v, sent.encoded()), measured: keepOpen(r.ctx)}`,
		new: `completes: r.completes(v, sent.encoded()), measured: noTally}`,
		by:  "TestMetricsOfAStream",
	},
	{
		file: "middleware/metrics.go", breaks: "observation", bug: "records that are not begun count as one",
		old: `+= max(o.Records, 1)`,
		new: `+= 1`,
		by:  "TestMetricsOfABatch",
	},
	{
		file: "middleware/records.go", breaks: "observation", bug: "an event that is refused as a whole is not measured",
		old: `		ctx, done := b.measure(ctx)
`,
		new: `		done := noTally
`,
		by: "TestMetricsOfEveryWrapper",
	},
}

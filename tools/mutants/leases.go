package main

// leases has the bugs in how a lease is renewed, ended and remembered.
var leases = []mutant{
	// The heartbeat.
	{
		file: "lock/heartbeat.go", breaks: "P2, F4", bug: "a heartbeat takes another owner's row for its own",
		old: `	return row, ok, err
}

func (l *Lock) observeBeat`,
		new: `	return row, ok || err == nil && !row.Until.Before(*until), err
}

func (l *Lock) observeBeat`,
		by: "TestHeartbeatNoticesLoss",
	},
	{
		file: "lock/heartbeat.go", breaks: "F4", bug: "a renewal whose answer was lost counts as a lost lease",
		old: `row.Token != l.claim.Token || row.Until.Before(*until)`,
		new: `row.Token == l.claim.Token`,
		by:  "TestLeaseOfFailedHandOver",
	},
	{
		file: "lock/heartbeat.go", breaks: "F39", bug: "a heartbeat is not waited for",
		old: `if !h.stuck.Load() {`,
		new: `if false {`,
		by:  "TestReleaseWaitsForHeartbeat",
	},
	{
		file: "lock/heartbeat.go", breaks: "F48", bug: "an observer that ends its lock hangs",
		old: `func() { close(enough) })`,
		new: `func() {})`,
		by:  "TestLockEndsInsideAnObserver",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2, F15", bug: "a heartbeat renews a lease that ended while the process was frozen",
		old: `left := limit.Sub(wall)`,
		new: `left := l.timing.beat + limit.Sub(limit) + wall.Sub(wall)`,
		by:  "TestFrozenHolder",
	},
	{
		file: "lock/heartbeat.go", breaks: "F7", bug: "a heartbeat reports a lease that ends during its completion",
		old: `if left <= 0 && l.hasEnded(ctx) {`,
		new: `if left < -1<<62 && l.hasEnded(ctx) {`,
		by:  "TestCompletionOutlivesItsLease",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2", bug: "a renewed lease counts from the answer",
		old: `		l.confirm(until)
`,
		new: `		l.confirm(l.locker.leaseEnd(l.timing, time.Now()))
`,
		by: "TestLeaseCountsFromRequest",
	},
	{
		file: "lock/heartbeat.go", breaks: "P4", bug: "a renewal writes a longer lease than its owner believes",
		old: `Now: now, Until: *until, DeleteAfter: keepHeld(*until),`,
		new: `Now: now, Until: until.Add(time.Minute), DeleteAfter: keepHeld(*until),`,
		by:  "TestHeartbeatRenewsLease",
	},
	{
		file: "lock/heartbeat.go", breaks: "P4", bug: "a renewal lets the row expire with its lease",
		old: `Now: now, Until: *until, DeleteAfter: keepHeld(*until),`,
		new: `Now: now, Until: *until, DeleteAfter: *until,`,
		by:  "TestHeartbeatRenewsLease",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2, F16", bug: "a heartbeat ends with the caller's context",
		old: `context.WithCancel(context.WithoutCancel(l.ctx))`,
		new: `context.WithCancel(l.ctx)`,
		by:  "TestHeartbeatOutlivesContext",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2", bug: "a heartbeat that is stuck does not end the work",
		old: `	l.watch()
	go func`,
		new: `	go func`,
		by:  "TestStuckHeartbeat",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2", bug: "a heartbeat that lost the lease does not end the work",
		old: `			if !stopped { // even if an observer ended this goroutine
				lose(l.lostError())
			}
`,
		new: `			_ = stopped
`,
		by: "TestHeartbeatNoticesLoss",
	},
	{
		file: "lock/heartbeat.go", breaks: "F48", bug: "a panic of an observer on the heartbeat is swallowed",
		old: `		panic(h.panicked)
`,
		new: `		h.panicked = nil
`,
		by: "TestPanicInHeartbeat",
	},
	{
		file: "lock/heartbeat.go", breaks: "F48", bug: "a panic of an observer ends the process",
		old: `if p := recover(); p != nil && h.panicked == nil {`,
		new: `if p := h.panicked; p != nil {`,
		by:  "TestPanicInHeartbeat",
	},
	{
		file: "lock/heartbeat.go", breaks: "F54", bug: "after a hand-over, the work goes on past the end of its lease",
		old: `func() { l.beat.lose(l.lostError()) })`,
		new: `func() {})`,
		by:  "TestWorkAfterHandOver",
	},

	// How a lock ends.
	{
		file: "lock/settlement.go", breaks: "P5, F7", bug: "a failed completion releases the name",
		old: `		return OutcomeCompleteFailed, err
`,
		new: `		_, _, _ = l.locker.store.Settle(s.ctx, &driver.Settlement{Name: l.claim.Name, Token: l.claim.Token})
		return OutcomeCompleteFailed, err
`,
		by: "TestFailedCompletion",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F6", bug: "a completion whose answer was lost counts as a lost lease",
		old: `case ok || s.unsure && l.wasApplied(s):`,
		new: `case ok:`,
		by:  "TestUnansweredCompletionThenTakeover|TestLostAnswerOfOrderedCompletion",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F21", bug: "a refused completion counts as applied",
		old: `case ok || s.unsure && l.wasApplied(s):`,
		new: `case ok || l.wasApplied(s):`,
	},
	{
		file: "lock/settlement.go", breaks: "P5, F6", bug: "a completion without an answer counts as applied, whatever the row says",
		old: `		return s.row.Memory.Has(l.claim.Event, `,
		new: `		return true || s.row.Memory.Has(l.claim.Event, `,
		by:  "TestUnansweredCompletionThenTakeover",
	},
	{
		file: "lock/settlement.go", breaks: "F53", bug: "a transaction of a mutex without an answer counts as applied",
		old: `		return s.transaction == nil
`,
		new: `		return true
`,
		by: "TestTransaction|TestTransactionWithoutEvent",
	},
	{
		file: "lock/settlement.go", breaks: "P4", bug: "a release needs the caller's context, which may have ended",
		old: `		ctx:     context.WithoutCancel(l.ctx),
`,
		new: `		ctx:     l.ctx,
`,
		by: "TestWorkOutlivesItsDeadline|TestLateCompletionHasTime",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F7", bug: "the heartbeat stops before the completion has its answer",
		old: `if l.beat != nil && !s.completes && s.transaction == nil {`,
		new: `if l.beat != nil && s.transaction == nil {`,
		by:  "TestHeartbeatContinuesDuringCompletion",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "Complete after Release returns nil",
		old: `how == released || how == left {`,
		new: `how == left {`,
		by:  "TestCompleteAndReleaseTwice|TestMutexHasNoDuplicates",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "a second Complete hides that the first one failed",
		old: `	l.outcome = err
	return outcome, err
`,
		new: `	l.outcome = nil
	return outcome, err
`,
		by: "TestCompleteAndReleaseTwice|TestFailedCompletion",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "a second end does not wait for the first",
		old: `	l.settling <- struct{}{}
	if l.ending.CompareAndSwap(0, how) {
		return true
	}
	<-l.settling
`,
		new: `	if l.ending.CompareAndSwap(0, how) {
		l.settling <- struct{}{}
		return true
	}
`,
		by: "TestSecondEndWaitsForTheFirst",
	},
	{
		file: "lock/settlement.go", breaks: "F53", bug: "a lock goes on after a transaction that may have been applied",
		old: `if err != nil && s.transaction != nil && !s.unsure {`,
		new: `if err != nil && s.transaction != nil {`,
		by:  "TestTransaction",
	},
	{
		file: "lock/settlement.go", breaks: "F53", bug: "a transaction completes a lock that was handed over",
		old: `	if l.handedOver {
		l.ending.Store(0)`,
		new: `	if l.handedOver && l.locker == nil {
		l.ending.Store(0)`,
		by: "TestTransactionAfterHandOver",
	},
	{
		file: "lock/settlement.go", breaks: "F7", bug: "a completion leaves no time to answer",
		old: `deadline.Add(-min(timeToAnswer, l.timing.reserve/2, left/2))`,
		new: `deadline`,
		by:  "TestCompletionLeavesTimeToRespond",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F55", bug: "a completion gives up as early as a release",
		old: `		until = deadline
`,
		new: ``,
		by:  "TestCompletionRetriesUntilDeadline|TestHowLongASettlementTries",
	},
	{
		file: "lock/settlement.go", breaks: "F7, F12", bug: "CompleteWithin passes the deadline",
		old: `		until = now.Add(within)`,
		new: `		return now.Add(within)`,
		by:  "TestHowLongASettlementTries",
	},
	{
		file: "lock/settlement.go", breaks: "F48", bug: "the release after an observer's panic is not repeated",
		old: `	_, _ = l.write(l.settlement(false))
`,
		new: `	_, _ = l.write(l.settlement(false).endBy(l.clock.Now().Add(20 * time.Millisecond)))
`,
		by: "TestReleaseAfterAPanicIsRepeated",
	},
	{
		file: "lock/settlement.go", breaks: "F6", bug: "an ordered completion whose answer was lost counts as lost after a later order",
		old: `	return s.row.Memory.HighestOrder >= l.claim.Order`,
		new: `	return s.row.Memory.HighestOrder == l.claim.Order`,
		by:  "TestLostAnswerOfOrderedCompletion",
	},
	{
		file: "lock/settlement.go", breaks: "P4", bug: "after the deadline a release gets no time at all",
		old: `		return now.Add(maxBudget / 8)
`,
		new: `		return now
`,
		by: "TestHowLongASettlementTries|TestLateCompletionHasTime",
	},
	{
		file: "lock/settlement.go", breaks: "P4", bug: "the row of a released lock expires immediately",
		old: `s.request.DeleteAfter = keepUntil(memory, `,
		new: `s.request.DeleteAfter = keepUntil(memory, time.Time{}.Add(time.Hour), 0); _ = keepUntil(memory, `,
		by:  "TestRowExpiry",
	},
	{
		file: "lock/memory.go", breaks: "P5, F23", bug: "an order is remembered for a day only",
		old: `	if m.HighestOrder != "" {
		keep = later(keep, now.Add(remember))
	}
`,
		new: `	_ = remember
`,
		by: "TestRowOutlivesItsOrder",
	},

	{
		file: "lock/handover.go", breaks: "P5", bug: "an event that was handed over is remembered for a day only",
		old: `Token: t.Token}, remember: t.Remember,`,
		new: `Token: t.Token}, remember: l.opts.Remember,`,
		by:  "TestResumedEventIsRememberedAsAcquired",
	},

	// What a name remembers.
	{
		file: "lock/memory.go", breaks: "P5", bug: "an order falls when an unordered or earlier event completes",
		old: `HighestOrder: max(m.HighestOrder, c.order)`,
		new: `HighestOrder: c.order`,
		by:  "TestUnorderedEventKeepsOrder",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "expired events take the room of others",
		old: `if old.Event != c.event && !old.Expired(c.now) {`,
		new: `if old.Event != c.event {`,
		by:  "TestExpiredEventsMakeRoom",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "an event is remembered twice",
		old: `if old.Event != c.event && !old.Expired(c.now) {`,
		new: `if !old.Expired(c.now) {`,
		by:  "TestEventIsRememberedOnce",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "only seven events are remembered at least",
		old: `defaultRememberEvents = 8`,
		new: `defaultRememberEvents = 7`,
		by:  "TestLastEventsAreRemembered",
	},
	{
		file: "lock/memory.go", breaks: "P5, F46", bug: "the events of one delivery push each other out",
		old: `before-i <= r.least || r.batch[c.Event] && size <= forBatch`,
		new: `before-i <= r.least && forBatch > 0`,
		by:  "TestDeliveryIsRemembered",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "the first events of a name stay, and not the last",
		old: `before-i <= r.least || r.batch`,
		new: `i < r.least || r.batch`,
		by:  "TestLastEventsAreRemembered",
	},
	{
		file: "lock/memory.go", breaks: "F35", bug: "a row grows beyond what a store takes",
		old: `if size > largestRow || size > usualRow && !stays {`,
		new: `if size > usualRow && !stays {`,
		by:  "TestRowStaysBelowSizeLimit",
	},
	{
		file: "lock/memory.go", breaks: "F35", bug: "a result that is too large is kept, so that the completion fails",
		old: `if room.size(next)+len(next.Result.Body) > largestRow {`,
		new: `if room.size(next) > largestRow {`,
		by:  "TestRowStaysBelowSizeLimit|TestResult|TestOldResultMakesRoom",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "a duplicate gets the result of an earlier run",
		old: `case m.Result.Event != c.event && next.Has(`,
		new: `case next.Has(`,
		by:  "TestResultOfEarlierRun|TestResult|TestResultOfAnotherEvent",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "a row may be deleted before what it remembers expires",
		old: `		keep = later(keep, c.Until)
`,
		new: `		_ = c
`,
		by: "TestRowOutlivesItsMemory",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "a row lives only as long as the event that was completed first",
		old: `	for _, c := range m.Completed {
		keep =`,
		new: `	for _, c := range m.Completed[:min(1, len(m.Completed))] {
		keep =`,
		by: "TestRowOutlivesItsMemory",
	},
	{
		file: "lock/memory.go", breaks: "P3, F24", bug: "a row of which nothing is remembered may be deleted immediately",
		old: `keep := now.Add(keepRow)`,
		new: `keep := now`,
		by:  "TestRowExpiry|TestFenceAfterRowDeletion",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "the row of a dead holder is kept for a day, whatever others remember",
		old: `return until.Add(longestRemember)`,
		new: `return until.Add(keepRow)`,
		by:  "TestRowExpiry|TestRowOutlivesItsMemory",
	},
	{
		file: "internal/event/invocation/invocation.go", breaks: "F12", bug: "the last record of a batch may begin without time to run",
		old: `deadline.Add(-MinRun - Reserve(`,
		new: `deadline.Add(-Reserve(`,
		by:  "TestLastStart",
	},
	{
		file: "internal/event/invocation/invocation.go", breaks: "F22", bug: "a deadline in 1970 is believed",
		old: `		return context.WithoutCancel(ctx)
`,
		new: `		return ctx
`,
		by: "TestImplausibleDeadline",
	},

	// Locks that are handed over.
	{
		file: "lock/handover.go", breaks: "F22", bug: "a step believes a deadline in 1970",
		old: `ctx: invocation.Believable(ctx), clock: c`,
		new: `ctx: ctx, clock: c`,
		by:  "TestResumeUnderAnImplausibleDeadline",
	},
	{
		file: "lock/handover.go", breaks: "P2, F54", bug: "the first renewal of a resumed lock is due after its lease",
		old: `	now := l.wall().Truncate(time.Microsecond)
	if t.Until`,
		new: `	l.timing.beat = l.timing.lease
	now := l.wall().Truncate(time.Microsecond)
	if t.Until`,
		by: "TestLeaseOfAStep",
	},
	{
		file: "lock/handover.go", breaks: "P2, F14, F54", bug: "a resumed lease ends less than Grace after the deadline",
		old: `	now := l.wall().Truncate(time.Microsecond)
	if t.Until`,
		new: `	if !l.timing.renew && l.timing.lease == 0 {
		l.timing.killed = l.timing.killed.Add(-1500 * time.Millisecond)
	}
	now := l.wall().Truncate(time.Microsecond)
	if t.Until`,
		by: "TestLeaseOfAStep",
	},
	{
		file: "lock/heartbeat.go", breaks: "F54", bug: "a hand-over for less than is left of the lease asks for an earlier end",
		old: `until := later(now.Add(lease), time.UnixMicro(l.until.Load()))`,
		new: `until := now.Add(lease)`,
		by:  "TestShortHandOverWithoutDetail",
	},
	{
		file: "lock/handover.go", breaks: "F54", bug: "a heartbeat goes on after a hand-over",
		old: `		l.stopForGood()
`,
		new: `		_ = l.stopForGood
`,
		by: "TestHandOver|TestHandOverRequests|TestWorkAfterHandOver",
	},
	{
		file: "lock/handover.go", breaks: "P5, F54", bug: "the step that hands over completes the event",
		old: `	l.handedOver = true
`,
		new: `	l.handedOver = false
`,
		by: "TestHandOver",
	},
	{
		file: "lock/handover.go", breaks: "F54", bug: "a lock that has ended is handed over",
		old: `	if l.ending.Load() != 0 {
		return 0, l.lostError()
	}
`,
		new: ``,
		by:  "TestLeave",
	},
	{
		file: "lock/handover.go", breaks: "F54", bug: "a step resumes a lease that ends before it could work",
		old: `	return r.sent, l.check()
`,
		new: `	return r.sent, nil
`,
		by: "TestResumeOutlastsLease|TestResumeByOtherClocks",
	},
	{
		file: "lock/handover.go", breaks: "F54", bug: "a step shortens the lease that it resumes",
		old: `l.claim.Until = later(l.locker.leaseEnd(l.timing, now), moved)`,
		new: `l.claim.Until, _ = l.locker.leaseEnd(l.timing, now), moved`,
		by:  "TestResumeWithoutDetail",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "a resumed step runs again after the event was completed",
		old: `	case !ok && l.isCompleted():
		return r.sent, completedError(l.key, &l.row, l.claim.Event)
`,
		new: `	case !ok && l.isCompleted():
`,
		by: "TestHandOver|TestWorthlessTickets",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "an edited handle completes another event",
		old: `fmt.Appendf(nil, "%q %q %d", event, order, remember)`,
		new: `fmt.Appendf(nil, "%q %d", order, remember)`,
		by:  "TestEditedTickets",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "an edited ticket makes later events stale",
		old: `fmt.Appendf(nil, "%q %q %d", event, order, remember)`,
		new: `fmt.Appendf(nil, "%q %d", event, remember)`,
		by:  "TestEditedTickets",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "an edited ticket makes the event forgotten early",
		old: `fmt.Appendf(nil, "%q %q %d", event, order, remember)`,
		new: `fmt.Appendf(nil, "%q %q", event, order)`,
		by:  "TestEditedTickets",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "a handle's order may become part of its event",
		old: `fmt.Appendf(nil, "%q %q %d", event, order, remember)`,
		new: `fmt.Appendf(nil, "%s%s %d", event, order, remember)`,
		by:  "TestEditedTickets",
	},
	{
		file: "lock/observation.go", breaks: "F21", bug: "a lost lease is not seen where only errors are logged",
		old: `	case OutcomeLost, OutcomeCompleteFailed, OutcomeStoreFailed`,
		new: `	case OutcomeCompleteFailed, OutcomeStoreFailed`,
		by:  "TestLostLeaseIsAnError",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2, F54", bug: "a lock is lost if another process that resumed it moves the end twice",
		old: `	for range 4 {
		raise(&l.asked`,
		new: `	for range 2 {
		raise(&l.asked`,
		by: "TestOthersMoveTheEnd",
	},
}

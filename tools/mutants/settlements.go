package main

// settlements has the bugs in how a lock ends.
var settlements = []mutant{
	{
		file: "lock/lock.go", breaks: "P2, F1", bug: "the lease of an earlier copy of the claim is taken for that of a later one",
		old: `		l.claim.Until = l.row.Until
	}`,
		new: `		l.claim.Until = l.claim.Until.Add(0)
	}`,
		by: "TestLeaseThatTheStoreShortens",
	},
	{
		file: "lock/lock.go", breaks: "P2", bug: "the heartbeat has no deadline of the work above it",
		old: `	if !end.IsZero() {
		ctx, stop`,
		new: `	if end.IsZero() && l.locker == nil {
		ctx, stop`,
		by: "TestReserve",
	},
	{
		file: "lock/lock.go", breaks: "P2, F20", bug: "the work under a fixed lease goes on until it ends",
		old: `Add(-l.timing.margin) }`,
		new: `Add(0) }`,
		by:  "TestFixedLeaseStopsTheWork",
	},
	{
		file: "lock/lock.go", breaks: "P2, F14", bug: "a lease counts from the answer to its claim",
		old: `l.until.Store(l.claim.Until.UnixMicro())`,
		new: `l.until.Store(l.claim.Until.Add(a.decided.Sub(a.dated)).UnixMicro())`,
		by:  "TestLeaseCountsFromRequest",
	},
	{
		file: "lock/lock.go", breaks: "P2", bug: "a lease that was confirmed moves back",
		old: `n <= known || v.CompareAndSwap(known, n)`,
		new: `v.CompareAndSwap(known, n)`,
		by:  "TestHandOverDuringARenewal",
	},
	{
		file: "lock/lock.go", breaks: "P2, F58", bug: "the time of a lease goes back with the wall clock",
		old: `l.time.Add(max(now.Sub(l.read), now.Round(0).Sub(l.read.Round(0))))`,
		new: `now.Round(0)`,
		by:  "TestClockIsSetBackDuringAHold",
	},
	{
		file: "lock/lock.go", breaks: "P2, F15", bug: "the work does not end with the fixed leases of the locks around it",
		old: `if held.timing.lease == 0 || held.timing.renew {`,
		new: `if held != l || held.timing.lease == 0 || held.timing.renew {`,
		by:  "TestFrozenBeforeTheWork",
	},
	{
		file: "lock/lock.go", breaks: "F20", bug: "the inner lock is blamed for the end of the outer lease",
		old: `end, cause = lost, held.lostError()`,
		new: `end, cause = lost, l.lostError()`,
		by:  "TestLostErrorNamesTheOuterLock",
	},
	{
		file: "lock/lock.go", breaks: "P2, F15", bug: "the heartbeats of the locks around the work are late by a freeze",
		old: `held.beat.look()`,
		new: `_ = held.beat.look`,
		by:  "TestFrozenBeforeTheWork",
	},
	{
		file: "lock/lock.go", breaks: "P2, F15", bug: "work begins under a lock whose lease has ended",
		old: `if !held.wall().Before(held.lostAt()) {`,
		new: `if held == l && !held.wall().Before(held.lostAt()) {`,
		by:  "TestFrozenBeyondTheLease|TestSlowAcquireAll",
	},
	{
		file: "lock/lock.go", breaks: "P4", bug: "a lock that was released ends the work under a later one",
		old: `if (held == l || held.ending.Load() == 0) && !yield(held) {`,
		new: `if !yield(held) {`,
		by:  "TestLockAfterTheOuterOne",
	},
	{
		file: "lock/timing.go", breaks: "F7", bug: "a completion without a deadline gives up after 2 s instead of at the end of its lease",
		old: `until = later(until, now.Add(time.UnixMicro(l.until.Load()).Sub(l.wall())))`,
		new: `until = now.Add(maxBudget)`,
		by:  "TestCompletionWithoutDeadline",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F56", bug: "a completion is believed if the row is gone",
		old: `!s.completes || s.row.Untold:`,
		new: `!s.completes || s.row.Unknown():`,
		by:  "TestCompletionWhoseRowGoesBack",
	},
	{
		file: "lock/settlement.go", breaks: "F55", bug: "after one throttled completion all claims give up for ever",
		old: `			l.locker.pressed.Add(-1)`,
		new: `			l.locker.pressed.Add(0)`,
		by:  "TestClaimsAfterThrottledCompletion",
	},
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
		old: `err != nil && s.transaction != nil && !s.unsure;`,
		new: `err != nil && s.transaction != nil;`,
		by:  "TestTransaction",
	},
	{
		file: "lock/transaction.go", breaks: "F53", bug: "a transaction completes a lock that was handed over",
		old: `	if l.handedOver {
		l.ending.Store(0)`,
		new: `	if l.handedOver && l.locker == nil {
		l.ending.Store(0)`,
		by: "TestTransactionAfterHandOver",
	},
	{
		file: "lock/timing.go", breaks: "F7", bug: "a completion leaves no time to answer",
		old: `deadline.Add(-min(invocation.TimeToAnswer, l.timing.reserve/2, left/2))`,
		new: `deadline`,
		by:  "TestCompletionLeavesTimeToRespond",
	},
	{
		file: "lock/timing.go", breaks: "P5, F55", bug: "a completion gives up as early as a release",
		old: `		until = deadline
`,
		new: ``,
		by:  "TestCompletionRetriesUntilDeadline|TestHowLongASettlementTries",
	},
	{
		file: "lock/timing.go", breaks: "F7, F12", bug: "CompleteWithin passes the deadline",
		old: `		until = now.Add(within)`,
		new: `		return now.Add(within)`,
		by:  "TestHowLongASettlementTries",
	},
	{
		file: "lock/settlement.go", breaks: "F48", bug: "the release after an observer's panic is not repeated",
		old: `	s := l.settlement(false)
	_, _ = l.write(s)`,
		new: `	s := l.settlement(false).endBy(l.clock.Now().Add(20 * time.Millisecond))
	_, _ = l.write(s)`,
		by: "TestReleaseAfterAPanicIsRepeated",
	},
	{
		file: "lock/settlement.go", breaks: "F6", bug: "an ordered completion whose answer was lost counts as lost after a later order",
		old: `	return s.row.Memory.HighestOrder >= l.claim.Order`,
		new: `	return s.row.Memory.HighestOrder == l.claim.Order`,
		by:  "TestLostAnswerOfOrderedCompletion",
	},
	{
		file: "lock/timing.go", breaks: "P4", bug: "after the deadline a release gets no time at all",
		old: `		return now.Add(maxBudget / 8)
`,
		new: `		return now
`,
		by: "TestLateCompletionIsTried",
	},
	{
		file: "lock/settlement.go", breaks: "P4", bug: "the row of a released lock expires immediately",
		old: `s.request.DeleteAfter = keepUntil(memory, `,
		new: `s.request.DeleteAfter = keepUntil(memory, time.Time{}.Add(time.Hour), 0); _ = keepUntil(memory, `,
		by:  "TestRowExpiry",
	},
	{
		file: "lock/transaction.go", breaks: "F53", bug: "a transaction completes one lock of a set",
		old: `	if l.set != nil {
		return &ConfigError`,
		new: `	if l.set != nil && l.locker == nil {
		return &ConfigError`,
		by: "TestSetIsEndedAsAWhole",
	},
	{
		file: "lock/settlement.go", breaks: "P4, F3", bug: "the release of a resumed lock raises no stamp, so that a late claim is granted",
		old: `Stamp: l.row.Stamp},`,
		new: `Stamp: l.claim.Stamp},`,
		by:  "TestLateClaimAfterResume",
		in:  "stores/redisstore/redisquorum",
	},
	{
		file: "lock/settlement.go", breaks: "P7", bug: "the end of a nested lock that was lost panics",
		old: `	if outcome == OutcomeReleased && s.resultDropped {
`,
		new: `	if outcome == OutcomeLost && l.outer != nil && l.set == nil {
		panic((*Lock)(nil).outer)
	}
	if outcome == OutcomeReleased && s.resultDropped {
`,
		by: "TestSimulation",
	},
	{
		file: "lock/settlement.go", breaks: "P7", bug: "the end of a lock that was lost panics",
		old: `	if outcome == OutcomeReleased && s.resultDropped {
`,
		new: `	if outcome == OutcomeLost {
		panic((*Lock)(nil).outer)
	}
	if outcome == OutcomeReleased && s.resultDropped {
`,
		by: "TestDelivery", in: "internal/robustness/delivery",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "a completion that needed two attempts counts as lost",
		old: `case ok || s.unsure && l.wasApplied(s):`,
		new: `case ok && !s.unsure || s.unsure && !ok && l.wasApplied(s):`,
		by:  "TestSimulation",
	},
	{
		file: "lock/transaction.go", breaks: "F29", bug: "a transaction of a set tells its name",
		old: `"key " + l.key.Digest() + " was locked together with others, and a transaction`,
		new: `"key " + l.key.Name + " was locked together with others, and a transaction`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/transaction.go", breaks: "F29", bug: "a transaction that comes too late tells the name",
		old: `"the lock of key " + l.key.Digest() + " has ended already`,
		new: `"the lock of key " + l.key.Name + " has ended already`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/settlement.go", breaks: "observation", bug: "the requests of a transaction that is declined are not observed",
		old: `		l.unreported.Add(int64(s.sent))
`,
		new: ``,
		by:  "TestEveryRequestIsObserved",
	},
	{
		file: "lock/settlement.go", breaks: "observation", bug: "the requests for a lock that nobody gets are not observed",
		old: `	return s.sent
`,
		new: `	return 0
`,
		by: "TestEveryRequestIsObserved",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "the requests of a completion are observed twice",
		old: `o := l.observation(outcome, s.began, 0, err)`,
		new: `o := l.observation(outcome, s.began, s.sent, err)`,
		by:  "TestEveryRequestIsObserved",
	},
}

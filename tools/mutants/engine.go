package main

// engine has the bugs in what a row means and in how one lock is acquired,
// renewed and ended.
var engine = []mutant{
	// lock/driver: what a row means for a claim.
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "a completed event runs again",
		old: `case c.Event != "" && r.Memory.Has(c.Event, c.Now):`,
		new: `case c.Event != "" && r.Token == "" && r.Memory.Has(c.Event, c.Now):`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "a stale event without an Event runs",
		old: `case c.Order != "" && r.Memory`,
		new: `case c.Order != "" && c.Event != "" && r.Memory`,
		by:  "TestConformance",
	},
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "an event with the order of a completed one runs",
		old: `c.Order <= r.Memory.HighestOrder`,
		new: `c.Order < r.Memory.HighestOrder`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P4, F3", bug: "a copy of an earlier round undoes a later one",
		old: `r.Stamp.After(c.Stamp) || r.Until.After(c.Until)`,
		new: `r.Until.After(c.Until)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P2, F4", bug: "a late copy of the claim undoes a renewal",
		old: `r.Stamp.After(c.Stamp) || r.Until.After(c.Until)`,
		new: `r.Stamp.After(c.Stamp)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "F1", bug: "a claim that meets its own first copy is refused",
		old: `		return Granted
	case r.Token != "" && !r`,
		new: `		return Held
	case r.Token != "" && !r`,
		by: "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P1", bug: "a lease can be taken at the instant at which it ends",
		old: `!r.Until.Before(c.Now)`,
		new: `r.Until.After(c.Now)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P4, F3", bug: "a late claim of the last stamp brings a released lock back",
		old: `!r.Stamp.Before(c.Stamp)`,
		new: `r.Stamp.After(c.Stamp)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "F41", bug: "a row of a newer version is taken",
		old: `	case r.Newer:
		return Newer
	case c.Event`,
		new: `	case c.Event`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/memory.go", breaks: "P5", bug: "an event is refused for ever",
		old: `c.Event == event && !c.Expired(now)`,
		new: `c.Event == event`,
		by:  "TestMemoryHas",
	},
	{
		file: "lock/driver/memory.go", breaks: "P5", bug: "an event is forgotten a millisecond early",
		old: `c.Until.UnixMilli() < now.UnixMilli()`,
		new: `c.Until.UnixMilli() <= now.UnixMilli()`,
		by:  "TestMemoryHas",
	},

	// How a lock is acquired.
	{
		file: "lock/acquisition.go", breaks: "F1", bug: "a claim whose answer was lost takes its own lock for another's",
		old: `err == nil && (ok || a.row.Token == a.claim.Token), err`,
		new: `err == nil && ok, err`,
		by:  "TestRefusalByOwnRow",
	},
	{
		file: "lock/acquisition.go", breaks: "P1", bug: "every answer grants the name",
		old: `err == nil && (ok || a.row.Token == a.claim.Token), err`,
		new: `err == nil && (ok || a.row.Token != ""), err`,
		by:  "TestHeld",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F2", bug: "a claim without an answer is not given up",
		old: `if err != nil && a.requests.unsure {`,
		new: `if err != nil && a.requests.unsure && a.locker == nil {`,
		by:  "TestUnansweredClaimIsGivenUp",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F44", bug: "a claim that was refused after one without an answer is not given up",
		old: `if err != nil && a.requests.unsure {`,
		new: `if err != nil && a.requests.unsure && a.row.Token == "" {`,
		by:  "TestLateClaimIsRefused",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F44", bug: "a claim is given up without its stamp",
		old: `Abandon: true, Stamp: a.claim.Stamp,`,
		new: `Abandon: true,`,
		by:  "TestLateClaimIsRefused",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F3", bug: "a claim is given up by a plain release",
		old: `Abandon: true, Stamp: a.claim.Stamp,`,
		new: `Stamp: a.claim.Stamp,`,
		by:  "TestLateClaimIsRefused",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F2", bug: "a claim is given up on the context that has ended",
		old: `r.send(context.WithoutCancel(a.ctx), "release"`,
		new: `r.send(a.ctx, "release"`,
		by:  "TestLateClaimIsRefused",
	},
	{
		file: "lock/acquisition.go", breaks: "F11", bug: "a claim leaves no time for giving it up",
		old: `until := a.clock.Now().Add(a.timing.budget * 3 / 4)`,
		new: `until := a.clock.Now().Add(a.timing.budget)`,
		by:  "TestGivingUpStaysWithinBudget",
	},
	{
		file: "lock/acquisition.go", breaks: "F11", bug: "giving up a claim takes more time than was kept for it",
		old: `Add(a.timing.budget / 4)}`,
		new: `Add(a.timing.budget * 4)}`,
		by:  "TestHungStoreStaysWithinBudget",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F3", bug: "a claim is dated anew for every attempt",
		old: `		a.row, ok, err = a.locker.store.Acquire(ctx, &a.claim)`,
		new: `		a.dateClaim()
		a.row, ok, err = a.locker.store.Acquire(ctx, &a.claim)`,
		by: "TestRetriesAreIdentical",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F3", bug: "a later round has the stamp of an earlier one",
		old: `	a.floor = later(a.floor, a.claim.Stamp)
`,
		new: ``,
		by:  "TestCopiesOfEarlierRounds|TestStampIsRaised",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F15", bug: "a later round has an earlier end, after the clock was set back",
		old: `a.claim.Until = later(a.claim.Until, before)`,
		new: `_ = before`,
		by:  "TestEarlierRoundAfterClockSetBack",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F14", bug: "a clock that is behind keeps a free name from being taken",
		old: `a.floor = later(a.floor, a.row.Stamp)`,
		new: `_ = a.row.Stamp`,
		by:  "TestClockBehindTheLastOwner",
	},
	{
		file: "lock/handover.go", breaks: "P1", bug: "the token is that of the invocation, which retries reuse",
		old: `c.Text()[:16] + seal`,
		new: `c.Text()[:0] + seal`,
		by:  "TestHeld",
	},
	{
		file: "lock/acquisition.go", breaks: "F33", bug: "a nested call waits for itself",
		old: `	case a.heldByUs():
		return a.nestedError()
`,
		new: ``,
		by:  "TestNestedSameName",
	},
	{
		file: "lock/acquisition.go", breaks: "F37", bug: "an event in progress is not compared with its payload",
		old: `	case a.row.Event == a.claim.Event && a.mismatch(a.row.Payload):
		return &PayloadMismatchError{Key: a.key}
`,
		new: ``,
		by:  "TestPayload",
	},
	{
		file: "lock/acquisition.go", breaks: "F37", bug: "a completed event is not compared with its payload",
		old: `c.Event == a.claim.Event && a.mismatch(c.Payload)`,
		new: `c.Event != a.claim.Event && a.mismatch(c.Payload)`,
		by:  "TestPayload",
	},
	{
		file: "lock/acquisition.go", breaks: "P6", bug: "a duplicate in progress is not told from another event",
		old: `Duplicate: a.claim.Event != "" && a.row.Event == a.claim.Event,`,
		new: `Duplicate: a.row.Event == a.claim.Event,`,
		by:  "TestMutexHasNoDuplicates",
	},
	{
		file: "lock/acquisition.go", breaks: "P2", bug: "the work begins although the lease ended during the acquire",
		old: `		err = lk.check()
`,
		new: ``,
		by:  "TestAcquireOutlastsLease",
	},
	{
		file: "lock/acquisition.go", breaks: "P4, F48", bug: "an observer that panics keeps the name held",
		old: `				lk.drop()
`,
		new: `				_ = lk
`,
		by: "TestCallbacksThatPanic",
	},
	{
		file: "lock/acquisition.go", breaks: "P4", bug: "the row of a dead holder lives only as long as its lease",
		old: `a.claim.DeleteAfter = keepHeld(a.claim.Until)`,
		new: `a.claim.DeleteAfter = a.claim.Until`,
		by:  "TestRowExpiry",
	},
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
		file: "lock/lock.go", breaks: "P2", bug: "a lease that was confirmed moves back",
		old: `n <= known || v.CompareAndSwap(known, n)`,
		new: `v.CompareAndSwap(known, n)`,
		by:  "TestHandOverDuringARenewal",
	},
	{
		file: "lock/observation.go", breaks: "F20", bug: "a wait under a lease that ends is reported as lost",
		old: `	case errors.Is(err, ErrHeld):
		return OutcomeHeld
	case errors.Is(err, ErrLost):
		return OutcomeLost
`,
		new: `	case errors.Is(err, ErrLost):
		return OutcomeLost
	case errors.Is(err, ErrHeld):
		return OutcomeHeld
`,
		by: "TestWaitUnderALostLease",
	},
	{
		file: "lock/locker.go", breaks: "P4, F3", bug: "two claims in one microsecond have one stamp",
		old: `max(now.UnixMicro(), last+1)`,
		new: `max(now.UnixMicro(), last)`,
		by:  "TestRetriesAreIdentical",
	},
	{
		file: "lock/timing.go", breaks: "P2, F14", bug: "the work ends only half of Grace before its lease",
		old: `margin: l.opts.Grace}`,
		new: `margin: l.opts.Grace / 2}`,
		by:  "TestNoOverlapWithinGrace",
	},
	{
		file: "lock/timing.go", breaks: "P2, F16", bug: "a deadline that no platform enforces ends the lease",
		old: `&& ok && remaining <= invocation.LongestDeadline:`,
		new: `&& ok:`,
		by:  "TestCompletionRetryLimit",
	},
	{
		file: "lock/timing.go", breaks: "P4, F16", bug: "a deadline that no platform enforces prolongs the leases inside",
		old: `d.Sub(now) <= invocation.LongestDeadline {`,
		new: `!d.IsZero() {`,
		by:  "TestNestedLeaseNeedsANearDeadline",
	},
	{
		file: "lock/timing.go", breaks: "P2, F14", bug: "the lease ends with the deadline, without Grace",
		old: `t.killed.Add(l.opts.Grace).Round(0)`,
		new: `t.killed.Round(0)`,
		by:  "TestDeadHolder",
	},
	{
		file: "lock/timing.go", breaks: "F12", bug: "a lock is acquired although no time is left for work",
		old: `if left < need {`,
		new: `if left < 0 {`,
		by:  "TestDeadlineTooNear",
	},
	{
		file: "lock/timing.go", breaks: "F11", bug: "an acquire takes its full budget whatever is left",
		old: `t.budget = min(maxBudget, left/10)`,
		new: `t.budget = maxBudget`,
		by:  "TestHungStoreStaysWithinBudget",
	},
	{
		file: "lock/key.go", breaks: "F26", bug: "all events without a name share one lock",
		old: `	case k.Name == "":`,
		new: `	case k.Name == "" && k.Event == "":`,
		by:  "TestWrongKeys",
	},

	// How a claim waits.
	{
		file: "lock/wait.go", breaks: "F12", bug: "a wait leaves no time for the work",
		old: `Add(-invocation.MinRun - a.timing.budget)`,
		new: `Add(-0*invocation.MinRun - a.timing.budget)`,
		by:  "TestWaitLeavesTimeToRun",
	},
	{
		file: "lock/wait.go", breaks: "F38", bug: "a holder whose clock is ahead is asked all the time",
		old: `look = max(wall.Sub(a.row.Stamp), now.Sub(a.seen.at))`,
		new: `look = wall.Sub(a.row.Stamp)`,
		by:  "TestClockAheadCausesFewRequests",
	},
	{
		file: "lock/wait.go", breaks: "P4", bug: "a waiter takes the next holder for the one before",
		old: `if a.seen.token != a.row.Token {`,
		new: `if a.seen.token == "" {`,
		by:  "TestWaitForTheNextHolder",
	},
	{
		file: "lock/wait.go", breaks: "P4", bug: "a waiter sleeps past the end of a dead holder's lease",
		old: `return max(min(look, toEnd), time.Millisecond)`,
		new: `return max(look, min(look, toEnd), time.Millisecond)`,
		by:  "TestWaitForDeadHolder",
	},
	{
		file: "lock/wait.go", breaks: "F38", bug: "waiters do not spread out",
		old: `	look += clock.Jitter(a.clock, look/2) // so that waiters who came together spread out
`,
		new: `	_ = clock.Jitter(a.clock, look/2)
`,
		by: "TestWaitForDeadHolder",
	},

	{
		file: "lock/settlement.go", breaks: "F7", bug: "a completion without a deadline gives up after 2 s instead of at the end of its lease",
		old: `until = later(until, now.Add(time.UnixMicro(l.until.Load()).Sub(l.wall())))`,
		new: `until = now.Add(maxBudget)`,
		by:  "TestCompletionWithoutDeadline",
	},
	{
		file: "lock/options.go", breaks: "F19", bug: "a holder without a description hides that it was taken over",
		old: `text = cmp.Or(text, self)`,
		new: `_ = self`,
		by:  "TestHolderIsNeverEmptyNorLong",
	},
	{
		file: "lock/options.go", breaks: "F13", bug: "a long description of the holder makes every claim fail",
		old: `if len(text) > longestHolder {`,
		new: `if len(text) > 1<<20 {`,
		by:  "TestHolderIsNeverEmptyNorLong",
	},
	{
		file: "lock/leasemode.go", breaks: "P2, F14", bug: "a huge Grace overflows its check",
		old: `lease-shortestWork < grace`,
		new: `lease < grace+shortestWork`,
		by:  "TestHugeGrace",
	},

	// Clocks that are set during a hold, and rows that go back.
	{
		file: "lock/lock.go", breaks: "P2, F58", bug: "the time of a lease goes back with the wall clock",
		old: `l.time.Add(max(now.Sub(l.read), now.Round(0).Sub(l.read.Round(0))))`,
		new: `now.Round(0)`,
		by:  "TestClockIsSetBackDuringAHold",
	},
	{
		file: "lock/handover.go", breaks: "P1, F58", bug: "a lock is resumed without moving the end of its lease",
		old: `l.claim.Until = later(l.locker.leaseEnd(l.timing, now), moved)`,
		new: `l.claim.Until = later(l.locker.leaseEnd(l.timing, now), later(t.Until, moved.Add(-time.Second)))`,
		by:  "TestResumeBehindTheHandOver",
	},
	{
		file: "lock/heartbeat.go", breaks: "P1, F58", bug: "a later end that another process has set counts as a renewal",
		old: `until.UnixMicro() <= l.asked.Load() {`,
		new: `!ok {`,
		by:  "TestResumeBehindTheHandOver",
	},
	{
		file: "lock/settlement.go", breaks: "P5, F56", bug: "a completion is believed if the row is gone",
		old: `!s.completes || s.row.Untold:`,
		new: `!s.completes || s.row.Unknown():`,
		by:  "TestCompletionWhoseRowGoesBack",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "a server that does not tell the row counts as one that has none",
		old: `		s.mute.Store(true)
		row = driver.Row{Untold: true}
`,
		new: `		s.mute.Store(true)
		row = driver.Row{}
`,
		by: "TestConformanceWithoutOldItems",
	},

	// How requests are repeated.
	{
		file: "lock/retry.go", breaks: "P4, F2", bug: "an attempt without an answer is forgotten after the next one",
		old: `r.unsure = r.unsure || !e.Unapplied`,
		new: `r.unsure = !e.Unapplied`,
		by:  "TestUnansweredClaimIsGivenUp|TestLateClaimIsRefused",
	},
	{
		file: "lock/retry.go", breaks: "F11", bug: "one attempt may use up the whole time",
		old: `	if r.until.Before(limit) {`,
		new: `	if r.until.After(limit) {`,
		by:  "TestHungStoreStaysWithinBudget",
	},
	{
		file: "lock/retry.go", breaks: "F8, F55", bug: "a throttled claim is repeated without end",
		old: `return times >= claimPatience || l.pressed.Load() > 0`,
		new: `return false`,
		by:  "TestThrottledAcquireIsRetried|TestOverload",
	},
	{
		file: "lock/retry.go", breaks: "F55", bug: "claims go on while a completion is throttled",
		old: `return times >= claimPatience || l.pressed.Load() > 0`,
		new: `return times >= claimPatience`,
		by:  "TestCompletionsBeforeClaims",
	},
	{
		file: "lock/retry.go", breaks: "F9, F45", bug: "a conflict counts as throttling",
		old: `e.Temporary && e.Answered && !e.Conflict`,
		new: `e.Temporary && e.Answered`,
		by:  "TestConflictsAreRetried",
	},
	{
		file: "lock/retry.go", breaks: "F8, F55", bug: "a refusal throttles only if no earlier attempt may have been applied",
		old: `e.Temporary && e.Answered && !e.Conflict`,
		new: `e.Temporary && e.Answered && e.Unapplied && !e.Conflict`,
		by:  "TestAnsweredAndUnapplied",
	},
	{
		file: "lock/retry.go", breaks: "F2, F13", bug: "a request that was never sent counts as throttled",
		old: `e.Temporary && e.Answered && !e.Conflict`,
		new: `e.Temporary && e.Unapplied && !e.Conflict`,
		by:  "TestAnsweredAndUnapplied",
	},
	{
		file: "lock/retry.go", breaks: "P4, F2", bug: "a StoreError tells only what became of its last attempt",
		old: `e.Requests, e.Unapplied = r.sent, !r.unsure`,
		new: `e.Requests = r.sent`,
		by:  "TestAnsweredAndUnapplied|TestErrorReportsStoreAnswer",
	},
	{
		file: "lock/retry.go", breaks: "F10", bug: "a permanent error hides behind a throttle that came before",
		old: `next.Answered || !next.Temporary || !before`,
		new: `next.Answered || !before`,
		by:  "TestAnsweredAndUnapplied",
	},
	{
		file: "lock/retry.go", breaks: "F10", bug: "a permanent refusal is repeated",
		old: `r.once || !e.Temporary || left <= 0`,
		new: `r.once || left <= 0`,
		by:  "TestDeniedIsNotRetried",
	},
	{
		file: "lock/retry.go", breaks: "F1", bug: "the last error hides what the store answered before",
		old: `if before == nil || next.Answered || !next.Temporary || !before.Answered && !errors.Is(next, context.DeadlineExceeded) {`,
		new: `if before == nil || next.Temporary {`,
		by:  "TestErrorReportsStoreAnswer",
	},
	{
		file: "lock/retry.go", breaks: "F11", bug: "an attempt that was cut short hides why the one before failed",
		old: `!before.Answered && !errors.Is(next, context.DeadlineExceeded)`,
		new: `!before.Answered`,
		by:  "TestErrorReportsTheCause",
	},
	{
		file: "lock/settlement.go", breaks: "F55", bug: "after one throttled completion all claims give up for ever",
		old: `			l.locker.pressed.Add(-1)`,
		new: `			l.locker.pressed.Add(0)`,
		by:  "TestClaimsAfterThrottledCompletion",
	},
}

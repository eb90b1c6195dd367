package main

// acquisition has the bugs in how a lock is acquired.
var acquisition = []mutant{
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
		old: `err = lk.check(); err != nil`,
		new: `err = nil; err != nil`,
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
		file: "lock/acquisition.go", breaks: "F63", bug: "a lock inside the handler of a record gives up as if its event came alone",
		old: `	} else if invocation.TurnOf(ctx) != nil { // the record has begun`,
		new: `	} else if invocation.TurnOf(ctx) != nil && a == nil {`,
		by:  "TestNestedLockInThrottledBatch", in: "middleware",
	},
	{
		file: "lock/acquisition.go", breaks: "F63", bug: "a throttled record is returned although its batch has time",
		old: `			t.Throttled = true
`,
		new: ``,
		by:  "TestRequeuedRecord", in: "middleware",
	},
	{
		file: "lock/acquisition.go", breaks: "F63", bug: "every claim that goes back to the queue is logged as an error",
		old: `	case err != nil && a.requests.pace != nil && a.requests.throttled > 0:`,
		new: `	case err != nil && a.requests.pace == nil && a.requests.throttled < 0:`,
		by:  "TestFullTable|TestRequeuedRecord", in: "middleware",
	},
	{
		file: "lock/acquisition.go", breaks: "F29", bug: "a row of a newer version makes an error tell the name",
		old: `"the row of key " + a.key.Digest() + " was`,
		new: `"the row of key " + a.key.Name + " was`,
		by:  "TestHostileKeys",
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
		file: "lock/observation.go", breaks: "F21", bug: "a lost lease is not seen where only errors are logged",
		old: `	case OutcomeLost, OutcomeCompleteFailed, OutcomeStoreFailed`,
		new: `	case OutcomeCompleteFailed, OutcomeStoreFailed`,
		by:  "TestLostLeaseIsAnError",
	},
	{
		file: "lock/observation.go", breaks: "F29", bug: "log lines tell the name unasked",
		old: `slog.String("key", o.Key.Digest())`,
		new: `slog.String("key", printable.Text(o.Key.Name))`,
		by:  "TestHostileKeys", in: "middleware",
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
		old: `t.outermost.Add(l.opts.Grace).Round(0)`,
		new: `t.outermost.Round(0)`,
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
	{
		file: "lock/wait.go", breaks: "F12", bug: "a wait leaves no time for the work",
		old: `Add(-invocation.MinRun - a.timing.budget)`,
		new: `Add(-0*invocation.MinRun - a.timing.budget)`,
		by:  "TestWaitLeavesTimeToRun",
	},
	{
		file: "lock/wait.go", breaks: "F38", bug: "a holder whose clock is ahead is asked all the time",
		old: `held = max(wall.Sub(a.row.Stamp), now.Sub(a.seen.at))`,
		new: `held = wall.Sub(a.row.Stamp)`,
		by:  "TestClockAheadCausesFewRequests",
	},
	{
		file: "lock/wait.go", breaks: "P4", bug: "a waiter takes the next holder for the one before",
		old: `a.seen.token != owner {`,
		new: `a.seen.token == "" {`,
		by:  "TestWaitForTheNextHolder",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "a waiter sleeps past the end of a dead holder's lease",
		old: `return min(otherwise, toEnd)`,
		new: `return otherwise`,
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
		file: "lock/line.go", breaks: "P4", bug: "one that waits alone takes a place in line",
		old: ` && !a.line.others.IsZero() &&`,
		new: ` &&`,
		by:  "TestLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "a waiter far from its turn counts as served",
		old: `l.place > a.row.Served && left < longestPoll {`,
		new: `l.place > a.row.Served {`,
		by:  "TestLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "no owner's place counts as served",
		old: `if l.place > a.row.Served && left < longestPoll {`,
		new: `if left < 0 {`,
		by:  "TestLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "waiters that gave up hold up the others",
		old: `		l.idle++
`,
		new: ``,
		by:  "TestLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "a waiter in line sleeps past the end of a dead holder's lease",
		old: `return min(look, toEnd)`,
		new: `return look`,
		by:  "TestLineWithDeadHolder",
	},
	{
		file: "lock/line.go", breaks: "F38", bug: "everybody looks as soon as a cooldown is over",
		old: `if turns > keenest {`,
		new: `if turns > 1<<20 {`,
		by:  "TestLine",
	},
	{
		file: "lock/wait.go", breaks: "F38", bug: "the cooldown after a lease looks like another holder",
		old: `owner := a.row.Owner();`,
		new: `owner := a.row.Token;`,
		by:  "TestLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "a waiter whose request for a place fails asks again and again",
		old: `	a.line.asked = true
`,
		new: ``,
		by:  "TestWaitTimesOutInLine",
	},
	{
		file: "lock/line.go", breaks: "P4", bug: "a request for a place outlasts the wait",
		old: `until: end, once`,
		new: `until: end.Add(time.Minute), once`,
		by:  "TestWaitTimesOutInLine",
	},
	{
		file: "lock/wait.go", breaks: "F34", bug: "each lock of a set waits as long as all together may",
		old: `		end = a.set.began.Add(a.locker.opts.MaxWait)
`,
		new: ``,
		by:  "TestWaitOfASet|TestLongWaitOfASet",
	},
	{
		file: "lock/wait.go", breaks: "replay", bug: "the times between a waiter's looks are not part of the seed",
		old: `clock.Jitter(a.clock, look/2)`,
		new: `clock.Jitter(clock.From(context.Background()), look/2)`,
		by:  "TestSimulation",
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
	{
		file: "lock/errors.go", breaks: "F43", bug: "work that deletes its blob counts as work that lost it",
		old: `known(ErrLost, e.Err)`,
		new: `known(ErrLost)`,
		by:  "TestProtectRelease", in: "stores/azblobstore/bloblease",
	},
}

package main

// requests has the bugs in how requests are repeated, and when they are
// slowed down.
var requests = []mutant{
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
		old: `e.Answered && !e.Lasting && !e.Conflict`,
		new: `e.Answered && !e.Lasting`,
		by:  "TestConflictsAreRetried",
	},
	{
		file: "lock/retry.go", breaks: "F8, F55", bug: "a refusal throttles only if no earlier attempt may have been applied",
		old: `e.Answered && !e.Lasting && !e.Conflict`,
		new: `e.Answered && !e.Lasting && e.Unapplied && !e.Conflict`,
		by:  "TestAnsweredAndUnapplied",
	},
	{
		file: "lock/retry.go", breaks: "F2, F13", bug: "a request that was never sent counts as throttled",
		old: `e.Answered && !e.Lasting && !e.Conflict`,
		new: `!e.Lasting && e.Unapplied && !e.Conflict`,
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
		old: `r.once || e.Lasting || left <= 0`,
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
		file: "lock/retry.go", breaks: "F63", bug: "a batch does not hear that the store throttles",
		old: `			r.pace.Throttled(at, r.clock.Now())
`,
		new: `			_ = at
`,
		by: "TestRecordsThatClaimNothing", in: "middleware",
	},
	{
		file: "lock/retry.go", breaks: "F63", bug: "a batch does not hear that the store takes requests again",
		old: `			r.pace.Taken(at)
`,
		new: ``,
		by:  "TestThrottledBatch", in: "middleware",
	},
	{
		file: "lock/retry.go", breaks: "F33, F63", bug: "a lock inside the handler counts as the record's own, whose claim goes back to the queue",
		old: `outer != nil && invocation.TurnOf(outer.ctx) == t {`,
		new: `outer != nil && invocation.TurnOf(outer.ctx) != t {`,
		by:  "TestNestedLockInThrottledBatch", in: "middleware",
	},
	{
		file: "lock/retry.go", breaks: "replay", bug: "pauses are not part of the seed",
		old: `clock.Jitter(r.clock, firstPause<<min(try, 7))`,
		new: `clock.Jitter(clock.From(context.Background()), firstPause<<min(try, 7))`,
		by:  "TestSimulationOfEndsReplays",
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
	{
		file: "internal/event/invocation/invocation.go", breaks: "F46", bug: "a batch knows only the last event of each name",
		old: `append(b.events[name], event)`,
		new: `append(b.events[name][:0], event)`,
		by:  "TestBatch",
	},
	{
		file: "internal/neterror/neterror.go", breaks: "F5", bug: "a refusal whose connection broke counts as a proxy's page",
		old: `errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))`,
		new: `errors.Is(err, io.ErrUnexpectedEOF)`,
		by:  "TestErrorsNameTheCause",
		in:  "stores/dynamostore",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F63", bug: "a batch goes on as fast as before when the store throttles it",
		old: `	p.gap = min(max(2*p.gap, firstGap), longestGap)`,
		new: `	p.gap = 0`,
		by:  "TestPace",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F63", bug: "requests that were under way together slow a batch down many times over",
		old: `	if !sent.After(p.slowed) {
		return
	}
	if p.full.IsZero() {`,
		new: `	if p.full.IsZero() {`,
		by:  "TestPace",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F63", bug: "requests that were sent before the store throttled speed a batch up",
		old: `	if !sent.After(p.slowed) {
		return
	}
	shrink`,
		new: `	shrink`,
		by:  "TestPace",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F63", bug: "a batch gets fast again until the next burst of refusals",
		old: `	if p.gap < p.safe {`,
		new: `	if p.gap < 0 {`,
		by:  "TestPace",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F63", bug: "a batch is slow for long after an outage",
		old: `sent.Sub(p.full) > shortestOutage`,
		new: `sent.Sub(p.full) < 0`,
		by:  "TestPaceAfterOutage",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F55", bug: "claims go on at their pace while a completion of the batch is throttled",
		old: `	if p.stuck > 0 {`,
		new: `	if p.stuck < 0 {`,
		by:  "TestCompletionsSlowClaims",
	},
	{
		file: "internal/event/invocation/pace.go", breaks: "F55", bug: "after one throttled completion a batch stays slow",
		old: `	return func() { count(-1) }`,
		new: `	return func() { count(0) }`,
		by:  "TestCompletionsSlowClaims",
	},
}

package main

// coalesce has the bugs in cooldowns, coalesced events and what is remembered
// by the result.
var coalesce = []mutant{
	{
		file: "lock/settlement.go", breaks: "P4", bug: "a name stays held although no work began under it",
		old: `	if l.set == nil || l.set.all {`,
		new: `	if l != nil {`,
		by:  "TestHoldAtLeastNeedsWork",
	},
	{
		file: "lock/timing.go", breaks: "P4, F14", bug: "a clock that was set back keeps a name held for days",
		old: `max(min(now.Sub(l.decided), wall.Sub(l.decided.Round(0))), 0)`,
		new: `wall.Sub(l.decided.Round(0))`,
		by:  "TestHoldAtLeastClockSetBack",
	},
	{
		file: "lock/settlement.go", breaks: "P1", bug: "the row of a cooldown is deleted before it ends",
		old: `later(clock.Wall(l.clock), s.request.Until)`,
		new: `clock.Wall(l.clock)`,
		by:  "TestRowOutlivesItsCooldown",
	},
	{
		file: "lock/driver/row.go", breaks: "P1, F3", bug: "a late copy of the claim ends the cooldown",
		old: `			r.Token = s.Cooldown()`,
		new: `			r.Token = s.Token`,
		by:  "TestConformance",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P1, F14", bug: "a cooldown ends by the owner's clock",
		old: `'leaseEnd', micros(now + lease))`,
		new: `'leaseEnd', row[6] or '0')`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P4", bug: "a cooldown lasts as long as the lease would have",
		old: `		if row.Token == s.OwnerToken && s.lease > lease {`,
		new: `		if s.OwnerToken == q.token && s.lease > lease {`,
		by:  "TestConformance",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P4, F4", bug: "an end with a cooldown whose answer was lost is not recognised",
		old: `row.Token != "" && row.Token == t.Cooldown(), `,
		new: ``,
		by:  "TestCooldownWhoseAnswerIsLost",
	},
	{
		file: "lock/coalesce.go", breaks: "P6", bug: "a completion does not look at the marks",
		old: `s.request.MarksBelow = l.row.Marks + 1`,
		new: `s.request.MarksBelow = 1 << 40`,
		by:  "TestBurst",
	},
	{
		file: "lock/coalesce.go", breaks: "P6", bug: "marks that were there at the last completion are owed for ever",
		old: `if l.row.Marks = s.row.Marks; !s.completes {`,
		new: `if !s.completes {`,
		by:  "TestOwedRun",
	},
	{
		file: "lock/coalesce.go", breaks: "P6", bug: "another delivery of the holder's event is acknowledged",
		old: `a.row.Event == a.claim.Event || `,
		new: ``,
		by:  "TestRefusedBesideCoalesce",
	},
	{
		file: "lock/coalesce.go", breaks: "P6", bug: "an event is acknowledged although the holder does not look at marks",
		old: `!a.row.Coalesces()`,
		new: `a.row.Token == ""`,
		by:  "TestRefusedBesideCoalesce",
	},
	{
		file: "lock/coalesce.go", breaks: "P6, F3", bug: "a late claim for an event that was acknowledged owns the name",
		old: `a.claim.Now.Add(a.locker.opts.Grace)`,
		new: `a.row.Stamp`,
		by:  "TestLateClaimOfACoalescedEvent",
	},
	{
		file: "lock/coalesce.go", breaks: "P6, F3, F14", bug: "a late claim by a clock that is ahead owns the name for an event that was acknowledged",
		old: `a.claim.Now.Add(a.locker.opts.Grace)`,
		new: `a.claim.Now`,
		by:  "TestLateClaimOfACoalescedEvent",
	},
	{
		file: "lock/coalesce.go", breaks: "P2", bug: "an owed run begins although the lease has ended",
		old: ` && l.check() == nil`,
		new: ``,
		by:  "TestOwedRunOfAHeartbeat",
	},
	{
		file: "lock/coalesce.go", breaks: "P6", bug: "an owed run begins although there is no time for it",
		old: `end.Sub(l.clock.Now()) >= l.lastRun`,
		new: `end.Sub(l.clock.Now()) >= l.lastRun/2`,
		by:  "TestOwedRun",
	},
	{
		file: "lock/settlement.go", breaks: "P6", bug: "a completion of which the store says nothing is believed although marks may have refused it",
		old: `s.row.Untold && s.request.MarksBelow > 0`,
		new: `s.row.Untold && s.request.MarksBelow > 1<<40`,
		by:  "TestSilentStoreWithMarks",
	},
	{
		file: "lock/settlement.go", breaks: "P2", bug: "the heartbeat ends with a completion that is refused because of marks",
		old: `		how = tentative`,
		new: `		how = completed`,
		by:  "TestOwedRunOfAHeartbeat",
	},
	{
		file: "lock/driver/coalescer.go", breaks: "P6", bug: "a mark is added to the row of another owner",
		old: `!r.OwnedBy(m.Token)`,
		new: `r.Token == ""`,
		by:  "TestConformance", in: "stores/memstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P6", bug: "a mark takes the row's stamp back",
		old: ` + " AND stamp < :stamp"`,
		new: ``,
		by:  "TestConformance",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P6", bug: "a settlement does not look at the marks",
		old: `>= marksBelow`,
		new: `> marksBelow`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P6, F7", bug: "an event is acknowledged whose completion is not confirmed, and with it those that were coalesced",
		old: `	if r.w.held.action != coalesce {
		return nil`,
		new: `	if !runsAgain(err) {
		return nil`,
		by: "TestCoalescedBeforeAFailedCompletion",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P6", bug: "nobody runs for coalesced events after a result with status 503",
		old: `	case r.w.held.action == coalesce:`,
		new: `	case r.w.held.action == coalesce && r.gateway == eventkind.NoGateway:`,
		by:  "TestCoalescedDuringAnyResult",
	},
	{
		file: "middleware/handlerrun.go", breaks: "P6", bug: "nobody runs for events that were coalesced during a stream",
		old: `		if r.w.held.action == coalesce {
			return errStreamed`,
		new: `		if r.w.failOpen {
			return errStreamed`,
		by: "TestCoalesceRefusesStreams",
	},
	{
		file: "middleware/task.go", breaks: "observation", bug: "a run that a wrapper inside the handler owes counts as two failures",
		old: `reported = true`,
		new: `reported = false`,
		by:  "TestOwedInsideARecordIsReportedOnce",
	},
	{
		file: "middleware/task.go", breaks: "observation", bug: "a record that is returned because a run is owed is in no log",
		old: `errors.Is(err, lock.ErrOwed)`,
		new: `errors.Is(err, lock.ErrReleased)`,
		by:  "TestOwedRecordIsReported",
	},
	{
		file: "lock/settlement.go", breaks: "observation", bug: "the requests that were refused because of marks are counted twice",
		old: `		if owed != nil {
			return`,
		new: `		if l.unreported.Add(int64(s.sent)); owed != nil {
			return`,
		by: "TestBurst",
	},
	{
		file: "middleware/stream.go", breaks: "F51", bug: "a streamed response is kept although RememberFor cannot judge it",
		old: `case r.w.rememberFor != nil:`,
		new: `case r.w.failOpen:`,
		by:  "TestSecretStreamIsNotKept",
	},
	{
		file: "middleware/handlerrun.go", breaks: "F51", bug: "a result that must not be kept is",
		old: `stored, remember = nil, 0`,
		new: `remember = 0`,
		by:  "TestSecretIsNotKept",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "an event is remembered as Remember says, although the result says otherwise",
		old: `cmp.Or(max(remember, 0), l.rememberFor())`,
		new: `l.rememberFor()`,
		by:  "TestCompleteFor",
	},
}

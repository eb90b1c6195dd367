package main

// handovers has the bugs in how a lock is handed over.
var handovers = []mutant{
	{
		file: "lock/handover.go", breaks: "P1", bug: "the token is that of the invocation, which retries reuse",
		old: `c.Text()[:16] + seal`,
		new: `c.Text()[:0] + seal`,
		by:  "TestHeld",
	},
	{
		file: "lock/handover.go", breaks: "P1, F58", bug: "a lock is resumed without moving the end of its lease",
		old: `l.claim.Until = later(l.locker.leaseEnd(l.timing, now), moved)`,
		new: `l.claim.Until = later(l.locker.leaseEnd(l.timing, now), later(t.Until, moved.Add(-time.Second)))`,
		by:  "TestResumeBehindTheHandOver",
	},
	{
		file: "lock/handover.go", breaks: "P5", bug: "an event that was handed over is remembered for a day only",
		old: `Token: t.Token}, remember: t.Remember,`,
		new: `Token: t.Token}, remember: l.opts.Remember,`,
		by:  "TestResumedEventIsRememberedAsAcquired",
	},
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
		l.timing.outermost = l.timing.outermost.Add(-1500 * time.Millisecond)
	}
	now := l.wall().Truncate(time.Microsecond)
	if t.Until`,
		by: "TestLeaseOfAStep",
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
		file: "lock/handover.go", breaks: "replay", bug: "tokens are not part of the seed",
		old: `c.Text()[:16] + seal`,
		new: `clock.From(context.Background()).Text()[:16] + seal`,
		by:  "TestSimulationOfEndsReplays",
	},
	{
		file: "lock/handover.go", breaks: "F29", bug: "a set that is handed over tells its name",
		old: `"key " + l.key.Digest() + " was locked together with others, and a ticket`,
		new: `"key " + l.key.Name + " was locked together with others, and a ticket`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/handover.go", breaks: "F29", bug: "an edited ticket makes an error tell the name",
		old: `of the ticket for key " + l.key.Digest() + " is not`,
		new: `of the ticket for key " + l.key.Name + " is not`,
		by:  "TestHostileKeys",
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
		file: "middleware/resume.go", breaks: "F54", bug: "a step that returns a status is not completed",
		old: `	h.byValue = false // the result is for a workflow
`,
		new: ``,
		by:  "TestResumeWithAStatus",
	},
}

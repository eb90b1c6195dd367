package main

// leases has the bugs in how a lock is renewed.
var leases = []mutant{
	{
		file: "lock/heartbeat.go", breaks: "P1, F58", bug: "a later end that another process has set counts as a renewal",
		old: `until.UnixMicro() <= l.asked.Load() {`,
		new: `!ok {`,
		by:  "TestResumeBehindTheHandOver",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2, F4", bug: "a heartbeat takes another owner's row for its own",
		old: `	return row, ok, err
}

var errOutlived`,
		new: `	return row, ok || err == nil && !row.Until.Before(*until), err
}

var errOutlived`,
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
		old: `context.WithCancel(context.WithoutCancel(ctx))`,
		new: `context.WithCancel(ctx)`,
		by:  "TestHeartbeatOutlivesContext",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2", bug: "a heartbeat that is stuck does not end the work",
		old: `	l.watch()
	ctx := l.beat.begin`,
		new: `	ctx := l.beat.begin`,
		by:  "TestStuckHeartbeat",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2", bug: "a heartbeat that lost the lease does not end the work",
		old: `		if !stopped { // even if an observer ended this goroutine
			l.beat.lose(l.lostError())
		}
`,
		new: `		_ = stopped
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
	{
		file: "lock/heartbeat.go", breaks: "F54", bug: "a hand-over for less than is left of the lease asks for an earlier end",
		old: `until := later(now.Add(lease), time.UnixMicro(l.until.Load()))`,
		new: `until := now.Add(lease)`,
		by:  "TestShortHandOverWithoutDetail",
	},
	{
		file: "lock/heartbeat.go", breaks: "P2, F54", bug: "a lock is lost if another process that resumed it moves the end twice",
		old: `for asked := range 4 {`,
		new: `for asked := range 2 {`,
		by:  "TestOthersMoveTheEnd",
	},
	{
		file: "lock/heartbeat.go", breaks: "F4", bug: "one granted renewal in five counts as refused",
		old: `	if ok {
		l.confirm(until)
	}
`,
		new: `	if ok {
		l.confirm(until)
	}
	if ok && now.UnixMicro()%5 == 0 {
		return false, r.sent, nil
	}
`,
		by: "TestSimulation",
	},
	{
		file: "lock/heartbeat.go", breaks: "F54", bug: "a handle is worth nothing to the second who resumes it",
		old: `for asked := range 4 {`,
		new: `for asked := range 1 {`,
		by:  "TestSimulation|TestHandOverNeverShortensTheLease",
	},
	{
		file: "lock/heartbeat.go", breaks: "observation", bug: "the requests of an interrupted renewal are not observed",
		old: `			l.unreported.Add(int64(requests))
`,
		new: ``,
		by:  "TestEveryRequestIsObserved",
	},
}

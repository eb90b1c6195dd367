package main

// batches has the bugs in how a batch slows down, and in what it says about its
// records.
var batches = []mutant{
	// internal/event/invocation: the pace.
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

	// lock: what it tells the pace.
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

	// middleware: the queue of a batch.
	{
		file: "middleware/schedule.go", breaks: "F63", bug: "records do not wait for their turn",
		old: `		d.awaitTurn(current)
`,
		new: ``,
		by:  "TestRecordsThatClaimNothing",
	},
	{
		file: "middleware/schedule.go", breaks: "F12, F63", bug: "a record waits for its turn beyond the last moment to begin",
		old: `			wait = min(wait, d.lastStart.Sub(now))
		}
		_ = c.Sleep(d.ctx, min(wait, longestNap))`,
		new: `			wait = max(wait, d.lastStart.Sub(now))
		}
		_ = c.Sleep(d.ctx, max(wait, longestNap))`,
		by: "TestFullTable",
	},
	{
		file: "middleware/schedule.go", breaks: "F63", bug: "a record that claims nothing takes the turn of another",
		old: `	if t.blocked || t.err != nil { // it claims nothing`,
		new: `	if t.blocked {`,
		by:  "TestRecordsThatClaimNothing",
	},
	{
		file: "middleware/task.go", breaks: "P6, F18", bug: "a record that panicked after its claim was throttled is handled once more",
		old: `		if !returned {
			t.again = false
		}
`,
		new: ``,
		by:  "TestAroundRequeuedRecord",
	},
	{
		file: "middleware/task.go", breaks: "F63", bug: "without a deadline a batch waits for a full store for ever",
		old: `d.pace.Full(clock.From(d.ctx).Now()) > longestOutage:`,
		new: `d.pace.Full(clock.From(d.ctx).Now()) < 0:`,
		by:  "TestFullTable",
	},
	{
		file: "middleware/task.go", breaks: "F63", bug: "a record that is returned does not say that the store throttled it",
		old: `		if t.throttled != nil {`,
		new: `		if t.throttled == nil && t.again {`,
		by:  "TestFullTable",
	},
}

package main

// quorum has the bugs in the quorum of Redis servers.
var quorum = []mutant{
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P1", bug: "one server counts several times in a quorum",
		old: `if other := seen[id]; other != nil {`,
		new: `if other := seen[id]; other == node {`,
		by:  "TestOneServerIsNoQuorum",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P1", bug: "a quorum whose servers do not tell their names is refused",
		old: `if id == "" {`,
		new: `if len(id) == 1 {`,
		by:  "TestOneServerIsNoQuorum",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "F42", bug: "a quorum waits for a server that is out of reach although a majority has answered",
		old: `		if isLate && len(got)-count(got, failed) >= q.need {`,
		new: `		if isLate && waiting < 0 {`,
		by:  "TestDistantQuorum",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P1, F13", bug: "a quorum counts as answering when one server does",
		old: `e.Answered = silent <= len(got)-q.need`,
		new: `e.Answered = silent < len(got)`,
		by:  "TestDenied",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P4, F2", bug: "a claim that a minority granted counts as refused",
		old: `Unapplied: count(got, applied) == 0}`,
		new: `Unapplied: true}`,
		by:  "TestClaimOfAMinorityIsAbandoned",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P5", bug: "an event is forgotten when the first of several servers says so",
		old: `newer[i].Until.Before(c.Until):`,
		new: `newer[i].Until.IsZero():`,
		by:  "TestMergedMemory",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P5, F56", bug: "what a server that was down remembers counts as the newest",
		old: `cmp.Compare(b.MemoryStamp, a.MemoryStamp)`,
		new: `cmp.Compare(a.MemoryStamp, b.MemoryStamp)`,
		by:  "TestNodeReturnsOutdated",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P5, F56", bug: "what only one server remembers counts as the oldest",
		old: `		previous = c.Event
`,
		new: ``,
		by:  "TestMergedMemory",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P5, F6", bug: "a quorum takes the highest order from the first server instead of the largest",
		old: `m.HighestOrder = max(m.HighestOrder, a.Row.Memory.HighestOrder)`,
		new: `m.HighestOrder = cmp.Or(m.HighestOrder, a.Row.Memory.HighestOrder)`,
		by:  "TestMergedMemory",
	},
	{
		file: "stores/redisstore/redisquorum/node.go", breaks: "F42", bug: "the time of a request includes that of its connection",
		old: `	if n.idle == nil { // the`,
		new: `	if n.idle != nil { // the`,
		by:  "TestDistantQuorum",
	},
	{
		file: "stores/redisstore/redisquorum/node.go", breaks: "F42", bug: "a request that is cut short ends the opening of its connection",
		old: `c.WithDeadlineCause(context.WithoutCancel(ctx), c.Now()`,
		new: `c.WithDeadlineCause(ctx, c.Now()`,
		by:  "TestConnectingGoesOn",
	},
	{
		file: "stores/redisstore/redisquorum/node.go", breaks: "replay", bug: "the time for a request to a node is not part of the seed",
		old: `ctx, cancel := c.WithDeadlineCause(ctx, c.Now().Add(timeout), nil)`,
		new: `ctx, cancel := context.WithTimeout(ctx, timeout)`,
		by:  "TestQuorumHistoryIsItsSeed",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P1", bug: "half of the servers are enough",
		old: `need: len(clients)/2 + 1,`,
		new: `need: len(clients) / 2,`,
		by:  "TestQuorumConformance|TestSplitVote|TestNodesDown",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P1", bug: "what an earlier round was granted counts for the later one",
		old: `a.Row.Token == c.Token && a.ClaimStamp == stamp }`,
		new: `a.Row.Token == c.Token && stamp != "" }`,
		by:  "TestEarlierRoundDoesNotCount",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P4", bug: "a claim that a minority granted is not given up there",
		old: `	if err := q.undo(ctx, c, got); err != nil {
		return driver.Row{}, false, err
	}
`,
		new: `	_ = q.undo
`,
		by: "TestSplitVote|TestUndoIsLost",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P1", bug: "a claim is given up only where it was granted, not where it may have been",
		old: `return granted(a) || failed(a) }),
		func`,
		new: `return granted(a) }),
		func`,
		by: "TestUndoWithoutAnswer",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P4", bug: "a claim is given up on the context that has ended",
		old: `undone := q.ask(context.WithoutCancel(ctx), `,
		new: `undone := q.ask(ctx, `,
		by:  "TestUndoAfterCancellation",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P1", bug: "a claim whose undo is lost is repeated with its stamp",
		old: `	err.Lasting, err.Unapplied = true, false
`,
		new: `	err.Lasting, err.Unapplied = false, false
`,
		by: "TestUndoIsLost|TestUndoIsLostWhileNodeIsDown",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P3", bug: "a fence falls from one majority to the next",
		old: `	if enough := count(got, high); enough < q.need {`,
		new: `	if enough := count(got, high); enough < 1 {`,
		by:  "TestFenceAcrossMajorities",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P3", bug: "a majority need not take the fence over",
		old: `enough+count(raised, high) < q.need {`,
		new: `enough+count(raised, high) < q.need-1 {`,
		by:  "TestFenceThatCannotBeRaised",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P3", bug: "the fence is that of the first server",
		old: `least = max(least, a.Before+1)`,
		new: `least = cmp.Or(least, a.Before+1)`,
		by:  "TestFenceAcrossMajorities",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P5", bug: "an event that one server remembers runs again",
		old: `done := verdict == driver.Newer || verdict == driver.Completed || verdict == driver.Stale`,
		new: `done := verdict == driver.Newer || verdict == driver.Stale`,
		by:  "TestUndoIsLost",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P5", bug: "a completion is recorded on servers whose lease has ended",
		old: `q.nodes[i].Settle(ctx, t, t.Stamp, server.InTime)`,
		new: `q.nodes[i].Settle(ctx, t, t.Stamp, server.Always)`,
		by:  "TestLateCompletion",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P4", bug: "a release raises no stamp, so that a late claim is granted",
		old: `q.nodes[i].Settle(ctx, t, t.Stamp, server.InTime)`,
		new: `q.nodes[i].Settle(ctx, t, time.Time{}, server.InTime)`,
		by:  "TestLateClaimAfterRelease",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P4", bug: "a server that missed a release holds its lock until the lease ends",
		old: `		q.clear(ctx, t.Name, got, now)
`,
		new: `		_ = q.clear
`,
		by: "TestReleaseMissesNode",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P5, F5", bug: "a node that is cleared does not learn what the others remember",
		old: `memory, last := mergeMemories(got)`,
		new: `memory, last := mergeMemories(nil)`,
		by:  "TestReleaseMeetsClear",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "F5", bug: "an owner whose node was cleared has lost its lock",
		old: `return q.nodes[i].Settle(ctx, t, stamp, server.Clears, "memoryStamp", last)`,
		new: `return q.nodes[i].Settle(ctx, t, stamp, server.SameRound, "memoryStamp", last)`,
		by:  "TestReleaseMeetsClear",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P1", bug: "a waiter's claim is cleared as if it were over",
		old: `&& server.Timestamp(b.Row.Stamp) >= a.ClaimStamp`,
		new: `&& server.Timestamp(b.Row.Stamp) != a.ClaimStamp`,
		by:  "TestWaiterIsNotCleared|TestQuorumHistories",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P2", bug: "a renewal does not restore the row on a server that lost it",
		old: `return behind(a) || lost(a) }), func`,
		new: `return behind(a) || lost(a) && ctx == nil }), func`,
		by:  "TestRestartedNode|TestRestoreFails",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P3", bug: "a renewal does not restore the fence",
		old: `a.Row.Fence < row.Fence || `,
		new: ``,
		by:  "TestFenceOfRenewal",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P5", bug: "a completion that a minority recorded counts as recorded",
		old: `		row.Memory = driver.Memory{} // what only a minority knows is not recorded
`,
		new: ``,
		by:  "TestPartialRelease|TestLateCompletion",
	},
	{
		file: "stores/redisstore/redisquorum/store.go", breaks: "P5", bug: "a release that a majority may have applied counts as refused",
		old: `	case possible:
`,
		new: `	case possible && done > len(q.nodes):
`,
		by: "TestPartialRelease|TestNodesDown",
	},
}

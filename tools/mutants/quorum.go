package main

// quorum has the bugs in the Redis store: its scripts, and the quorum of
// independent servers.
var quorum = []mutant{
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F42", bug: "an exhausted pool of a cluster client is blamed on the network",
		old: `errors.Is(err, context.DeadlineExceeded) && exhausted(primary)`,
		new: `errors.Is(err, context.Canceled) && exhausted(primary)`,
		by:  "TestPoolIsExhausted", in: "stores/redisstore",
	},
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
		file: "stores/redisstore/redisquorum/answers.go", breaks: "F42", bug: "a quorum waits for a server that is out of reach although a majority has answered",
		old: `		if isLate && len(got)-count(got, failed) >= q.need {`,
		new: `		if isLate && waiting < 0 {`,
		by:  "TestDistantQuorum",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P1", bug: "a lease can be taken at the instant at which it ends",
		old: `elseif owner and now <= leaseEnd then`,
		new: `elseif owner and now < leaseEnd then`,
		by:  "TestHeldToTheEnd", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P4, F3", bug: "a late claim brings a released lock back",
		old: `elseif oldStamp and not earlier(oldStamp, stamp) then
  return answer(0, '', asked)
end`,
		new: `end`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P4, F3", bug: "a late claim with the last stamp brings a released lock back",
		old: `elseif oldStamp and not earlier(oldStamp, stamp) then`,
		new: `elseif oldStamp and earlier(stamp, oldStamp) then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P4, F3", bug: "a copy of an earlier round undoes a later one",
		old: `if earlier(stamp, oldStamp) or earlier(heldUntil, oldUntil) then`,
		new: `if earlier(heldUntil, oldUntil) then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P2, F4", bug: "a late copy of the claim undoes a renewal",
		old: `if earlier(stamp, oldStamp) or earlier(heldUntil, oldUntil) then`,
		new: `if earlier(stamp, oldStamp) then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P3", bug: "a late copy of the claim that has the row raises its fence",
		old: `  if stamp == oldStamp and heldUntil == oldUntil then`,
		new: `  if stamp == oldStamp and heldUntil ~= oldUntil then`,
		by:  "TestConformance|TestLeaseNeverMovesBack", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P1", bug: "a later round of a claim shortens the lease of an earlier one",
		old: `previous, till = '', math.max(till, leaseEnd)`,
		new: `previous = ''`,
		by:  "TestLeaseNeverMovesBack|TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P5", bug: "a completed event runs again",
		old: `or (entry ~= '' and completed and remembered())`,
		new: `or (entry ~= '' and completed and not owner and remembered())`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P5", bug: "an event whose text is the end of another's counts as completed",
		old: `local lines, start, from = '\n' .. completed, '\n' .. entry, 1`,
		new: `local lines, start, from = '\n' .. completed, entry, 1`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P5", bug: "an event with the order of a completed one runs",
		old: `not earlier(highest, order))`,
		new: `earlier(order, highest))`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "F41", bug: "a row of a newer version is taken",
		old: `if format
  or (entry`,
		new: `if (format and not owner)
  or (entry`,
		by: "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P3, F24", bug: "the fence of a new row starts at one",
		old: `math.max(before + 1, now)`,
		new: `before + 1`,
		by:  "TestConformance|TestDataIsLost", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P3, F24", bug: "the fence of a row that went back repeats those of the owners that were lost",
		old: `math.max(before + 1, now)`,
		new: `(before == 0 and now or before + 1)`,
		by:  "TestFenceOfAnOlderRow", in: "stores/redisstore/redisquorum",
	},
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P6", bug: "the next owner has the event of the dead one",
		old: `  redis.call('HDEL', key, 'event')
`,
		new: ``,
		by:  "TestConformance", in: "stores/redisstore",
		survives: "an empty field reads like one that is missing",
	},
	{
		file: "stores/redisstore/internal/server/scripts/renew.lua", breaks: "P2, F21", bug: "anybody renews a lease",
		old: `or owner ~= token or earlier`,
		new: `or not owner or earlier`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/renew.lua", breaks: "F4", bug: "a renewal creates a row that is gone",
		old: `or token == '' or owner ~= token or earlier(heldUntil, oldUntil) then`,
		new: `or token == '' or (owner and owner ~= token) or (oldUntil and earlier(heldUntil, oldUntil)) then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/renew.lua", breaks: "P4, F4", bug: "a copy of a renewal extends the lease again",
		old: `if heldUntil ~= oldUntil then`,
		new: `if heldUntil then`,
		by:  "TestLeaseNeverMovesBack|TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/renew.lua", breaks: "P2", bug: "a renewal that was on its way for long shortens the lease",
		old: `leaseEnd = math.max(leaseEnd, now + lease)`,
		new: `leaseEnd = now + lease`,
		by:  "TestLeaseNeverMovesBack|TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P1, F21", bug: "a late holder releases the lock of the next one",
		old: `local own, late = token ~= '' and owner == token, false`,
		new: `local own, late = token ~= '' and owner and (owner == token or stamp == ''), false`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P4, F44", bug: "a claim that is given up while another owns the row raises no stamp",
		old: `local raise = stamp ~= '' and (not oldStamp or earlier(oldStamp, stamp))`,
		new: `local raise = stamp ~= '' and (not owner or owner == token) and (not oldStamp or earlier(oldStamp, stamp))`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P4, F44", bug: "a claim that is given up before there is a row raises no stamp",
		old: `(not oldStamp or earlier(oldStamp, stamp))`,
		new: `(oldStamp and earlier(oldStamp, stamp))`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P5, F47", bug: "to give up a claim shortens the life of another owner's row",
		old: `if own or not oldDeleteAfter or earlier(oldDeleteAfter, deleteAfter) then`,
		new: `if true then`,
		by:  "TestAbandonShortensNoOtherLife", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P5", bug: "what is forgotten stays in the row",
		old: `    if ARGV[i + 1] == '' then
      redis.call('HDEL', key, ARGV[i])`,
		new: `    if ARGV[i + 1] == '' then
      redis.call('HLEN', key)`,
		by: "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/row.lua", breaks: "F42", bug: "times are compared by the server's locale",
		old: `  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
`,
		new: `  return a < b
`,
		by: "TestConformance", in: "stores/redisstore",
		survives: "neither miniredis nor redis-server in the C locale, which it sets for itself, compares by a locale; other servers may",
	},
	{
		file: "stores/redisstore/internal/server/row.go", breaks: "P1, F14", bug: "another owner's lease is told by that owner's clock",
		old: `	if owner == v.token {`,
		new: `	if owner != "" {`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/row.go", breaks: "P5", bug: "events that differ in a space are taken for one another",
		old: `strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0A").Replace`,
		new: `strings.NewReplacer("%", "%25", " ", "", "\n", "%0A").Replace`,
		by:  "TestConformance|TestOneRow", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/row.go", breaks: "P3, F23", bug: "a row is deleted with its lease if the clock is wrong",
		old: `max(lease(d), lease(time.Hour)) / 1000`,
		new: `lease(d) / 1000`,
		by:  "TestRowOutlivesAWrongClock", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/errors.go", breaks: "P1, F13", bug: "an answer counts as none if the client may have repeated the request",
		old: `	e.Answered = true
`,
		new: `	e.Answered = !s.repeats
`,
		by: "TestErrors", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/redisquorum/answers.go", breaks: "P1, F13", bug: "a quorum counts as answering when one server does",
		old: `e.Answered = silent <= len(got)-q.need`,
		new: `e.Answered = silent < len(got)`,
		by:  "TestDenied",
	},
	{
		file: "stores/redisstore/internal/server/errors.go", breaks: "F2", bug: "a refusal after the client repeated the request counts as not applied",
		old: `e.Temporary, e.Unapplied, e.Hint = true, !repeats, hint`,
		new: `e.Temporary, e.Unapplied, e.Hint = true, true, hint`,
		by:  "TestErrors", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/server.go", breaks: "F41", bug: "a row that cannot be read counts as not applied",
		old: `	row, err := parse(&r, v)
	if err != nil {
		return Answer{Err: s.unreadable(err)}
	}`,
		new: `	row, err := parse(&r, v)
	if err != nil {
		return Answer{}
	}`,
		by: "TestKeyOfAnother|TestConformance|TestErrors", in: "stores/redisstore",
	},

	// The quorum.
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
		old: `	err.Temporary, err.Unapplied = false, false
`,
		new: `	err.Temporary, err.Unapplied = true, false
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
		file: "lock/settlement.go", breaks: "P4, F3", bug: "the release of a resumed lock raises no stamp, so that a late claim is granted",
		old: `Stamp: l.row.Stamp},`,
		new: `Stamp: l.claim.Stamp},`,
		by:  "TestLateClaimAfterResume",
		in:  "stores/redisstore/redisquorum",
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
		old: `		q.clear(ctx, t.Name, got)
`,
		new: `		_ = q.clear
`,
		by: "TestReleaseMissesNode|TestQuorumHistories",
	},
	{
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P4, F4", bug: "a late renewal brings back the lease of a lock that was released too late for the node",
		old: `late = now > tonumber(row[6])`,
		new: `own = now <= tonumber(row[6])`,
		by:  "TestLateReleaseFreesTheNode", in: "stores/redisstore/redisquorum",
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
		old: `(a.ClaimStamp < claimStamp || a.Row.Fence < row.Fence)`,
		new: `a.ClaimStamp < claimStamp`,
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
		old: `	case now+before+count(got, failed) >= q.need:
`,
		new: `	case now+before+count(got, failed) > len(q.nodes):
`,
		by: "TestPartialRelease|TestNodesDown",
	},
	{
		file: "stores/redisstore/internal/server/client.go", breaks: "F55", bug: "a store, also one opened by URL, lets go-redis retry",
		old: `settings.MaxRetries = write, true, 0`,
		new: `settings.MaxRetries = write, true, 3`,
		by:  "TestSettingsOfTheClient|TestRefusingServer", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/client.go", breaks: "F9", bug: "a connection that hangs outlives the deadline",
		old: `settings.MaxRetries = write, true, 0`,
		new: `settings.MaxRetries = write, false, 0`,
		by:  "TestSettingsOfTheClient", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F42", bug: "after a failover a cluster client goes on asking the old primary",
		old: `		c.ReloadState(ctx) // another`,
		new: `		// another`,
		by:  "TestClusterFailover", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/errors.go", breaks: "F8", bug: "a pool without a free connection is blamed on the network",
		old: `s.pool != nil && errors.Is(err, context.DeadlineExceeded) && exhausted(s.pool)`,
		new: `false`,
		by:  "TestPoolIsExhausted", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/client.go", breaks: "F55", bug: "the hooks of a client do not see the requests of its Stores",
		old: `		c.AddHook(once{own(c)})
		s.pool,`,
		new: `		s.client, s.pool = own(c), c
		s.pool,`,
		by: "TestHooks", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F55", bug: "the hooks of a cluster client's nodes do not see the requests of its Stores",
		old: `	if once.Options().MaxRetries > 0 {`,
		new: `	if true {`,
		by:  "TestHooks", in: "stores/redisstore",
	},
}

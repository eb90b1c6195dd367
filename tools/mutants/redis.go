package main

// redis has the bugs in the Redis store and its scripts.
var redis = []mutant{
	{
		file: "stores/redisstore/internal/server/scripts/acquire.lua", breaks: "P4", bug: "the place of an owner is not kept",
		old: `if place ~= '0' then`,
		new: `if place == '' then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/scripts/join.lua", breaks: "P4", bug: "a place is given in the line for a free name",
		old: `if row[1] or not row[2] then`,
		new: `if row[1] then`,
		by:  "TestConformance", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/names.go", breaks: "F41", bug: "a key that is not a row ends the list",
		old: `return errors.As(err, &e) && e.Lasting && e.Action == ""`,
		new: `return errors.As(err, &e) && e == nil`,
		by:  "TestRows", in: "stores/redisstore/redisquorum",
	},
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F42", bug: "an exhausted pool of a cluster client is blamed on the network",
		old: `errors.Is(err, context.DeadlineExceeded) && exhausted(primary)`,
		new: `errors.Is(err, context.Canceled) && exhausted(primary)`,
		by:  "TestPoolIsExhausted", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F42", bug: "after a failover a cluster client goes on asking the old primary",
		old: `		c.ReloadState(ctx) // another`,
		new: `		// another`,
		by:  "TestClusterFailover", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/cluster.go", breaks: "F55", bug: "the hooks of a cluster client's nodes do not see the requests of its Stores",
		old: `	if once.Options().MaxRetries > 0 {`,
		new: `	if true {`,
		by:  "TestHooks", in: "stores/redisstore",
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
		old: `or token == '' or owner ~= token or earlier(heldUntil, oldUntil) or`,
		new: `or token == '' or (owner and owner ~= token) or (oldUntil and earlier(heldUntil, oldUntil)) or`,
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
		file: "stores/redisstore/internal/server/scripts/settle.lua", breaks: "P4, F4", bug: "a late renewal brings back the lease of a lock that was released too late for the node",
		old: `late = now > tonumber(row[6])`,
		new: `own = now <= tonumber(row[6])`,
		by:  "TestLateReleaseFreesTheNode", in: "stores/redisstore/redisquorum",
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
		file: "stores/redisstore/internal/server/row.go", breaks: "P1, F41", bug: "a hash to which a later version added something counts as empty",
		old: `	if len(r.fields) == 0 {`,
		new: `	if len(r.fields) == 0 || r.fields["addedLater"] != "" {`,
		by:  "TestSimulationOfTwoVersions", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/row.go", breaks: "P1, F14", bug: "another owner's lease is told by that owner's clock",
		old: `	if owner == v.token && `,
		new: `	if `,
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
		file: "stores/redisstore/internal/server/errors.go", breaks: "F2", bug: "a refusal after the client repeated the request counts as not applied",
		old: `		e.Unapplied, e.Hint = !repeats, hint`,
		new: `		e.Unapplied, e.Hint = true, hint`,
		by:  "TestErrors", in: "stores/redisstore",
	},
	{
		file: "stores/redisstore/internal/server/errors.go", breaks: "F8", bug: "a pool without a free connection is blamed on the network",
		old: `s.pool != nil && errors.Is(err, context.DeadlineExceeded) && exhausted(s.pool)`,
		new: `false`,
		by:  "TestPoolIsExhausted", in: "stores/redisstore",
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
		file: "stores/redisstore/internal/server/client.go", breaks: "F55", bug: "the hooks of a client do not see the requests of its Stores",
		old: `		c.AddHook(once{own(c)})
		s.pool,`,
		new: `		s.client, s.pool = own(c), c
		s.pool,`,
		by: "TestHooks", in: "stores/redisstore",
	},
}

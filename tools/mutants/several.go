package main

// several has the bugs in several locks at the same time, and one that
// several hold.
var several = []mutant{
	{
		file: "lock/limit.go", breaks: "P4, F44", bug: "a claim of another slot without an answer is not given up",
		old: `if s.requests.unsure && s != got {`,
		new: `if s.requests.unsure && got == nil {`,
		by:  "TestLateClaimsOfSlots",
	},
	{
		file: "lock/limit.go", breaks: "F13", bug: "one dead slot makes the claim fail",
		old: `if !e.Temporary || s.ctx.Err() != nil {`,
		new: `if e != nil {`,
		by:  "TestFreeSlotBesideDeadOnes",
	},
	{
		file: "lock/limit.go", breaks: "F11", bug: "the first dead slot takes the time of all",
		old: `max(s.until.Sub(now)/2, shortestAttempt)`,
		new: `max(s.until.Sub(now), shortestAttempt)`,
		by:  "TestFreeSlotBesideDeadOnes",
	},
	{
		file: "lock/limit.go", breaks: "P1, F13", bug: "a dead slot beside held ones counts as a store that failed",
		old: `if s.failure != nil && (!s.answered() ||`,
		new: `if s.failure != nil && (true ||`,
		by:  "TestDeadSlotCountsAsHeld",
	},
	{
		file: "lock/limit.go", breaks: "F13", bug: "a store that does not answer counts as one whose slots are held",
		old: `if s.failure != nil && (!s.answered() ||`,
		new: `if s.failure != nil && (false ||`,
		by:  "TestAllSlotsDead",
	},
	{
		file: "lock/limit.go", breaks: "F55", bug: "a throttled store is asked for every slot",
		old: `giveUp(s.locker, s.requests.throttled) && (s`,
		new: `giveUp(s.locker, 1) && (s`,
		by:  "TestAllSlotsDead",
	},
	{
		file: "lock/limit.go", breaks: "F55", bug: "all slots of a store that is down are asked at the same time",
		old: `min(s.streak/min(s.failing(), 8), 7)`,
		new: `0`,
		by:  "TestAllSlotsDead",
	},
	{
		file: "lock/limit.go", breaks: "F13", bug: "a wait ends when no slot answers for a moment",
		old: `		s.until = s.askUntil()
`,
		new: ``,
		by:  "TestWaitOutlastsABreak",
	},
	{
		file: "lock/limit.go", breaks: "F2", bug: "the failure of one slot says that nothing was applied to any",
		old: `	s.failure.Unapplied = !slices.ContainsFunc(`,
		new: `	_ = !slices.ContainsFunc(`,
		by:  "TestFailureOfSeveralSlots",
	},
	{
		file: "lock/limit.go", breaks: "P1", bug: "the slot that was granted is given up too",
		old: `if s.requests.unsure && s != got {`,
		new: `if s.requests.unsure {`,
		by:  "TestLimitedClaimGivenUp|TestLateClaimsOfSlots",
	},
	{
		file: "lock/limit.go", breaks: "P1", bug: "two names share a slot",
		old: `prefix += stored.SlotPrefix + strconv.Itoa(number) + ":"`,
		new: `prefix += stored.SlotPrefix + strconv.Itoa(number)`,
		by:  "TestSlotNamesNeverCollide|TestLimit",
	},
	{
		file: "lock/limit.go", breaks: "P1", bug: "those who do not know of the limit yet do not count",
		old: `	if number > 1 {
		prefix`,
		new: `	if number > 0 {
		prefix`,
		by: "TestLimitIsChanged",
	},
	{
		file: "lock/limit.go", breaks: "F33", bug: "a nested call waits for a second slot",
		old: `if limited && firstSlot(outer.claim.Name) == a.claim.Name {`,
		new: `if limited && outer.claim.Name == a.claim.Name {`,
		by:  "TestNestedLimited",
	},
	{
		file: "lock/limit.go", breaks: "F33", bug: "a colon in a limited name ends what its slots know of it",
		old: `	_, name, _ = strings.Cut(numbered, ":")`,
		new: `	name = numbered[strings.LastIndex(numbered, ":")+1:]`,
		by:  "TestLimitedNameWithAColon",
	},
	{
		file: "lock/limit.go", breaks: "P1", bug: "there is one slot more than the limit",
		old: `slots := make([]slot, a.locker.opts.Limit)`,
		new: `slots := make([]slot, a.locker.opts.Limit+1)`,
		by:  "TestLimit",
	},
	{
		file: "lock/limit.go", breaks: "P5", bug: "a duplicate takes another slot",
		old: `if a.key.Event != "" || a.key.Order != "" {`,
		new: `if a.key.Order != "" {`,
		by:  "TestLimitRefusesEvents",
	},
	{
		file: "lock/limit.go", breaks: "P4", bug: "a slot whose lease has ended is asked when its turn comes",
		old: `return s.row.Token != "" && !s.row.Until.Before(s.claim.Now) && s.row.Until.Before(wall)`,
		new: `return false && s.row.Until.Before(wall)`,
		by:  "TestLimitWait",
	},
	{
		file: "lock/limit.go", breaks: "F38", bug: "all waiters ask the slots in one order",
		old: `range rand.New(a.clock).Perm(len(slots)) {`,
		new: `range rand.New(a.clock).Perm(len(slots))[:0:0] {
		_ = n
		_ = i
	}
	for i := range slots {
		n := i`,
		by: "TestSlotsAreAskedInRandomOrder",
	},
	{
		file: "lock/limit.go", breaks: "replay", bug: "the order of slots is not part of the seed",
		old: `range rand.New(a.clock).Perm(len(slots))`,
		new: `range rand.Perm(len(slots))`,
		by:  "TestSimulation",
	},
	{
		file: "lock/limit.go", breaks: "F29", bug: "an event with a limit makes an error tell the name",
		old: `middleware.OnHeld(middleware.Wait(wait))))", a.key.Digest(),`,
		new: `middleware.OnHeld(middleware.Wait(wait))))", a.key.Name,`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/several.go", breaks: "F34", bug: "keys are acquired in the order in which they are given",
		old: `	slices.SortFunc(sorted, func`,
		new: `	slices.SortFunc(sorted[:0], func`,
		by:  "TestAcquireAll|TestOppositeOrders",
	},
	{
		file: "lock/several.go", breaks: "F34", bug: "keys are ordered without their hashes",
		old: `cmp.Compare(stored.Name(l.prefix, a.Name), stored.Name(l.prefix, b.Name))`,
		new: `cmp.Compare(a.Name, b.Name)`,
		by:  "TestOrderOfStoredNames",
	},
	{
		file: "lock/several.go", breaks: "P4", bug: "the locks before a refused one stay held",
		old: `		if !s.all { // also if an observer panics
			_ = s.Release()
		}`,
		new: `		_ = s.all`,
		by:  "TestAllOrNone",
	},
	{
		file: "lock/several.go", breaks: "F33", bug: "a key that is given twice waits for itself",
		old: `	sorted = slices.Compact(sorted)
`,
		new: ``,
		by:  "TestAcquireAll|TestAcquireAllWithoutUsableKeys",
	},
	{
		file: "lock/several.go", breaks: "P5", bug: "one name with two events is locked for one of them",
		old: `k.Name == sorted[i].Name {`,
		new: `k == sorted[i] {`,
		by:  "TestAcquireAllWithoutUsableKeys",
	},
	{
		file: "lock/several.go", breaks: "P2", bug: "the work goes on when an earlier lock of the set is lost",
		old: `ctx = lk.work // so`,
		new: `_ = lk.work // so`,
		by:  "TestContextEndsWithAnyLease|TestContextOfLocks",
	},
	{
		file: "lock/several.go", breaks: "P5", bug: "a failed completion hides behind those that succeeded",
		old: `len(failed) == 1 {
			s.outcome = failed[0]`,
		new: `len(failed) == 1 {
			s.outcome = nil`,
		by: "TestCompleteAllGoesOn|TestSeveralFailures|TestLostAndCompleted",
	},
	{
		file: "lock/several.go", breaks: "P5", bug: "Complete of a set after Release returns nil",
		old: `	if how == released {
		return ErrReleased
	}
`,
		new: `	_ = how`,
		by:  "TestLocksAfterTheirEnd",
	},
	{
		file: "lock/several.go", breaks: "P4", bug: "a panic of an observer leaves the other locks of a set held",
		old: `		defer endEach(locks[1:], until, end)
`,
		new: `		defer func() {
			if recover() == nil {
				endEach(locks[1:], until, end)
			}
		}()
`,
		by: "TestCallbacksOfASetThatPanic",
	},
	{
		file: "lock/several.go", breaks: "P5", bug: "one row without an answer leaves no time for the others of a set",
		old: `/ 2)
	}
	end(locks[0], limit)`,
		new: `* 0)
	}
	end(locks[0], limit)`,
		by: "TestCompleteAllGoesOn",
	},
}

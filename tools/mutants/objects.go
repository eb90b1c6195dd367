package main

// objects has the bugs in the stores that keep a row in an object.
var objects = []mutant{
	{
		file: "stores/objectstore/store.go", breaks: "P1", bug: "a write is not conditional on the version that was read",
		old: `s.objects.Put(ctx, key, body, version)`,
		new: `func() (string, error) {
		if now, err := s.objects.Get(ctx, key); err == nil {
			version = now.Version
		}
		return s.objects.Put(ctx, key, body, version)
	}()`,
		by: "TestConformance",
	},
	{
		file: "stores/objectstore/store.go", breaks: "P4", bug: "what is known without reading refuses a claim",
		old: `if outcome != changed && seen.read {`,
		new: `if outcome != changed {`,
		by:  "TestCacheNeverRefuses",
	},
	{
		file: "stores/objectstore/store.go", breaks: "P4", bug: "another owner's row in the cache refuses a claim",
		old:      `err == nil && (r.OwnerToken == "" || r.OwnerToken == q.token)`,
		new:      `err == nil`,
		by:       "TestCacheNeverRefuses|TestRequestsOfOtherSteps",
		survives: "a row that was not read just now refuses nothing, so it is read after all",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F1", bug: "a write that a proxy repeated counts as refused",
		old: `(bytes.Equal(body, seen.body) || q.completed(&seen, row.Fence))`,
		new: `q.completed(&seen, row.Fence)`,
		by:  "TestReleaseSentTwice",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F21", bug: "a duplicate's completion counts as the lock's own",
		old: `seen.OwnerToken == "" || seen.FenceBefore != fence`,
		new: `false`,
		by:  "TestRefusedCompletion",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F21", bug: "a completion that lost its lock counts as applied if it was the first of its order",
		old: `m.HighestOrder == q.memory.HighestOrder && `,
		new: ``,
		by:  "TestRefusedCompletion",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F5", bug: "a completion that a proxy repeated counts as lost once the name is taken",
		old: `(bytes.Equal(body, seen.body) || q.completed(&seen, row.Fence))`,
		new: `bytes.Equal(body, seen.body)`,
		by:  "TestRefusedCompletion",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F21", bug: "an earlier completion of a forgotten event counts as the lock's own",
		old: `a.Event == b.Event && a.Until.Equal(b.Until)`,
		new: `a.Event == b.Event`,
		by:  "TestRefusedCompletionOfForgottenEvent",
	},
	{
		file: "stores/objectstore/store.go", breaks: "P4, F1", bug: "the last write counts as refused without another look",
		old: `range rounds + 1 {`,
		new: `range rounds {`,
		by:  "TestChangedBetweenGetAndPut",
	},
	{
		file: "stores/objectstore/store.go", breaks: "P3", bug: "a fence is that of the row and one more, whatever was lost",
		old: `row.Take(c, c.Stamp)`,
		new: `row.Take(c, time.Time{})`,
		by:  "TestConformance",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F2", bug: "an object without the service's time is used",
		old: `(object.Version == "" || object.Modified.IsZero() || object.Now.IsZero())`,
		new: `object.Version == ""`,
		by:  "TestServiceWithoutTime",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F40", bug: "without s3:ListBucket no new name can be claimed",
		old: `unread != nil && !denied(unread) {`,
		new: `unread != nil {`,
		by:  "TestHiddenObjects",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F40", bug: "a claim that may read nothing counts as a conflict, and goes on",
		old: `		if unread != nil && (outcome != changed || round == rounds) {`,
		new: `		if unread != nil && outcome != changed {`,
		by:  "TestDeniedReads",
	},
	{
		file: "stores/objectstore/store.go", breaks: "F8", bug: "a claim whose read failed is given up by one more write",
		old: `				if body == nil {
					unread`,
		new: `				if body != nil {
					unread`,
		in: "stores/s3store", by: "TestErrors",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1, F14", bug: "leases are judged by the claimant's clock",
		old: `		row.Until = s.end(now)`,
		new: ``,
		by:  "TestClocksHoursApart|TestConformance",
	},
	{
		file: "stores/objectstore/row.go", breaks: "F41", bug: "an object to which a later version added something is unreadable",
		old: `		err = json.Unmarshal(body, &r)
	}`,
		new: `		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		err = d.Decode(&r)
	}`,
		in: "lock", by: "TestSimulationOfTwoVersionsOnObjects",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1", bug: "a lease ends within the last second, because times are whole seconds",
		old: `resolution = time.Second - time.Microsecond`,
		new: `resolution = time.Duration(0)`,
		by:  "TestWholeSeconds",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1, F44", bug: "a claim that is given up makes the holder's lease begin anew",
		old: `	if s.LeasedAt.IsZero() {
		return s.modified
	}
	return s.LeasedAt`,
		new: `	return s.modified`,
		by:  "TestStrangerWritesHeldRow|TestConformance",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1, F4", bug: "a renewal for a shorter time moves the end of a lease nearer",
		old: `row.Token == s.OwnerToken && s.lease > lease {`,
		new: `false {`,
		by:  "TestLeaseNeverMovesBack",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1, F4", bug: "a renewal for a shorter time does not read when the lease began",
		old: `			if !s.read {
				return r, false
			}
`,
		new: ``,
		by:  "TestLeaseNeverMovesBack",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P4, F4", bug: "a copy of a renewal extends the lease again",
		old: `keeps := row.Token == s.OwnerToken && (row.Token != q.token || row.Until.Equal(s.HeldUntil))`,
		new: `keeps := row.Token == s.OwnerToken && row.Token != q.token`,
		by:  "TestLateCopiesExtendNothing",
	},
	{
		file: "stores/objectstore/row.go", breaks: "F1", bug: "two writes of one row have the same bytes",
		old: `Writes: s.Writes + 1,`,
		new: `Writes: 1,`,
		by:  "TestNoTwoWritesAreEqual",
	},
	{
		file: "stores/objectstore/row.go", breaks: "P1", bug: "an object of another name is taken for the row",
		old: `case Key(format.Name) != key:`,
		new: `case Key(format.Name) != key && r.Stamp.IsZero():`,
		by:  "TestUnreadableObjects",
	},
	{
		file: "stores/objectstore/row.go", breaks: "F41", bug: "a row of a newer version is read as one of this",
		old: `	if s.RowFormat != nil {
		return driver.Row{Newer: true}
	}
`,
		new: ``,
		by:  "TestNewerRows",
	},
	{
		file: "stores/objectstore/race.go", breaks: "P1, F52, F59", bug: "a service that applies several writes with one condition is used",
		old: `if len(r.won) > 1 {`,
		new: `if len(r.won) > racers {`,
		by:  "TestProbeFindsIgnoredConditions|TestProbeFindsCheckThenWrite",
	},
	{
		file: "stores/objectstore/race.go", breaks: "P1, F59", bug: "the writes of a race follow each other",
		old: `		wg.Go(func() {
			version, err`,
		new: `		func(f func()) { f() }(func() {
			version, err`,
		by: "TestProbeFindsCheckThenWrite",
	},
	{
		file: "stores/objectstore/race.go", breaks: "P1, F14", bug: "a proxy that answers with its own clock is not found",
		old: `-behind < age && age < passed+ahead {`,
		new: `-behind < age && age < passed+time.Hour {`,
		by:  "TestProbeFindsTwoClocks",
	},
	{
		file: "stores/objectstore/probe.go", breaks: "P1, F52, F59", bug: "no writes race to replace an object",
		old: `		wg.Go(func() { replace.run(ctx, o) })
`,
		new: ``,
		by:  "TestProbeFindsIgnoredConditions|TestProbeFindsCheckThenWrite",
	},
	{
		file: "stores/objectstore/probe.go", breaks: "F59", bug: "processes that start at the same time probe with the same objects",
		old: `probePrefix + clock.From(ctx).Text()`,
		new: `probePrefix + clock.From(ctx).Text()[:0]`,
		by:  "TestProbesAtOnce|TestProbe",
	},
	{
		file: "stores/objectstore/probe.go", breaks: "F59", bug: "a probe that ran out of time begins anew",
		old: `	e.Err = fmt.Errorf(`,
		new: `	p.races = 0
	e.Err = fmt.Errorf(`,
		by: "TestProbeGoesOn",
	},
	{
		file: "stores/objectstore/probe.go", breaks: "F59", bug: "the end of a claim cuts a step of the probe short",
		old: `!ok || !deadline.Before(limit) {`,
		new: `!ok || !deadline.IsZero() {`,
		by:  "TestProbeGoesOn|TestProbeCutShort",
	},
	{
		file: "stores/objectstore/probe.go", breaks: "P1, F59", bug: "a race for an object that may have changed counts",
		old: `			p.last = made{} // its version may have changed
`,
		new: ``,
		by:  "TestProbeCutShort",
	},
	{
		file: "stores/objectstore/inspect.go", breaks: "F59", bug: "a check of the store does not look at the server",
		old: `	if c, ok := s.objects.(driver.Checker); ok {`,
		new: `	if c, ok := s.objects.(driver.Checker); ok && s == nil {`,
		in:  "stores/s3store", by: "TestSlowServer|TestEndpoints",
	},
	{
		file: "stores/objectstore/inspect.go", breaks: "F41", bug: "one object that is not a row ends the list",
		old: `		if !errors.As(err, &e) || !e.Lasting || e.Action != "" {`,
		new: `		if !errors.As(err, &e) || e != nil {`,
		by:  "TestRowsGoOn",
	},
	{
		file: "stores/objectstore/inspect.go", breaks: "F41", bug: "the rows are read one after another",
		old: `const readers = 64`,
		new: `const readers = 1`,
		by:  "TestRowsOfManyObjects",
	},
	{
		file: "stores/objectstore/inspect.go", breaks: "F39", bug: "reads go on after the caller has stopped",
		old: `			close(stop)
			cancel()
`,
		new: `			close(stop)
			defer cancel()
`,
		by: "TestRowsEnd",
	},
}

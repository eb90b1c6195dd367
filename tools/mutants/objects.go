package main

// objects has the bugs in the stores that keep a row in an object of S3 or of
// Azure, and in bloblease.Protect.
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
		file: "stores/objectstore/row.go", breaks: "P1, F14", bug: "leases are judged by the claimant's clock",
		old: `row.Until = now.Add(s.leasedAt().Add(s.lease + resolution).Sub(s.now))`,
		new: `row.Until = row.Until.Add(0 * now.Sub(s.now) * resolution)`,
		by:  "TestClocksHoursApart|TestConformance",
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
		old: `s.OwnerToken == q.token && s.lease > lease {`,
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
		old: `keeps := row.Token != q.token || s.OwnerToken == q.token && row.Until.Equal(s.HeldUntil)`,
		new: `keeps := row.Token != q.token`,
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
		old: `		if !errors.As(err, &e) || e.Temporary || e.Action != "" {`,
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
		file: "stores/objectstore/race.go", breaks: "P1, F14", bug: "a proxy that answers with its own clock is not found",
		old: `-behind < age && age < passed+ahead {`,
		new: `-behind < age && age < passed+time.Hour {`,
		by:  "TestProbeFindsTwoClocks",
	},
	{
		file: "stores/s3store/objects.go", breaks: "P1", bug: "a new object overwrites one that another has just made",
		old: `		in.IfNoneMatch = aws.String("*")
`,
		new: `		in.IfNoneMatch = nil
`,
		by: "TestConditions|TestConformance",
	},
	{
		file: "stores/s3store/objects.go", breaks: "P1", bug: "an object is overwritten whatever its version",
		old: `		in.IfMatch = &version
`,
		new: `		in.IfMatch = nil
`,
		by: "TestConditions|TestConformance",
	},
	{
		file: "stores/s3store/objects.go", breaks: "F1", bug: "the SDK repeats a write, which then meets its own first copy",
		old: `	o.Retryer = aws.NopRetryer{}
`,
		new: ``,
		by:  "TestRequests|TestErrors|TestNoAnswer",
	},
	{
		file: "stores/s3store/objects.go", breaks: "P1, F52", bug: "a server that is not S3's is not checked",
		old: `o.put(ctx, key, body, version, guard(o.trust))`,
		new: `o.put(ctx, key, body, version)`,
		by:  "TestServerThatIgnoresConditions|TestEndpoints",
	},
	{
		file: "stores/s3store/guard.go", breaks: "P1, F52", bug: "an access point is taken for a bucket",
		old: `s3(-fips|-accelerate|`,
		new: `s3(-fips|-accelerate|-accesspoint|`,
		by:  "TestEndpoints",
	},
	{
		file: "stores/s3store/guard.go", breaks: "P1, F52", bug: "an alias in place of the bucket is taken for one",
		old: `!amazons(host) || alias.MatchString(o.bucket) {`,
		new: `!amazons(host) {`,
		by:  "TestAccessPoints",
	},
	{
		file: "stores/s3store/guard.go", breaks: "P1, F52", bug: "locks are kept on a volume without conditional writes",
		old: `case volume.MatchString(name):`,
		new: `case volume == nil:`,
		by:  "TestAccessPoints",
	},
	{
		file: "stores/s3store/guard.go", breaks: "P1, F52", bug: "locks are kept in several buckets",
		old: `case multiRegion.MatchString(name):`,
		new: `case multiRegion == nil:`,
		by:  "TestAccessPoints",
	},
	{
		file: "stores/azblobstore/guard.go", breaks: "F59", bug: "a check of the store does not look at the server",
		old: `	return o.probe.Run(ctx, unguarded{o})
`,
		new: `	return nil
`,
		by: "TestCheck",
	},
	{
		file: "stores/s3store/errors.go", breaks: "P4, F8", bug: "a throttled write counts as not applied",
		old: `StatusTooManyRequests:
		e.Answered = true
`,
		new: `StatusTooManyRequests:
		e.Answered, e.Unapplied = true, true
`,
		by: "TestThrottledAfterApplied",
	},
	{
		file: "stores/azblobstore/internal/azure/errors.go", breaks: "P4, F8", bug: "a throttled write counts as not applied",
		old: `StatusTooManyRequests {
		e.Answered = true
`,
		new: `StatusTooManyRequests {
		e.Answered, e.Unapplied = true, true
`,
		by: "TestErrors", in: "stores/azblobstore",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F1, F43", bug: "a release that a proxy sends twice counts as a lost lease",
		old: `(unsure || p.free(ctx))`,
		new: `unsure`,
		by:  "TestProtectRelease",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P2, F43", bug: "a lease that somebody else has counts as released",
		old: `return err == nil && properties.LeaseState != nil && *properties.LeaseState == lease.StateTypeAvailable`,
		new: `return err == nil && properties.LeaseState != nil && *properties.LeaseState != ""`,
		by:  "TestProtectRelease",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F43", bug: "the error of a blob that is leased does not have the service's answer",
		old: `Err: p.about(errors.Unwrap(err))}`,
		new: `Err: p.about(errNotRenewed)}`,
		by:  "TestProtectHeld",
	},
	{
		file: "lock/errors.go", breaks: "F43", bug: "work that deletes its blob counts as work that lost it",
		old: `known(ErrLost, e.Err)`,
		new: `known(ErrLost)`,
		by:  "TestProtectRelease", in: "stores/azblobstore/bloblease",
	},
	{
		file: "stores/s3store/objects.go", breaks: "F35", bug: "a large row cannot be read",
		old: `const largest = 8 << 20`,
		new: `const largest = 8 << 10`,
		by:  "TestConformance",
	},
	{
		file: "stores/azblobstore/objects.go", breaks: "F35", bug: "a large row cannot be read",
		old: `const largest = 8 << 20`,
		new: `const largest = 8 << 10`,
		by:  "TestConformance",
	},
	{
		file: "stores/azblobstore/objects.go", breaks: "F9", bug: "a blob that was deleted since it was read makes the claim fail",
		old: `bloberror.ConditionNotMet, bloberror.BlobNotFound)`,
		new: `bloberror.ConditionNotMet)`,
		by:  "TestRefusedWrites",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F43", bug: "a lease that is being broken counts as a failure of the service",
		old: `bloberror.LeaseAlreadyPresent, bloberror.LeaseIsBreakingAndCannotBeAcquired)`,
		new: `bloberror.LeaseAlreadyPresent)`,
		by:  "TestProtectBrokenAtOnce",
	},
	{
		file: "stores/s3store/objects.go", breaks: "F2", bug: "a body that broke off counts as an answer",
		old: `		return objectstore.Object{}, o.classify("s3:GetObject", err)
	}
	now, _`,
		new: `		return objectstore.Object{}, objectstore.ErrNotExist
	}
	now, _`,
		by: "TestBrokenBody",
	},
	{
		file: "stores/s3store/errors.go", breaks: "P1", bug: "a refused condition counts as a failure of the service",
		old: `if a.status == http.StatusPreconditionFailed || a.code == "PreconditionFailed" || conflicts`,
		new: `if conflicts`,
		by:  "TestConditions",
	},
	{
		file: "stores/s3store/errors.go", breaks: "F9", bug: "a write that is under way makes the claim fail",
		old: `conflicts[a.code] || `,
		new: ``,
		by:  "TestConditions",
	},
	{
		file: "stores/s3store/errors.go", breaks: "F5", bug: "a refusal that was cut off counts as permanent",
		old: `case a.code == "" && neterror.Cut(err):`,
		new: `case a.code == "" && neterror.Cut(nil):`,
		by:  "TestBrokenBody",
	},
	{
		file: "stores/s3store/errors.go", breaks: "P1", bug: "a bucket that does not exist reads as a free name",
		old: `if answerOf(err).code == missing {`,
		new: `if answerOf(err).status == http.StatusNotFound {`,
		by:  "TestErrors|TestConditions",
	},
	{
		file: "stores/s3store/errors.go", breaks: "F2", bug: "a request that got an answer of 500 counts as not applied",
		old: `a.status != http.StatusNotImplemented:
`,
		new: `a.status != http.StatusNotImplemented:
		e.Unapplied = true
`,
		by: "TestErrors",
	},
	{
		file: "stores/azblobstore/objects.go", breaks: "P1", bug: "a blob is overwritten whatever its version",
		old: `condition := &blob.ModifiedAccessConditions{IfMatch: &tag}`,
		new: `condition := &blob.ModifiedAccessConditions{}`,
		by:  "TestConformance|TestObjects",
	},
	{
		file: "stores/azblobstore/objects.go", breaks: "P1", bug: "a new blob overwrites one that another has just made",
		old: `		condition = &blob.ModifiedAccessConditions{IfNoneMatch: &tag}
`,
		new: `		condition = &blob.ModifiedAccessConditions{}
`,
		by: "TestConformance|TestObjects",
	},
	{
		file: "stores/azblobstore/internal/azure/errors.go", breaks: "F1", bug: "the SDK repeats requests by itself",
		old: `policy.RetryOptions{MaxRetries: -1}`,
		new: `policy.RetryOptions{}`,
		by:  "TestOneRequest", in: "stores/azblobstore",
	},
	{
		file: "stores/azblobstore/objects.go", breaks: "P1, F52", bug: "a server that is not Azure's is not checked",
		old: `	if err := o.Check(ctx); err != nil {`,
		new: `	if err := o.Check(ctx); err != nil && o.client == nil {`,
		by:  "TestServerIgnoresConditions|TestServerIsProbed",
	},
	{
		file: "stores/azblobstore/internal/azure/errors.go", breaks: "F2", bug: "a request that got an answer of 500 counts as not applied",
		old: `status == http.StatusRequestTimeout {
`,
		new: `status == http.StatusRequestTimeout {
		e.Unapplied = true
`,
		by: "TestErrors", in: "stores/azblobstore",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P2", bug: "a lease counts from the answer",
		old: `p.end, p.wallEnd = began.Add(p.length), wall.Add(p.length)`,
		new: `p.end, p.wallEnd = time.Now().Add(p.length), p.wall().Add(p.length).Add(0*time.Since(began)*time.Since(wall))`,
		by:  "TestProtectCountsFromTheRequest",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P2, F15", bug: "a lease is measured by the clock that stands still while frozen",
		old: `min(time.Until(p.end), p.wallEnd.Sub(p.wall())) - margin`,
		new: `time.Until(p.end) - margin`,
		by:  "TestProtectLost|TestProtectEndsTheWorkInTime",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P2, F15", bug: "a wall clock that is set back makes a lease longer",
		old: `min(time.Until(p.end), p.wallEnd.Sub(p.wall())) - margin`,
		new: `p.wallEnd.Sub(p.wall()) - margin`,
		by:  "TestProtectCountsFromTheRequest",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P2", bug: "the work ends with its lease, not before",
		old: `min(time.Until(p.end), p.wallEnd.Sub(p.wall())) - margin`,
		new: `min(time.Until(p.end), p.wallEnd.Sub(p.wall()))`,
		by:  "TestProtectEndsTheWorkInTime",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "P4, F2", bug: "an acquisition without an answer leaves the blob leased",
		old: `	if unsure { // the blob`,
		new: `	if unsure && p == nil { // the blob`,
		by:  "TestProtectAcquire|TestProtectCanceledWhileAcquiring",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F39", bug: "the renewals are not waited for",
		old: `	p.quit()
	<-p.done
`,
		new: `	p.quit()
`,
		by: "TestProtectLeavesNothingBehind",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F43", bug: "a broken lease is renewed again and again",
		old: `		case ended(failed):
			return p.logLost(ctx, failed)
`,
		new: `		case ended(failed) && ctx == nil:
			return p.logLost(ctx, failed)
`,
		by: "TestProtectLost|TestProtectRenewalFails",
	},
	{
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F43", bug: "an answer of a proxy ends a lease",
		old: `if !errors.As(err, &answer) || answer.ErrorCode == "" {`,
		new: `if !errors.As(err, &answer) {`,
		by:  "TestProtectRenewalFails|TestLeaseAnswers",
	},
	{
		file: "stores/azblobstore/bloblease/protect.go", breaks: "P5", bug: "work that succeeded after it lost the lease counts as a success",
		old: `			err = p.lost
`,
		new: `			err = nil
`,
		by: "TestProtectLost",
	},
	{
		file: "stores/azblobstore/bloblease/protect.go", breaks: "P4", bug: "the lease is not released",
		old: `		p.release(context.WithoutCancel(ctx))
`,
		new: `		_ = p.release
`,
		by: "TestProtect|TestProtectRelease",
	},
}

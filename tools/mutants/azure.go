package main

// azure has the bugs in the Azure store and bloblease.
var azure = []mutant{
	{
		file: "stores/azblobstore/guard.go", breaks: "F59", bug: "a check of the store does not look at the server",
		old: `	return o.probe.Run(ctx, unguarded{o})
`,
		new: `	return nil
`,
		by: "TestCheck",
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
		file: "stores/azblobstore/internal/azure/errors.go", breaks: "F1", bug: "the SDK repeats requests by itself",
		old: `policy.RetryOptions{MaxRetries: -1}`,
		new: `policy.RetryOptions{}`,
		by:  "TestOneRequest", in: "stores/azblobstore",
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
		file: "stores/azblobstore/bloblease/protection.go", breaks: "F43", bug: "a lease that is being broken counts as a failure of the service",
		old: `bloberror.LeaseAlreadyPresent, bloberror.LeaseIsBreakingAndCannotBeAcquired)`,
		new: `bloberror.LeaseAlreadyPresent)`,
		by:  "TestProtectBrokenAtOnce",
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
		file: "stores/azblobstore/objects.go", breaks: "P1, F52", bug: "a server that is not Azure's is not checked",
		old: `	if err := o.Check(ctx); err != nil {`,
		new: `	if err := o.Check(ctx); err != nil && o.client == nil {`,
		by:  "TestServerIgnoresConditions|TestServerIsProbed",
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

package main

// s3 has the bugs in the S3 store.
var s3 = []mutant{
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
		file: "stores/s3store/objects.go", breaks: "F35", bug: "a large row cannot be read",
		old: `const largest = 8 << 20`,
		new: `const largest = 8 << 10`,
		by:  "TestConformance",
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
}

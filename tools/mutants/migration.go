package main

// migration has the bugs in the way from another library.
var migration = []mutant{
	{
		file: "migration/powertools/powertools.go", breaks: "P5", bug: "what the old version completed runs again",
		old: `		if r.completed {`,
		new: `		if false {`,
		by:  "TestCutOver|TestRecords",
	},
	{
		file: "migration/powertools/record.go", breaks: "P2", bug: "what the old version works on runs",
		old: `status == inProgress && end != nil && number(end) < now.Add(-skew).UnixMilli()`,
		new: `status == inProgress`,
		by:  "TestCutOver|TestRecords",
	},
	{
		file: "migration/powertools/record.go", breaks: "P2", bug: "the old version is taken to end by a clock that may be ahead",
		old: `number(end) < now.Add(-skew).UnixMilli()`,
		new: `number(end) < now.UnixMilli()`,
		by:  "TestRecords",
	},
	{
		file: "migration/powertools/record.go", breaks: "P5", bug: "the old version does not know what the new one claims",
		old: `	if now.Before(t.CutOver) {`,
		new: `	if now.After(t.CutOver.Add(t.Retention)) {`,
		by:  "TestBothVersions|TestClaims",
	},
	{
		file: "migration/powertools/record.go", breaks: "cost", bug: "the old table is asked for ever",
		old: `	if !now.Before(t.CutOver.Add(t.Retention)) {`,
		new: `	if false {`,
		by:  "TestCutOver",
	},
	{
		file: "migration/powertools/record.go", breaks: "P5", bug: "a late copy of a claim undoes the completion in the old table",
		old: `OR #status = :status AND (#lambdalock = :token"+`,
		new: `OR (#lambdalock = :token AND #status <> :now"+`,
		by:  "TestClaims",
	},
	{
		file: "migration/powertools/record.go", breaks: "P4", bug: "after a failure the claim keeps the old version out",
		old: `attributes{"in_progress_expiration": num(0)}`,
		new: `attributes{}`,
		by:  "TestClaims",
	},
	{
		file: "migration/powertools/record.go", breaks: "P5", bug: "after its deadline a handler completes nothing in the old table",
		old: `t.update(context.WithoutCancel(ctx), r, set,`,
		new: `t.update(ctx, r, set,`,
		by:  "TestClaims",
	},
	{
		file: "migration/powertools/record.go", breaks: "P2", bug: "a claim ends the work of another version",
		old: `set, "#lambdalock = :token", attributes{})`,
		new: `set, "attribute_exists(#id)", attributes{})`,
		by:  "TestOvertakenClaim",
	},
	{
		file: "migration/powertools/record.go", breaks: "P5", bug: "of attributes with other names every record counts as expired",
		old: `	case number(expiration) < 0 || `,
		new: `	case `,
		by:  "TestRecords",
	},
	{
		file: "migration/powertools/key.go", breaks: "P5", bug: "a float of Python has the id of an integer",
		old: `		plain += ".0"`,
		new: `		plain += ""`,
		by:  "TestID",
	},
	{
		file: "migration/powertools/key.go", breaks: "P5", bug: "members are sorted for JavaScript as for Python",
		old: `strings.ToLower(strings.ReplaceAll(m.Name, "İ", "i̇"))`,
		new: `m.Name`,
		by:  "TestID",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "P5", bug: "unpaired surrogates are lost on the way to another encoding",
		old: `if s[0] == mark && s[1] == 'u' {`,
		new: `if s[0] == mark && s[1] == 'U' {`,
		by:  "TestUTF16",
	},
}

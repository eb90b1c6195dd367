package main

// events has the bugs in how an event is told from another.
var events = []mutant{
	{
		file: "internal/event/canonical/canonical.go", breaks: "F25", bug: "members in another order make another key",
		old: `		return v.Sort()
`,
		new: `		return v
`,
		by: "TestJSON",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "F27", bug: "half of a surrogate pair makes two strings one",
		old: `b = fmt.Appendf(append(b, mark), "u%04x", r)`,
		new: `b = utf8.AppendRune(b, r)`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "F28", bug: "a whole character outside the basic plane counts as a half",
		old: `			length = 12
`,
		new: `			length, found = 12, true
			rest = rest[:i] + "\\ue000\\ue000" + rest[i+12:]
`,
		by: "TestHalvesOfSurrogatePairs", in: "keyfuncs",
	},
	{
		file: "internal/event/canonical/number.go", breaks: "F27", bug: "a number and its negative make one key",
		old: `	if negative {`,
		new: `	if negative && len(s) > 40 {`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/canonical/number.go", breaks: "F27", bug: "a fraction makes one key with a whole number",
		old: `len(written)-len(digits)-len(fraction)`,
		new: `len(written)-len(digits)`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/keyparts/keyparts.go", breaks: "F28", bug: "the parts of a name are not told apart",
		old: `url.PathEscape(p)`,
		new: `url.PathEscape(p)[:0] + p`,
		by:  "TestCombinators|TestIdempotencyKeyTellsApart|TestCloudWatchLogsTellsApart", in: "keyfuncs",
	},
	{
		file: "internal/event/eventkind/eventkind.go", breaks: "F31", bug: "what a destination gets is called an HTTP request",
		old: `&& requestContext.FunctionARN != "" {`,
		new: `&& requestContext.FunctionARN == "-" {`,
		by:  "TestOfOddities",
	},
	{
		file: "keyfuncs/jmespath/typed.go", breaks: "F28", bug: "a broken character is found as a name",
		old: `if err != nil || other != k {`,
		new: `if err != nil && other != k {`,
		by:  "TestLostCharacters", in: "keyfuncs",
	},
	{
		file: "keyfuncs/jmespath/payload.go", breaks: "F28", bug: "the digest of a pointer stands for a large message",
		old: `	case eventkind.IsPointer(text):`,
		new: `	case eventkind.IsPointer(nil):`,
		by:  "TestPayloadOfAnEvent",
	},
	{
		file: "internal/event/eventkind/place.go", breaks: "F26", bug: "an embedded request is not found",
		old: `f.Anonymous && f.Tag.Get("json") == ""`,
		new: `f.Anonymous && f.Tag.Get("json") != ""`,
		by:  "TestRequestIn",
	},
}

package main

// memory has the bugs in what a name remembers.
var memory = []mutant{
	{
		file: "lock/memory.go", breaks: "P5, F23", bug: "an order is remembered for a day only",
		old: `	if m.HighestOrder != "" {
		keep = later(keep, now.Add(remember))
	}
`,
		new: `	_ = remember
`,
		by: "TestRowOutlivesItsOrder",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "an order falls when an unordered or earlier event completes",
		old: `HighestOrder: max(m.HighestOrder, c.order)`,
		new: `HighestOrder: c.order`,
		by:  "TestUnorderedEventKeepsOrder",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "expired events take the room of others",
		old: `if old.Event != c.event && !old.Expired(c.now) {`,
		new: `if old.Event != c.event {`,
		by:  "TestExpiredEventsMakeRoom",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "an event is remembered twice",
		old: `if old.Event != c.event && !old.Expired(c.now) {`,
		new: `if !old.Expired(c.now) {`,
		by:  "TestEventIsRememberedOnce",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "only seven events are remembered at least",
		old: `defaultRememberEvents = 8`,
		new: `defaultRememberEvents = 7`,
		by:  "TestLastEventsAreRemembered",
	},
	{
		file: "lock/memory.go", breaks: "P5, F46", bug: "the events of one delivery push each other out",
		old: `before-i <= r.least || r.batch[c.Event] && size <= forBatch`,
		new: `before-i <= r.least && forBatch > 0`,
		by:  "TestDeliveryIsRemembered",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "the first events of a name stay, and not the last",
		old: `before-i <= r.least || r.batch`,
		new: `i < r.least || r.batch`,
		by:  "TestLastEventsAreRemembered",
	},
	{
		file: "lock/memory.go", breaks: "F35", bug: "a row grows beyond what a store takes",
		old: `if size > largestRow || size > usualRow && !stays {`,
		new: `if size > usualRow && !stays {`,
		by:  "TestRowStaysBelowSizeLimit",
	},
	{
		file: "lock/memory.go", breaks: "F35", bug: "a result that is too large is kept, so that the completion fails",
		old: `if room.size(next)+len(next.Result.Body) > largestRow {`,
		new: `if room.size(next) > largestRow {`,
		by:  "TestRowStaysBelowSizeLimit|TestResult|TestOldResultMakesRoom",
	},
	{
		file: "lock/memory.go", breaks: "P5", bug: "a duplicate gets the result of an earlier run",
		old: `case m.Result.Event != c.event && next.Has(`,
		new: `case next.Has(`,
		by:  "TestResultOfEarlierRun|TestResult|TestResultOfAnotherEvent",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "a row may be deleted before what it remembers expires",
		old: `		keep = later(keep, c.Until)
`,
		new: `		_ = c
`,
		by: "TestRowOutlivesItsMemory",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "a row lives only as long as the event that was completed first",
		old: `	for _, c := range m.Completed {
		keep =`,
		new: `	for _, c := range m.Completed[:min(1, len(m.Completed))] {
		keep =`,
		by: "TestRowOutlivesItsMemory",
	},
	{
		file: "lock/memory.go", breaks: "P3, F24", bug: "a row of which nothing is remembered may be deleted immediately",
		old: `keep := now.Add(keepRow)`,
		new: `keep := now`,
		by:  "TestRowExpiry|TestFenceAfterRowDeletion",
	},
	{
		file: "lock/memory.go", breaks: "P5, F47", bug: "the row of a dead holder is kept for a day, whatever others remember",
		old: `return until.Add(longestRemember)`,
		new: `return until.Add(keepRow)`,
		by:  "TestRowExpiry|TestRowOutlivesItsMemory",
	},
}

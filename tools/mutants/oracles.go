package main

// oracles has bugs that show only in what the simulations look for.
var oracles = []mutant{
	// Panics that nobody planned.
	{
		file: "lock/settlement.go", breaks: "P7", bug: "the end of a nested lock that was lost panics",
		old: `	if outcome == OutcomeReleased && s.resultDropped {
`,
		new: `	if outcome == OutcomeLost && l.outer != nil && l.set == nil {
		panic((*Lock)(nil).outer)
	}
	if outcome == OutcomeReleased && s.resultDropped {
`,
		by: "TestSimulation",
	},
	{
		file: "lock/settlement.go", breaks: "P7", bug: "the end of a lock that was lost panics",
		old: `	if outcome == OutcomeReleased && s.resultDropped {
`,
		new: `	if outcome == OutcomeLost {
		panic((*Lock)(nil).outer)
	}
	if outcome == OutcomeReleased && s.resultDropped {
`,
		by: "TestDelivery", in: "internal/sim/delivery",
	},
	// Losses without a reason.
	{
		file: "lock/heartbeat.go", breaks: "F4", bug: "one granted renewal in five counts as refused",
		old: `	if ok {
		l.confirm(until)
	}
`,
		new: `	if ok {
		l.confirm(until)
	}
	if ok && now.UnixMicro()%5 == 0 {
		return false, r.sent, nil
	}
`,
		by: "TestSimulation",
	},
	{
		file: "lock/settlement.go", breaks: "P5", bug: "a completion that needed two attempts counts as lost",
		old: `case ok || s.unsure && l.wasApplied(s):`,
		new: `case ok && !s.unsure || s.unsure && !ok && l.wasApplied(s):`,
		by:  "TestSimulation",
	},
	// Resumed work that meets trouble.
	{
		file: "lock/handover.go", breaks: "F54", bug: "a handle is worth nothing to the second who resumes it",
		old: `return ok || l.row.Token == l.claim.Token, err // a step`,
		new: `return ok, err // a step`,
		by:  "TestSimulation",
	},
}

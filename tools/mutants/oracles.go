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
}

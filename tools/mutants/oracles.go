package main

// oracles has bugs that show only in what simulations look for, and in what is
// said about keys.
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
		by: "TestDelivery", in: "internal/robustness/delivery",
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
	// Seeds that do not bring a history back.
	{
		file: "lock/limit.go", breaks: "replay", bug: "the order of slots is not part of the seed",
		old: `range rand.New(a.clock).Perm(len(slots))`,
		new: `range rand.Perm(len(slots))`,
		by:  "TestSimulation",
	},
	{
		file: "lock/handover.go", breaks: "replay", bug: "tokens are not part of the seed",
		old: `c.Text()[:16] + seal`,
		new: `clock.From(context.Background()).Text()[:16] + seal`,
		by:  "TestSimulationOfEndsReplays",
	},
	{
		file: "lock/retry.go", breaks: "replay", bug: "pauses are not part of the seed",
		old: `clock.Jitter(r.clock, firstPause<<min(try, 7))`,
		new: `clock.Jitter(clock.From(context.Background()), firstPause<<min(try, 7))`,
		by:  "TestSimulationOfEndsReplays",
	},
	{
		file: "lock/wait.go", breaks: "replay", bug: "the times between a waiter's looks are not part of the seed",
		old: `clock.Jitter(a.clock, look/2)`,
		new: `clock.Jitter(clock.From(context.Background()), look/2)`,
		by:  "TestSimulation",
	},
	{
		file: "middleware/batch.go", breaks: "replay", bug: "the gaps between the claims of a batch are not part of the seed",
		old: `Chance: clock.From(ctx)`,
		new: `Chance: clock.From(context.Background())`,
		by:  "TestDeliveryIsItsSeed|TestDeadlineIsItsSeed", in: "internal/robustness/delivery",
	},
	// Resumed work that meets trouble.
	{
		file: "lock/heartbeat.go", breaks: "F54", bug: "a handle is worth nothing to the second who resumes it",
		old: `	for range 4 {
		raise(`,
		new: `	for range 1 {
		raise(`,
		by: "TestSimulation|TestHandOverNeverShortensTheLease",
	},
	// What is said about a key.
	{
		file: "lock/handover.go", breaks: "F29", bug: "a set that is handed over tells its name",
		old: `"key " + l.key.Digest() + " was locked together with others, and a ticket`,
		new: `"key " + l.key.Name + " was locked together with others, and a ticket`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/handover.go", breaks: "F29", bug: "an edited ticket makes an error tell the name",
		old: `of the ticket for key " + l.key.Digest() + " is not`,
		new: `of the ticket for key " + l.key.Name + " is not`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/settlement.go", breaks: "F29", bug: "a transaction of a set tells its name",
		old: `"key " + l.key.Digest() + " was locked together with others, and a transaction`,
		new: `"key " + l.key.Name + " was locked together with others, and a transaction`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/settlement.go", breaks: "F29", bug: "a transaction that comes too late tells the name",
		old: `"the lock of key " + l.key.Digest() + " has ended already`,
		new: `"the lock of key " + l.key.Name + " has ended already`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/limit.go", breaks: "F29", bug: "an event with a limit makes an error tell the name",
		old: `middleware.OnHeld(middleware.Wait(wait))))", a.key.Digest(),`,
		new: `middleware.OnHeld(middleware.Wait(wait))))", a.key.Name,`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/acquisition.go", breaks: "F29", bug: "a row of a newer version makes an error tell the name",
		old: `"the row of key " + a.key.Digest() + " was`,
		new: `"the row of key " + a.key.Name + " was`,
		by:  "TestHostileKeys",
	},
	{
		file: "lock/observation.go", breaks: "F29", bug: "log lines tell the name unasked",
		old: `slog.String("key", o.Key.Digest())`,
		new: `slog.String("key", printable.Text(o.Key.Name))`,
		by:  "TestHostileKeys", in: "middleware",
	},
}

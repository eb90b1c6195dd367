package main

// telemetry has the bugs in what is said about locks in metrics and traces.
var telemetry = []mutant{
	{
		file: "telemetry/emf/line.go", breaks: "observation", bug: "completions count as releases too",
		old: `t.Outcomes[lock.OutcomeReleased] - t.Completed`,
		new: `t.Outcomes[lock.OutcomeReleased]`,
		by:  "TestCountersAreExact",
	},
	{
		file: "telemetry/emf/line.go", breaks: "observation", bug: "the longest time is left out of many",
		old: `sorted[i*(len(sorted)-1)/(n-1)]`,
		new: `sorted[i*(len(sorted)-1)/n]`,
		by:  "TestLargeBatch",
	},
	{
		file: "telemetry/emf/line.go", breaks: "observation", bug: "a metric has more values than CloudWatch takes",
		old: `n := min(len(sorted), mostValues)`,
		new: `n := len(sorted)`,
		by:  "TestLargeBatch",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "a namespace that CloudWatch refuses as a dimension loses all metrics",
		old: `if r < ' ' || r > '~' {`,
		new: `if r < ' ' {`,
		by:  "TestProperties",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "what is contended is written although it should be hidden",
		old: `if !w.HideContended {`,
		new: `if true {`,
		by:  "TestProperties",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "an invocation without a lock writes a line",
		old: `	if len(l.metrics) == 0 {
		return
	}
`,
		new: `	l.define("Nothing", "Count")
	l.values = append(l.values, '0')
`,
		by: "TestNothingToSay",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "a duplicate in progress counts as contention",
		old: `errors.As(err, &held) && held.Duplicate`,
		new: `errors.As(err, &held) && held.Duplicate && false`,
		by:  "TestMetricsOfABatch", in: "middleware",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "a log level of WARN hides all metrics",
		old: `case "WARN", "ERROR", "FATAL":`,
		new: `case "ERROR", "FATAL":`,
		by:  "TestLoggingChangesNothing",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "the level of a line does not count, because it has no time",
		old: `		l.property("timestamp", l.at.UTC().Format(time.RFC3339Nano)) // without it, the level does not count
`,
		new: ``,
		by:  "TestLoggingChangesNothing",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "the end of a lock is no operation, so that it has no span",
		old: `	o.Op = s.op()
`,
		new: ``,
		by:  "TestObservationsNameTheOperation",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "a duplicate is a failure",
		old: `o.Outcome.level() >= slog.LevelWarn`,
		new: `o.Outcome.level() >= slog.LevelInfo`,
		by:  "TestFailures",
	},
	{
		file: "middleware/options.go", breaks: "observation", bug: "a second Holder makes the first one forgotten",
		old: `return f(ctx, before(ctx))`,
		new: `return f(ctx, before(ctx)[:0])`,
		by:  "TestHolder|TestHolderOutsideLambda",
	},
}

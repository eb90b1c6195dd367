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
		file: "internal/defaultlog/defaultlog.go", breaks: "observation", bug: "a log level of WARN hides all metrics",
		old: `> slog.LevelInfo }`,
		new: `> slog.LevelWarn }`,
		by:  "TestLoggingChangesNothing", in: "telemetry/emf",
	},
	{
		file: "telemetry/emf/emf.go", breaks: "observation", bug: "the level of a line does not count, because it has no time",
		old: `		l.property("timestamp", l.at.UTC().Format(time.RFC3339Nano)) // without it, the level does not count
`,
		new: ``,
		by:  "TestLoggingChangesNothing",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "the end of a lock names no operation, so that it has no span",
		old: `	o.Op = s.op()
`,
		new: ``,
		by:  "TestObservationsNameTheOperation",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "a duplicate is a failure",
		old: `o.level() >= slog.LevelWarn`,
		new: `o.level() >= slog.LevelInfo`,
		by:  "TestFailures",
	},
	{
		file: "middleware/options.go", breaks: "observation", bug: "a second Holder makes the first one forgotten",
		old: `return f(ctx, before(ctx))`,
		new: `return f(ctx, before(ctx)[:0])`,
		by:  "TestHolder|TestHolderOutsideLambda",
	},
	{
		file: "middleware/task.go", breaks: "observation", bug: "records that were not begun count as one",
		old: `Records: notBegun, Err: err`,
		new: `Records: 1, Err: err`,
		by:  "TestMetricsOfABatch",
	},
	{
		file: "lock/heartbeat.go", breaks: "observation", bug: "a renewal that asks again counts as one request",
		old: `			r.sent++
`,
		new: ``,
		by:  "TestEveryRequestIsObserved",
	},
	{
		file: "lock/observation.go", breaks: "observation", bug: "the requests of a claim that was repeated count as one",
		old: `Waited: a.waited, Requests: a.requests.sent,`,
		new: `Waited: a.waited, Requests: min(a.requests.sent, 1),`,
		by:  "TestEveryRequestIsObserved",
	},
	{
		file: "telemetry/otellock/metrics.go", breaks: "observation", bug: "OpenTelemetry counts records that were not begun as one",
		old: `int64(max(o.Records, 1))`,
		new: `1`,
		by:  "TestCountersAreExact",
	},
	{
		file: "telemetry/otellock/metrics.go", breaks: "observation", bug: "OpenTelemetry measures no refused claims",
		old: `if o.Op == "acquire" {`,
		new: `if o.Op == "acquire" && o.Err == nil {`,
		by:  "TestMetrics",
	},
	{
		file: "telemetry/otellock/metrics.go", breaks: "observation", bug: "OpenTelemetry measures no waits",
		old: `if o.Waited > 0 {`,
		new: `if o.Waited < 0 {`,
		by:  "TestDurations",
	},
	{
		file: "telemetry/otellock/metrics.go", breaks: "observation", bug: "OpenTelemetry does not measure the locks of events that could not be completed",
		old: `case lock.OutcomeReleased, lock.OutcomeCompleteFailed:`,
		new: `case lock.OutcomeReleased:`,
		by:  "TestCountersAreExact",
	},
	{
		file: "telemetry/otellock/metrics.go", breaks: "observation", bug: "every hold of more than 10 s looks the same",
		old: `, metric.WithExplicitBucketBoundaries(bounds...)`,
		new: ``,
		by:  "TestDurations",
	},
	{
		file: "telemetry/otellock/attributes.go", breaks: "observation", bug: "OpenTelemetry counts completions as releases",
		old: `case o.Completed:`,
		new: `case o.Completed && o.Duplicate:`,
		by:  "TestMetrics",
	},
	{
		file: "telemetry/otellock/attributes.go", breaks: "observation", bug: "OpenTelemetry counts a duplicate in progress as contention",
		old: `case o.Duplicate:`,
		new: `case o.Completed && o.Duplicate:`,
		by:  "TestLink",
	},
	{
		file: "telemetry/otellock/attributes.go", breaks: "observation", bug: "a duplicate has an error.type",
		old: `if o.Failed() {`,
		new: `if o.Err != nil {`,
		by:  "TestMetrics",
	},
	{
		file: "telemetry/otellock/attributes.go", breaks: "observation", bug: "a holder that is not UTF-8 makes exporters refuse the batch",
		old: `append(to, key.String(valid(value)))`,
		new: `append(to, key.String(value))`,
		by:  "TestNoLink",
	},
	{
		file: "telemetry/otellock/spans.go", breaks: "observation", bug: "the span of a duplicate does not lead to the run that does the work",
		old: `if holder := runOf(o.Holder); holder.IsValid() {`,
		new: `if holder := runOf(o.Holder); !holder.IsValid() {`,
		by:  "TestLink",
	},
	{
		file: "telemetry/otellock/spans.go", breaks: "observation", bug: "a link leads to a trace that was not sampled",
		old: ` || !run.IsSampled()`,
		new: ``,
		by:  "TestNoLink",
	},
	{
		file: "telemetry/otellock/spans.go", breaks: "observation", bug: "a span ends when it is reported",
		old: `span.End(trace.WithTimestamp(o.Began.Add(o.Duration)))`,
		new: `span.End()`,
		by:  "TestSpans",
	},
	{
		file: "telemetry/otellock/spans.go", breaks: "observation", bug: "the span of a duplicate is an error",
		old: `if o.Failed() {`,
		new: `if o.Err != nil {`,
		by:  "TestLink",
	},
	{
		file: "telemetry/otellock/otellock.go", breaks: "observation", bug: "holders do not say in which trace they work",
		old: `middleware.Holder(describe), `,
		new: ``,
		by:  "TestLink",
	},
}

// miscounts returns a bug for each metric of telemetry/emf, which then counts
// nothing.
func miscounts() (all []mutant) {
	for _, c := range [][2]string{
		{"Completed", `func(t *middleware.Totals) int { return t.Completed }`},
		{"Released", `func(t *middleware.Totals) int { return t.Outcomes[lock.OutcomeReleased] - t.Completed }`},
		{"Duplicates", `outcome(lock.OutcomeAlreadyCompleted)`},
		{"InProgress", `func(t *middleware.Totals) int { return t.InProgress }`},
		{"Contended", `func(t *middleware.Totals) int { return t.Outcomes[lock.OutcomeHeld] - t.InProgress }`},
		{"Coalesced", `outcome(lock.OutcomeCoalesced)`},
		{"Owed", `outcome(lock.OutcomeOwed)`},
		{"Stale", `outcome(lock.OutcomeStale)`},
		{"Mismatched", `outcome(lock.OutcomeMismatch)`},
		{"Refused", `outcome(lock.OutcomeRefused)`},
		{"TakenOver", `outcome(lock.OutcomeTakenOver)`},
		{"Lost", `outcome(lock.OutcomeLost)`},
		{"CompleteFailed", `outcome(lock.OutcomeCompleteFailed)`},
		{"Forgotten", `outcome(lock.OutcomeForgotten)`},
		{"Unlocked", `outcome(middleware.OutcomeUnlocked)`},
		{"StoreFailed", `outcome(lock.OutcomeStoreFailed)`},
		{"HandlerFailed", `outcome(middleware.OutcomeHandlerFailed)`},
		{"NotBegun", `outcome(middleware.OutcomeNotBegun)`},
		{"Overdue", `outcome(middleware.OutcomeOverdue)`},
		{"StoreRequests", `func(t *middleware.Totals) int { return t.Requests }`},
	} {
		all = append(all, mutant{
			file: "telemetry/emf/line.go", breaks: "observation", bug: c[0] + " is never written",
			old: `{"` + c[0] + `", ` + c[1] + `}`,
			new: `{"` + c[0] + `", outcome("")}`,
			by:  "TestEveryMetric",
		})
	}
	for _, c := range [][2]string{{"AcquireTime", "t.Acquires"}, {"Waited", "t.Waits"}, {"HoldTime", "t.Holds"}} {
		all = append(all, mutant{
			file: "telemetry/emf/line.go", breaks: "observation", bug: c[0] + " is never written",
			old: `l.times("` + c[0] + `", ` + c[1] + `)`,
			new: `l.times("` + c[0] + `", nil)`,
			by:  "TestEveryMetric",
		})
	}
	return all
}

package main

// operator has the bugs in what the command does for operators.
var operator = []mutant{
	{
		file: "cmd/lambdalock/internal/operate/release.go", breaks: "P5", bug: "release keeps a row for a day, although it remembers an event for longer",
		old: `if c.Until.After(keep) {`,
		new: `if false {`,
		by:  "TestRelease",
	},
	{
		file: "cmd/lambdalock/internal/operate/release.go", breaks: "P1", bug: "release takes the lock from a holder that nobody was asked about",
		old: `Token: row.Token, DeleteAfter`,
		new: `Token: func() string { now, _ := inspector.Read(ctx, row.Name); return now.Token }(), DeleteAfter`,
		by:  "TestRelease",
	},
	{
		file: "cmd/lambdalock/internal/operate/forget.go", breaks: "P5", bug: "forget writes an empty memory if the answer to its claim was lost",
		old: `if ok || row.Token == c.Token {`,
		new: `if ok {`,
		by:  "TestForgetAfterALostAnswer",
	},
	{
		file: "cmd/lambdalock/internal/operate/forget.go", breaks: "P5", bug: "forget forgets an event that was completed again since it asked",
		old: `before < 0 || !shown.Memory.Completed[before].Until.Equal(entry.Until)`,
		new: `before < 0`,
		by:  "TestForget",
	},
	{
		file: "cmd/lambdalock/internal/inspect/find.go", breaks: "F35", bug: "show misses the last slot of a limited lock",
		old: `slots := make([]driver.NamedRow, lock.MaxLimit-1)`,
		new: `slots := make([]driver.NamedRow, lock.MaxLimit-2)`,
		by:  "TestLastSlot",
	},
	{
		file: "cmd/lambdalock/internal/inspect/readable.go", breaks: "F65", bug: "a row that cannot be read hides all others",
		old: `case err != nil && row.Name != "":`,
		new: `case err != nil && row.Name == "\x00":`,
		by:  "TestReadable",
	},
	{
		file: "cmd/lambdalock/internal/explain/verdict.go", breaks: "P5", bug: "explain says that a completed event would run, by the wrong namespace",
		old: `v.Would, v.Why = Unknown, `,
		new: `v.Would, v.Why = Run, `,
		by:  "TestVerdicts",
	},
	{
		file: "cmd/lambdalock/internal/operate/createtable.go", breaks: "P1", bug: "create-table ignores the Region of the store's URL",
		old: `if c.Store != "" {`,
		new: `if c.Store == "-" {`,
		by:  "TestCreateTable", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/operate/createtable.go", breaks: "P7", bug: "the help shows a flag that there is not",
		old: `create-table --store`,
		new: `create-table --url`,
		by:  "TestExamplesOfHelp", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/inspect/names.go", breaks: "P1", bug: "exec is silent about the lock that list prints by the name of its key",
		old: `row, err := store.Read(ctx, name)`,
		new: `row, err := store.Read(ctx, "//"+name)`,
		by:  "TestNamesake",
		in:  "cmd/lambdalock/internal/shell",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor sees only what invokes a function without its alias",
		old: `	if f.qualified {
		r.readRouting`,
		new: `	if true {
		r.readRouting`,
		by: "TestReadAliases",
	},
	{
		file: "cmd/lambdalock/internal/deployed/mappings.go", breaks: "P6", bug: "doctor judges the sources of an alias with the function's timeout",
		old: `m.FunctionArn == nil || latest(m.FunctionArn) == f.arn {`,
		new: `m.UUID != nil {`,
		by:  "TestReadAliases",
	},
	{
		file: "cmd/lambdalock/internal/deployed/queues.go", breaks: "P6", bug: "doctor takes each queue for one with a dead-letter queue",
		old: `redrive != "",`,
		new: `true,`,
		by:  "TestRead",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor says nothing of what it may not read",
		old: `	f.Unread = append(f.Unread, failed(what, action, err))`,
		new: `	_ = failed(what, action, err)`,
		by:  "TestReadIsDenied",
	},
	{
		file: "cmd/lambdalock/internal/deployed/mappings.go", breaks: "P6", bug: "doctor takes hours of retention for seconds",
		old: `float64(*d.RetentionPeriodHours) * 60 * 60`,
		new: `float64(*d.RetentionPeriodHours)`,
		by:  "TestRead",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P6", bug: "redrive deletes a message that it could not send",
		old: `			d.Error = fmt.Sprintf("not sent: %v", err)`,
		new: `			taken = append(taken, d)`,
		by:  "TestGivesUp",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P6", bug: "redrive sends what comes after a message of its group that stays",
		old: `if d.Action == Send && (r.stays[m.Group] || r.failed[m.Group]) {`,
		new: `if d.Action == Send && r.failed[m.Group] {`,
		by:  "TestGroupsStayInOrder",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P6", bug: "redrive sends what comes after a message of its group that was not sent",
		old: `case d.Action == Send && r.failed[d.Group]:`,
		new: `case false:`,
		by:  "TestGroupsStayInOrder",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P5", bug: "redrive sends an event that was completed while it asked",
		old: `if err == nil && now.Action != d.Action {`,
		new: `if false {`,
		by:  "TestAnswerComesLate",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P6", bug: "redrive acts on messages that others may have received meanwhile",
		old: `case r.queue.Late(d.message):`,
		new: `case false:`,
		by:  "TestAnswerComesLate",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/queue.go", breaks: "P6", bug: "redrive spends the receives of a queue that is not a dead-letter queue",
		old: `policy != ""`,
		new: `policy == "-"`,
		by:  "TestOpenRefuses",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/queue.go", breaks: "P6", bug: "redrive empties the queue of another Region",
		old: `queueARN.MatchString(name) && name != arn`,
		new: `false && name != arn`,
		by:  "TestOpenRefuses",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/messages.go", breaks: "P6", bug: "a message that was sent less than five minutes ago is lost",
		old: `aws.String(deduplication(m.ID))`,
		new: `aws.String(m.sqs.Attributes["MessageDeduplicationId"])`,
		by:  "TestMessageIsSentUnchanged",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/judge.go", breaks: "P5", bug: "redrive deletes messages whose event is held",
		old: `	case key.Verdict.Completed:`,
		new: `	case key.Verdict.Completed || key.Verdict.Would == explain.Refuse:`,
		by:  "TestDecide",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/judge.go", breaks: "P5", bug: "redrive with a wrong --event sends a message that was completed by its id",
		old: `err != nil || byID {`,
		new: `err != nil || byID && false {`,
		by:  "TestDecide",
	},
	{
		file: "cmd/lambdalock/internal/operate/release.go", breaks: "P2", bug: "release takes the lock of another namespace",
		old: `!strings.HasPrefix(row.Name, prefix(namespace))`,
		new: `!strings.HasPrefix(row.Name, "")`,
		by:  "TestChangesStayInTheNamespace",
	},
	{
		file: "cmd/lambdalock/internal/operate/redrive.go", breaks: "P6", bug: "redrive deletes every message once the event of a fixed --event is completed",
		old: `case c.Event != "" && !strings.Contains(c.Event, "{{"):`,
		new: `case false:`,
		by:  "TestRedriveRefusesFlags",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor does not see that an alias was stopped with its function",
		old: `	name := f.unqualified()
	out, err := r.Lambda.GetFunctionConcurrency`,
		new: `	name := f.address
	out, err := r.Lambda.GetFunctionConcurrency`,
		by: "TestReadConcurrency",
	},
	{
		file: "cmd/lambdalock/internal/doctor/store.go", breaks: "P6", bug: "doctor takes a throttled store for one without permissions",
		old: `e.Answered && !e.Lasting`,
		new: `!e.Answered && !e.Lasting`,
		by:  "TestStore",
	},
	{
		file: "cmd/lambdalock/internal/doctor/store.go", breaks: "F40", bug: "doctor says that locks can be acquired where it may only read",
		old: `store.(*dynamostore.Store); !ok {`,
		new: `store.(*dynamostore.Store); ok {`,
		by:  "TestStore",
	},
	{
		file: "cmd/lambdalock/internal/doctor/table.go", breaks: "P5", bug: "doctor is content with TTL on any attribute",
		old: `aws.ToString(d.AttributeName) != ttl:`,
		new: `aws.ToString(d.AttributeName) == "":`,
		by:  "TestTable",
	},
	{
		file: "cmd/lambdalock/internal/doctor/table.go", breaks: "P1", bug: "doctor is content with a table that is replicated asynchronously",
		old: `	if len(t.Replicas) == 0 {`,
		new: `	if len(t.Replicas) >= 0 {`,
		by:  "TestTable",
	},
	{
		file: "cmd/lambdalock/internal/doctor/table.go", breaks: "P2", bug: "doctor does not notice a clock that is behind",
		old: `ahead > most+slow, ahead < -lock.DefaultGrace:`,
		new: `ahead > most+slow:`,
		by:  "TestClock",
	},
	{
		file: "cmd/lambdalock/internal/doctor/redis.go", breaks: "P1", bug: "doctor is content with a server that evicts locks",
		old: `policy == "noeviction" || info["maxmemory"] == "0"`,
		new: `policy != ""`,
		by:  "TestRedis",
	},
	{
		file: "cmd/lambdalock/internal/doctor/function.go", breaks: "P6", bug: "doctor does not judge the sources of a function",
		old: `	for i := range f.Mappings {`,
		new: `	for i := range f.Mappings[:0] {`,
		by:  "TestFunction",
	},
	{
		file: "cmd/lambdalock/internal/operate/doctor.go", breaks: "P6", bug: "the status of doctor is 0 although it found an error",
		old: `if l.Level == doctor.Error && !slices`,
		new: `if l.Level == "" && !slices`,
		by:  "TestFunctionFlag", in: "cmd/lambdalock",
	},
}

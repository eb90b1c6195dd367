package main

// command has the bugs in the command, the local Lambda and what is tested
// with it.
var command = []mutant{
	{
		file: "cmd/lambdalock/internal/shell/exec.go", breaks: "F23", bug: "exec --wait repeats permanent errors",
		old: `!errors.As(err, &failed) || !failed.Temporary || left <= 0`,
		new: `!errors.As(err, &failed) || left <= 0`,
		by:  "TestExecDoesNotRepeatMistakes",
	},
	{
		file: "cmd/lambdalock/internal/shell/exec.go", breaks: "F64", bug: "a shell's loop goes on after Ctrl-C",
		old: `if err == console.ExitStatus(statusInterrupted) && inForeground() {`,
		new: `if false {`,
		by:  "TestCtrlCEndsALoop",
	},
	{
		file: "cmd/lambdalock/internal/shell/execend.go", breaks: "P5", bug: "exec records an event whose command failed",
		old: `if r.Event != nil && status == 0 {`,
		new: `if r.Event != nil {`,
		by:  "TestExecEvent",
	},
	{
		file: "cmd/lambdalock/internal/shell/execend.go", breaks: "F6", bug: "exec has no status of its own for a record without an answer",
		old: `return console.ExitStatus(r.UnsureExitCode)`,
		new: `return 0`,
		by:  "TestExecUnconfirmed|TestExecLostBeforeRelease",
	},
	{
		file: "cmd/lambdalock/internal/shell/process_unix.go", breaks: "F64", bug: "a lost lease ends the command, but not what it started in a terminal",
		old: `	for _, p := range c.others() {
		if`,
		new: `	for _, p := range []running(nil) {
		if`,
		by: "TestNothingGoesOnInTerminal",
	},
	{
		file: "cmd/lambdalock/internal/shell/process_unix.go", breaks: "F64", bug: "a command from the background cannot read in the foreground",
		old: `Setpgid: !hasTerminal()}`,
		new: `Setpgid: !inForeground()}`,
		by:  "TestJobControl",
	},
	{
		file: "cmd/lambdalock/internal/shell/tree.go", breaks: "F64", bug: "orphans of the command go on beside the next holder",
		old: `c.orphans != nil && p.parent == os.Getpid() && p.pid != c.guard.pid()`,
		new: `c.orphans != nil && p.parent == os.Getpid() && false`,
		by:  "TestNothingGoesOnInTerminal",
	},
	{
		file: "cmd/lambdalock/internal/shell/guard.go", breaks: "F64", bug: "kill -9 of exec leaves what the command started in a terminal",
		old: `[ "$mark" ] || exit`,
		new: `exit`,
		by:  "TestNothingGoesOnInTerminal",
	},
	{
		file: "cmd/lambdalock/internal/shell/child.go", breaks: "F64", bug: "the lock is released before what Ctrl-C ends has ended",
		old: `w.ending && status != 0 || status == statusInterrupted && inForeground()`,
		new: `status < 0`,
		by:  "TestNothingGoesOnInTerminal|TestExecSignalsGroup",
	},
	{
		file: "cmd/lambdalock/internal/shell/tree_linux.go", breaks: "F64", bug: "orphans of the command stay as zombies",
		old: `		case c.orphans.seen[p.pid]:
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
`,
		new: ``,
		by:  "TestExecReaps",
	},
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
		file: "cmd/lambdalock/internal/storeurl/azure.go", breaks: "P1", bug: "the locks of an Azure account are kept in another one",
		old: `			endpoint = value
`,
		new: `			_, endpoint = endpoint, ""
`,
		by: "TestAzureCredentials",
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
		file: "cmd/lambdalock/internal/invoke/deliver.go", breaks: "P5", bug: "invoke counts a record that was returned as completed",
		old: `	return without(without(v.records, v.failed), v.ignored)
}

// again`,
		new: `	return v.records
}

// again`,
		by: "TestRecordsThatFailed",
	},
	{
		file: "internal/local/locallambda/environment.go", breaks: "P7", bug: "an INIT of more than 10 s ends invoke",
		old: `	case proc.isLate():
`,
		new: `	case proc.isLate() && proc.killed && !proc.killed:
`,
		by: "TestLateInitIsRepeated",
	},
	{
		file: "internal/local/locallambda/invoke.go", breaks: "F12", bug: "a repeated INIT takes no time from the first invocation",
		old: `left := p.cfg.Timeout - proc.spent`,
		new: `left := p.cfg.Timeout`,
		by:  "TestLateInitIsRepeated",
	},
	{
		file: "cmd/lambdalock/internal/invoke/report.go", breaks: "P6", bug: "invoke says that nothing ran of a delivery that failed in part",
		old: `word == ran && r.counts[partly] == 0)`,
		new: `word == ran)`,
		by:  "TestSources", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/invoke/report.go", breaks: "P6", bug: "invoke says what ran although another store knows it",
		old: `r.own && !r.claimed`,
		new: `r.own && r.claimed`,
		by:  "TestAnotherStore", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/invoke/outcome.go", breaks: "P5", bug: "invoke counts an event that was ignored as completed",
		old: `case ran, skipped, succeeded:
`,
		new: `case ran, skipped, succeeded, ignored:
`,
		by: "TestNotHandled", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/invoke/outcome.go", breaks: "P5", bug: "invoke calls a request with another payload a duplicate",
		old: `case log.any(lock.OutcomeMismatch):`,
		new: `case log.any(lock.OutcomeMismatch) && log.any(lock.OutcomeAcquired):`,
		by:  "TestNotHandled", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/invoke/messages.go", breaks: "P6", bug: "invoke says that messages ran that a quiet function skipped",
		old: `claims.Refused > refused`,
		new: `claims.Refused > refused+f.delivered`,
		by:  "TestFates",
	},
	{
		file: "cmd/lambdalock/internal/invoke/messages.go", breaks: "P6", bug: "invoke counts the lines of a log that was cut off",
		old: `f.unclear = cut ||`,
		new: `f.unclear = cut && f.delivered < 0 ||`,
		by:  "TestFates",
	},
	{
		file: "cmd/lambdalock/internal/invoke/logged.go", breaks: "P6", bug: "invoke takes the error in a line of the log for an outcome",
		old: `strings.HasPrefix(m[1], "err") ||`,
		new: ``,
		by:  "TestLogLines",
	},
	{
		file: "cmd/lambdalock/internal/invoke/logged.go", breaks: "P6", bug: "invoke says that a message failed whose handler found a lock of its own held",
		old: `o == middleware.OutcomeHandlerFailed && innerHeld`,
		new: `o == middleware.OutcomeOverdue && innerHeld`,
		by:  "TestInnerLocks", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/inspect/names.go", breaks: "P1", bug: "exec is silent about the lock that list prints by the name of its key",
		old: `row, err := store.Read(ctx, name)`,
		new: `row, err := store.Read(ctx, "//"+name)`,
		by:  "TestNamesake",
		in:  "cmd/lambdalock/internal/shell",
	},
	{
		file: "cmd/lambdalock/shell/bash", breaks: "P7", bug: "bash completes the flags of exec for the command that it runs",
		old: `COMP_WORDS[i]} == --`,
		new: `COMP_WORDS[i]} == ---`,
		by:  "TestBashCompletion", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/shell.go", breaks: "P7", bug: "an apostrophe in a help text ends the completion of fish",
		old: "`'`, `\\'`",
		new: "`'`, `'`",
		by:  "TestShellTexts",
	},
	{
		file: "cmd/lambdalock/shell/man", breaks: "P7", bug: "the manual page has no arguments",
		old: `{{- range .Positional}}`,
		new: `{{- range slice .Positional 0 0}}`,
		by:  "TestShellTexts", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/console/run.go", breaks: "P7", bug: "an error begins with the program's name twice",
		old: `app.FatalIfErrorf(spoken{err})`,
		new: `app.FatalIfErrorf(err)`,
		by:  "TestDemoRefusesWhatItCannotDo", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/console/say.go", breaks: "P7", bug: "an error names the program again in its middle",
		old: `strings.ReplaceAll(err.Error(), ": lambdalock: ", ": ")`,
		new: `err.Error()`,
		by:  "TestInvokeWithoutCredentials", in: "cmd/lambdalock",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor takes a destination of successes for one of failures",
		old: `d != nil && d.OnFailure != nil && aws.ToString(d.OnFailure.Destination) != ""`,
		new: `d != nil`,
		by:  "TestRead",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor sees only what invokes a function without its alias",
		old: `	if !f.qualified {`,
		new: `	if f.qualified {`,
		by:  "TestReadAliases",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor judges the sources of an alias with the function's timeout",
		old: `m.FunctionArn == nil || latest(m.FunctionArn) == f.arn {`,
		new: `m.UUID != nil {`,
		by:  "TestReadAliases",
	},
	{
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor takes each queue for one with a dead-letter queue",
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
		file: "cmd/lambdalock/internal/deployed/invokers.go", breaks: "P6", bug: "doctor takes hours of retention for seconds",
		old: `float64(*d.RetentionPeriodHours) * 60 * 60`,
		new: `float64(*d.RetentionPeriodHours)`,
		by:  "TestRead",
	},
	{
		file: "cmd/lambdalock/internal/deadletter/run.go", breaks: "P6", bug: "redrive deletes a message that it could not send",
		old: `			return fmt.Errorf("not sent: %w", err)`,
		new: `			_ = fmt.Errorf("not sent: %w", err)`,
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
		file: "cmd/lambdalock/internal/deadletter/queue.go", breaks: "P6", bug: "a message that was sent less than five minutes ago is lost",
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
		old: `	name := f.unqualified()`,
		new: `	name := f.address`,
		by:  "TestReadConcurrency",
	},
	{
		file: "cmd/lambdalock/internal/doctor/store.go", breaks: "P6", bug: "doctor takes a throttled store for one without permissions",
		old: `e.Temporary && e.Answered`,
		new: `e.Temporary && !e.Answered`,
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
	{
		file: "cmd/lambdalock/internal/storeurl/aws.go", breaks: "F11", bug: "a function's variable sends the operator's requests elsewhere",
		old: `	if !tableName.MatchString(table) {
		return "", wrong("%q is not`,
		new: `	if false {
		return "", wrong("%q is not`,
		by: "TestOfTable",
	},
	{
		file: "cmd/lambdalock/internal/console/store.go", breaks: "P2", bug: "exec --function locks in another namespace than the function",
		old: `cmp.Or(function.Namespace, f.Namespace, function.DefaultNamespace())`,
		new: `cmp.Or(f.Namespace, function.Namespace)`,
		by:  "TestFunctionFlag", in: "cmd/lambdalock",
	},
}

package main

// command has the bugs in exec, the local Lambda and what is tested with it.
var command = []mutant{
	{
		file: "cmd/lambdalock/internal/shell/acquire.go", breaks: "F23", bug: "exec --wait repeats permanent errors",
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
		file: "cmd/lambdalock/internal/storeurl/azure.go", breaks: "P1", bug: "the locks of an Azure account are kept in another one",
		old: `			endpoint = value
`,
		new: `			_, endpoint = endpoint, ""
`,
		by: "TestAzureCredentials",
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

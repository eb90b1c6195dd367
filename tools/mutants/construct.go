package main

// construct has the bugs in the CDK construct.
var construct = []mutant{
	{
		file: "infra/lock_table.go", breaks: "P5", bug: "the table never deletes rows",
		old: `jsii.String("deleteAfter")`,
		new: `jsii.String("expiresAt")`,
		by:  "TestTableFitsTheStore",
	},
	{
		file: "infra/lock_table.go", breaks: "P5", bug: "no warning of a table that is deleted with its stack",
		old: `!= awscdk.CfnDeletionPolicy_DELETE {`,
		new: `== awscdk.CfnDeletionPolicy_DELETE {`,
		by:  "TestRemovalPolicy",
	},
	{
		file: "infra/alarms.go", breaks: "P6", bug: "nobody is told that an alarm begins",
		old: `		made.AddAlarmAction(t.alarms.Actions...)`,
		new: ``,
		by:  "TestAlarmsNotify",
	},
	{
		file: "infra/alarms.go", breaks: "P6", bug: "nobody is told that an alarm ends",
		old: `		made.AddOkAction(t.alarms.OKActions...)`,
		new: ``,
		by:  "TestAlarmsNotify",
	},
	{
		file: "infra/alarms.go", breaks: "P6", bug: "the topic is not told that an alarm ends",
		old: `slices.Concat(notify, p.OKActions)`,
		new: `p.OKActions`,
		by:  "TestAlarmsNotify",
	},
	{
		file: "infra/alarms.go", breaks: "P6", bug: "no alarms of functions that are connected before",
		old: `	for _, c := range t.connections {
		t.addServiceAlarms(c)
	}
`,
		new: ``,
		by:  "TestAlarmsNotify",
	},
	{
		file: "infra/alarms.go", breaks: "P6", bug: "no warning of alarms that nobody hears",
		old: `resolve(a.Stack(), r.AlarmActions()) != nil`,
		new: `resolve(a.Stack(), r.AlarmActions()) == nil`,
		by:  "TestAlarmsNobodyHears",
	},
	{
		file: "infra/metrics.go", breaks: "P6", bug: "no alarm for throttled transactions",
		old: `"Updates, 0) + FILL(" + id + "Transactions, 0)"`,
		new: `"Updates, 0)"`,
		by:  "TestAlarmTemplates",
	},
	{
		file: "infra/counts.go", breaks: "P6", bug: "the alarms are of all tables",
		old: `jsii.String("lambdalock/" + *t.table.TableName())`,
		new: `jsii.String("lambdalock/logs")`,
		by:  "TestLinesOfEachTable",
	},
	{
		file: "infra/counts.go", breaks: "P6", bug: "an alarm watches a metric that telemetry/emf does not write",
		old: `r < ' ' || r > '~'`,
		new: `r < ' '`,
		by:  "TestNamespaceAsDimension",
	},
	{
		file: "middleware/observe.go", breaks: "P6", bug: "the alarm Unlocked counts no line",
		old: `lock.Outcome = "unlocked"`,
		new: `lock.Outcome = "not_locked"`,
		by:  "TestAlarmsAreDrivenByTheirFaults",
		in:  "telemetry/emf",
	},
	{
		file: "telemetry/emf/line.go", breaks: "P6", bug: "the alarm TakenOver watches a metric that is not written",
		old: `{"TakenOver", outcome`,
		new: `{"Takenover", outcome`,
		by:  "TestAlarmsAreDrivenByTheirFaults",
	},
	{
		file: "infra/rules/function.go", breaks: "P6", bug: "no warning of a log level that drops lost leases",
		old: `f.LogLevel == "FATAL"`,
		new: `f.LogLevel == "NONE"`,
		by:  "TestFunction",
	},
	{
		file: "infra/rules/function.go", breaks: "P6", bug: "no warning of a log level that drops takeovers",
		old: `f.LogLevel == "ERROR" && f.LinesAreCounted`,
		new: `f.LogLevel == "NONE"`,
		by:  "TestFunction",
	},
	{
		file: "infra/connect.go", breaks: "P6", bug: "no warning of a function that alarms do not see",
		old: `		t.countLines(c.child, group)
		c.isCounted = true
	}
`,
		new: `		t.countLines(c.child, group)
	}
	c.isCounted = true
`,
		by: "TestNotCounted",
	},
	{
		file: "infra/connect.go", breaks: "P1", bug: "functions of two nested stacks share a namespace",
		old: `name = logicalID(stack.NestedStackResource()) + "-" + name`,
		new: `_ = name`,
		by:  "TestNamespaceOfAFunctionWithoutName",
	},
	{
		file: "infra/connect.go", breaks: "P6", bug: "no warning of an imported function without its role",
		old: `		c.lacksPermission = true
`,
		new: ``,
		by:  "TestImportedFunctions",
	},
	{
		file: "infra/connect.go", breaks: "F40", bug: "no warning of a role that drops the permission",
		old: `!*grant.Success() || !hasPolicy(c.fn.Role())`,
		new: `!*grant.Success()`,
		by:  "TestRoleThatTakesNoPermission",
	},
	{
		file: "infra/grant.go", breaks: "F40", bug: "a connected function may read the locks of others",
		old: `t.grantTable(grantee, only, lockActions)`,
		new: `t.grantTable(grantee, only, append(inspectActions, lockActions...))`,
		by:  "TestConnectedFunctionHasOneAction|TestGrants",
	},
	{
		file: "infra/grant.go", breaks: "F40", bug: "the permission is for every namespace that begins with the function's",
		old: `url.PathEscape(*namespace) + "/*"`,
		new: `url.PathEscape(*namespace) + "*"`,
		by:  "TestPermissionIsLimitedToTheNamespace",
	},
	{
		file: "infra/grant.go", breaks: "F40", bug: "a namespace with a wildcard is a permission for other namespaces",
		old: `url.PathEscape(*namespace) + "/*"`,
		new: `*namespace + "/*"`,
		by:  "TestPermissionIsLimitedToTheNamespace",
	},
	{
		file: "infra/grant.go", breaks: "F40", bug: "a function may not use the key of its table",
		old: `	grant := t.grantTable(grantee, only, lockActions)
	t.grantKey(grantee, writeKeyActions)
`,
		new: `	grant := t.grantTable(grantee, only, lockActions)
`,
		by: "TestGrantsOfTheKey",
	},
	{
		file: "infra/variables.go", breaks: "F40", bug: "the function uses another namespace than the permission's",
		old: `v.namespace != "" && v.namespace != v.wantNamespace`,
		new: `v.namespace == "" && v.wantNamespace == ""`,
		by:  "TestVariablesThatAreSetAlready|TestVariablesThatAreSetLater",
	},
	{
		file: "infra/grant.go", breaks: "F40", bug: "a grant of a namespace that is a token is one of all",
		old: `namespace != nil && only == nil`,
		new: `namespace == nil && only != nil`,
		by:  "TestGrantLockOfAToken",
	},
	{
		file: "infra/reach.go", breaks: "F10", bug: "a function in another Region looks for a table that is not there",
		old: `*p.function != *p.table &&`,
		new: `p.name != "Region" && *p.function != *p.table &&`,
		by:  "TestTableOutOfReach",
	},
	{
		file: "infra/rules/table.go", breaks: "P1", bug: "two Regions hold the same lock",
		old: `if !r.Strong {`,
		new: `if false {`,
		by:  "TestReplica",
	},
	{
		file: "infra/replica.go", breaks: "P6", bug: "no warning of a global table, which deletes no rows",
		old: `		c.warn(idPrefix+found.ID,`,
		new: `		if !found.Fatal {
			return
		}
		c.warn(idPrefix+found.ID,`,
		by: "TestReplication",
	},
	{
		file: "infra/rules/queue.go", breaks: "P6", bug: "no warning of a visibility timeout of a single run",
		old: `6*timeout.Value`,
		new: `timeout.Value`,
		by:  "TestMapping",
	},
	{
		file: "infra/queue.go", breaks: "P6", bug: "no warning of a queue without a dead-letter queue",
		old: `HasRedrivePolicy:  redrive != nil,`,
		new: `HasRedrivePolicy:  true,`,
		by:  "TestDeadLetterQueue",
	},
	{
		file: "infra/rules/queue.go", breaks: "P6", bug: "no warning of a queue that gives a message one attempt",
		old: `receives.Value <= fewest {`,
		new: `receives.Value < 1 {`,
		by:  "TestMapping",
	},
	{
		file: "infra/rules/mapping.go", breaks: "P5", bug: "no warning of a queue that outlives the record of its messages",
		old: `m.Retention.Known && m.Retention.Value > memory`,
		new: `m.Retention.Known && m.Retention.Value > 14*day`,
		by:  "TestMapping",
	},
	{
		file: "infra/mapping.go", breaks: "P6", bug: "no warning of a mapping without partial answers",
		old: `ReportsFailures: types != nil && `,
		new: `ReportsFailures: types == nil || `,
		by:  "TestPartialAnswer",
	},
	{
		file: "infra/rules/stream.go", breaks: "P6", bug: "no warning of a stream that a failing record blocks",
		old: `retries.is(Unlimited) && m.RecordAge.is(Unlimited)`,
		new: `!retries.Known && !m.RecordAge.Known`,
		by:  "TestMapping",
	},
	{
		file: "infra/rules/stream.go", breaks: "P6", bug: "no warning of a stream that tries once",
		old: `retries.Value < fewest &&`,
		new: `retries.Value < 0 &&`,
		by:  "TestMapping",
	},
	{
		file: "infra/rules/function.go", breaks: "P6", bug: "no warning of asynchronous events that are lost",
		old: `!f.HasDeadLetterQueue && !a.HasFailureDestination`,
		new: `!f.HasDeadLetterQueue && a.HasFailureDestination`,
		by:  "TestFunction",
	},
	{
		file: "infra/async_invocation.go", breaks: "P6", bug: "no warning of asynchronous events that are tried once",
		old: `numberOr(r.MaximumRetryAttempts(), 2)`,
		new: `rules.Known(2)`,
		by:  "TestAsyncRetries",
	},
	{
		file: "infra/rules/function.go", breaks: "P6", bug: "no warning of a lock that outlives all attempts",
		old: `f.Timeout.Value+lockGrace <= last {`,
		new: `f.Timeout.Value <= last {`,
		by:  "TestFunction",
	},
}

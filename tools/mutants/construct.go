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
		file: "infra/alarms.go", breaks: "P6", bug: "an alarm is told to nobody",
		old: `{a.Throttles, a.SystemErrors, a.Contention, a.LeasesLost}`,
		new: `{a.Throttles, a.SystemErrors, a.Contention}`,
		by:  "TestAlarmsNotify",
	},
	{
		file: "infra/metrics.go", breaks: "P6", bug: "no alarm for throttled transactions",
		old: `"Updates, 0) + FILL(" + id + "Transactions, 0)"`,
		new: `"Updates, 0)"`,
		by:  "TestAlarms",
	},
	{
		file: "infra/lost_leases.go", breaks: "P6", bug: "the alarm for lost leases is of all tables",
		old: `		Namespace: jsii.String(leaseLost), MetricName: t.table.TableName(),`,
		new: `		Namespace: jsii.String(leaseLost), MetricName: jsii.String("LeaseLost"),`,
		by:  "TestLeasesOfEachTable",
	},
	{
		file: "infra/lost_leases.go", breaks: "P6", bug: "no warning of a log level that drops lost leases",
		old: `f.logLevel == "FATAL"`,
		new: `f.logLevel == "ERROR"`,
		by:  "TestLogLevel",
	},
	{
		file: "infra/connect.go", breaks: "P6", bug: "no warning of a function that the alarm for lost leases does not see",
		old: `		c.countsLostLeases = true
	}
`,
		new: `	}
	c.countsLostLeases = true
`,
		by: "TestLeasesNotCounted",
	},
	{
		file: "infra/connect.go", breaks: "F40", bug: "no warning of a role that drops the permission",
		old: `!*grant.Success() || !hasPolicy(fn.Role())`,
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
		old: `	t.grantKey(grantee, writeKeyActions)
`,
		new: ``,
		by:  "TestGrantsOfTheKey",
	},
	{
		file: "infra/variables.go", breaks: "F40", bug: "the function uses another namespace than the permission's",
		old: `v.namespace != "" && c.namespace != nil && v.namespace != v.wantNamespace`,
		new: `v.namespace != "" && c.namespace == nil`,
		by:  "TestVariablesThatAreSetAlready|TestVariablesThatAreSetLater",
	},
	{
		file: "infra/reach.go", breaks: "F10", bug: "a function in another Region looks for a table that is not there",
		old: `*p.function != *p.table &&`,
		new: `p.name != "Region" && *p.function != *p.table &&`,
		by:  "TestTableOutOfReach",
	},
	{
		file: "infra/replica.go", breaks: "P1", bug: "two Regions hold the same lock",
		old: `if !r.strong {`,
		new: `if false {`,
		by:  "TestReplication",
	},
	{
		file: "infra/replica.go", breaks: "P6", bug: "no warning of a global table, which deletes no rows",
		old: `		c.warn(WarnStrongGlobalTable,`,
		new: `		if r.strong {
			return
		}
		c.warn(WarnStrongGlobalTable,`,
		by: "TestReplication",
	},
	{
		file: "infra/queue.go", breaks: "P6", bug: "no warning of a visibility timeout of a single run",
		old: `visibility.value < 6*timeout.value {`,
		new: `visibility.value < timeout.value {`,
		by:  "TestVisibilityTimeout",
	},
	{
		file: "infra/queue.go", breaks: "P6", bug: "no warning of a queue without a dead-letter queue",
		old: `hasRedrivePolicy:  redrive != nil,`,
		new: `hasRedrivePolicy:  true,`,
		by:  "TestDeadLetterQueue",
	},
	{
		file: "infra/queue.go", breaks: "P6", bug: "no warning of a queue that gives a message one attempt",
		old: `q.maxReceiveCount.value < 2 {`,
		new: `q.maxReceiveCount.value < 1 {`,
		by:  "TestDeadLetterQueue",
	},
	{
		file: "infra/queue.go", breaks: "P5", bug: "no warning of a queue that outlives the record of its messages",
		old: `kept.known && kept.value > memory`,
		new: `kept.known && kept.value > 14*day`,
		by:  "TestRetention",
	},
	{
		file: "infra/mapping.go", breaks: "P6", bug: "no warning of a mapping without partial answers",
		old: `m.reportsFailures = types != nil && `,
		new: `m.reportsFailures = types == nil || `,
		by:  "TestPartialAnswer",
	},
	{
		file: "infra/mapping.go", breaks: "P6", bug: "no warning of a stream that a failing record blocks",
		old: `value != nil && *value != -1`,
		new: `value != nil`,
		by:  "TestRetryLimit",
	},
	{
		file: "infra/mapping.go", breaks: "P6", bug: "no warning of a stream that tries once",
		old: `	if m.neverRetries {`,
		new: `	if false {`,
		by:  "TestRetryLimit",
	},
	{
		file: "infra/async_invocation.go", breaks: "P6", bug: "no warning of asynchronous events that are lost",
		old: `!f.hasDeadLetterQueue && !i.config.hasFailureDestination`,
		new: `!f.hasDeadLetterQueue && i.config.hasFailureDestination`,
		by:  "TestFailureDestination",
	},
	{
		file: "infra/async_invocation.go", breaks: "P6", bug: "no warning of asynchronous events that are tried once",
		old: `isZero(r.MaximumRetryAttempts())`,
		new: `false`,
		by:  "TestAsyncRetries",
	},
	{
		file: "infra/async_invocation.go", breaks: "P6", bug: "no warning of a lock that outlives all attempts",
		old: `f.timeout.value+lockGrace > lastAttempt {`,
		new: `f.timeout.value > lastAttempt {`,
		by:  "TestAsyncRetries",
	},
}

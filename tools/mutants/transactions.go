package main

// transactions has the bugs in completions inside a transaction.
var transactions = []mutant{
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "a transaction does not ask for the lock",
		old: `ConditionExpression: own.ConditionExpression, ExpressionAttributeValues: own.ExpressionAttributeValues,
`,
		new: `ExpressionAttributeValues: own.ExpressionAttributeValues,
`,
		by: "TestTransactAfterTakeover",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "a refused transaction after one without an answer counts as the last word",
		old: `case t.declined != nil && !t.unanswered:`,
		new: `case t.declined != nil:`,
		by:  "TestDeclinedAfterNoAnswer",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "the caller's refused condition hides that the lock was lost",
		old: `	if aws.ToString(own.Code) == "ConditionalCheckFailed" {`,
		new: `	if aws.ToString(own.Code) == "ConditionalCheckFailed" && aws.ToString(theirs[0].Code) == "None" {`,
		by:  "TestTransactAfterTakeover|TestTransactFaults",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F41", bug: "a row that cannot be read counts as a lost lease",
		old: `		return t.store.parse(own.Item)
`,
		new: `		row, _ := t.store.parse(own.Item)
		return row, nil
`,
		by: "TestTransactOnUnreadableRow",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F9", bug: "a conflict ends a transaction",
		old: `map[string]bool{"TransactionConflict": true, `,
		new: `map[string]bool{`,
		by:  "TestTransactFaults",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "two calls have one ClientRequestToken",
		old: `t.in.ClientRequestToken = aws.String(t.clock.Text())
	}
	err`,
		new: `t.in.ClientRequestToken = aws.String(t.clock.Text()[:0] + "lambdalock")
	}
	err`,
		by: "TestTokenOfEachCall",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "the caller may write the row of the lock itself",
		old: `	if t.writesRow(s.Name) {`,
		new: `	if t.writesRow(s.Name + "/") {`,
		by:  "TestTransactWrongUse",
	},
	{
		file: "stores/dynamostore/transact.go", breaks: "F53", bug: "a transaction that is still being applied counts as refused",
		old: `		return &driver.Error{Store: t.store.String(), Err: err}
	case "Idem`,
		new: `		return &driver.Error{Store: t.store.String(), Err: err, Unapplied: true}
	case "Idem`,
		by: "TestTransactUnanswered|TestTransactFaults",
	},
}

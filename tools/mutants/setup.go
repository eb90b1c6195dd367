package main

// setup has the bugs in how the store is opened and its table made, and in what
// people read of it.
var setup = []mutant{
	{
		file: "stores/dynamostore/table.go", breaks: "P5", bug: "a table that expires items by another attribute is accepted",
		old: `name != "deleteAfter" {`,
		new: `name == "" {`,
		by:  "TestEnsureTableRefusesOtherTables",
	},
	{
		file: "stores/dynamostore/table.go", breaks: "P1", bug: "a table with a sort key is accepted",
		old: `ok := len(t.KeySchema) == 1 &&`,
		new: `ok := len(t.KeySchema) > 0 &&`,
		by:  "TestEnsureTableRefusesOtherTables",
	},
	{
		file: "stores/dynamostore/table.go", breaks: "P5", bug: "a new table never deletes rows",
		old: `AttributeName: aws.String("deleteAfter"), Enabled: aws.Bool(true)`,
		new: `AttributeName: aws.String("deleteAfter"), Enabled: aws.Bool(false)`,
		by:  "TestEnsureTable",
	},
	{
		file: "stores/dynamostore/open.go", breaks: "F10", bug: "a function without a table's name asks DynamoDB",
		old: `		return nil, &driver.ConfigError{Reason: "no lock table:`,
		new: `		table = "locks"
	}
	if table == "" {
		return nil, &driver.ConfigError{Reason: "no lock table:`,
		by: "TestOpen",
	},
	{
		file: "stores/dynamostore/open.go", breaks: "F10", bug: "a missing Region is found with the first event",
		old: `if cfg.Region == "" {`,
		new: `if cfg.Region == "-" {`,
		by:  "TestOpen",
	},
	{
		file: "stores/dynamostore/inspector.go", breaks: "P5", bug: "a list ends with the first page of the table",
		old: `|| len(out.LastEvaluatedKey) == 0 {`,
		new: `|| len(out.LastEvaluatedKey) < 2 {`,
		by:  "TestRowsOfManyPages",
	},
	{
		file: "stores/dynamostore/inspector.go", breaks: "F8", bug: "a throttled read of one row is not repeated",
		old: `ConsistentRead: aws.Bool(true),
	}, patiently)`,
		new: `ConsistentRead: aws.Bool(true),
	})`,
		by: "TestReadsAreRepeated",
	},
	{
		file: "stores/dynamostore/inspector.go", breaks: "F8", bug: "a list ends with a throttled page",
		old: `client.Scan(ctx, in, patiently)`,
		new: `client.Scan(ctx, in)`,
		by:  "TestReadsAreRepeated",
	},
}

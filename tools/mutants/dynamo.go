package main

// dynamo has the bugs in the DynamoDB store.
var dynamo = []mutant{
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "a server that does not tell the row counts as one that has none",
		old: `		s.mute.Store(true)
		row = driver.Row{Untold: true}
`,
		new: `		s.mute.Store(true)
		row = driver.Row{}
`,
		by: "TestConformanceWithoutOldItems",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4", bug: "the place of an owner is not kept",
		old: `if c.Place > 0 {`,
		new: `if c.Place < 0 {`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4", bug: "an acquire does not tell the places",
		old: `, Line: old.Line, Served: old.Served,`,
		new: `,`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4", bug: "a place is given in the line for a free name",
		old: `readable + " AND attribute_exists(ownerToken)"`,
		new: `readable`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F41", bug: "an acquire takes the row of a newer version",
		old: `	acquireIf = readable + " AND (" +
`,
		new: `	acquireIf = "(" +
`,
		by: "TestForeignRows|TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P1", bug: "a lease can be taken at the instant at which it ends",
		old: `heldUntil < :now) AND`,
		new: `heldUntil <= :now) AND`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F3", bug: "a late claim brings a released lock back",
		old: `heldUntil < :now) AND " + below + ") " +`,
		new: `heldUntil < :now)) " +`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F3", bug: "a late claim with the last stamp brings a released lock back",
		old: `OR stamp < :stamp)"`,
		new: `OR stamp <= :stamp)"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F3", bug: "a copy of an earlier round undoes a later one",
		old: `heldUntil <= :until AND stamp <= :stamp))"`,
		new: `heldUntil <= :until))"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P2, F4", bug: "a late copy of the claim undoes a renewal",
		old: `heldUntil <= :until AND stamp <= :stamp))"`,
		new: `stamp <= :stamp))"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F1", bug: "a claim that meets its own first copy is refused",
		old: `(ownerToken = :token AND heldUntil <=`,
		new: `(ownerToken <> ownerToken AND ownerToken = :token AND heldUntil <=`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "a completed event runs again",
		old: `attribute_not_exists(completed.#event) OR completed.#event < :millis`,
		new: `attribute_not_exists(completed.#event) OR completed.#event < :millis OR attribute_exists(completed)`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "an event is forgotten a millisecond early",
		old: `completed.#event < :millis)`,
		new: `completed.#event <= :millis)`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "an event with the order of a completed one runs",
		old: `highestOrder < :order)"`,
		new: `highestOrder <= :order)"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "a key with Event and Order is not checked for staleness",
		old: `		condition = acquireEventOrderIf
`,
		new: `		condition = acquireEventIf
		delete(v, ":order")
`,
		by: "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5", bug: "a key with an Order alone is not checked for staleness",
		old: `		condition = acquireOrderIf
		v[":order"] = text(c.Order)
`,
		new: `		if c.Event != "" {
			v[":order"] = text(c.Order)
		}
`,
		by: "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P6", bug: "the next owner has the event of the dead one",
		old: `acquireMutexUpdate   = acquireUpdate + " REMOVE event, payload"`,
		new: `acquireMutexUpdate   = acquireUpdate + " REMOVE payload"`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F37", bug: "the next owner has the payload of the dead one",
		old: `", event = :event REMOVE payload"`,
		new: `", event = :event"`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P3", bug: "a fence does not rise",
		old: `"fence = :fence, `,
		new: `"fence = if_not_exists(fence, :fence), `,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P3", bug: "a fence is told one too high",
		old: `row := driver.Row{Token: old.Token,`,
		new: `row := driver.Row{Fence: c.Stamp.UnixMicro(), Token: old.Token,`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P1, F21", bug: "a late holder renews and releases the lock of the next one",
		old: `ifOwner       = readable + " AND ownerToken = :token"`,
		new: `ifOwner       = readable + " AND (ownerToken = :token OR attribute_exists(ownerToken))"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F4", bug: "a renewal creates a row that was deleted",
		old: `ifOwner       = readable + " AND ownerToken = :token"`,
		new: `ifOwner       = readable + " AND (ownerToken = :token OR attribute_not_exists(stamp))"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P2, F4", bug: "a late renewal moves the lease back",
		old: `ifOwner + " AND heldUntil <= :until"`,
		new: `ifOwner + " AND heldUntil <> :until"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4", bug: "a renewal does not move the row's expiry",
		old: `"SET heldUntil = :until, deleteAfter = :deleteAfter"`,
		new: `"SET heldUntil = :until, deleteAfter = if_not_exists(deleteAfter, :deleteAfter)"`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P5, F47", bug: "a release does not move the row's expiry",
		old: `"SET deleteAfter = :deleteAfter"`,
		new: `"SET deleteAfter = if_not_exists(deleteAfter, :deleteAfter)"`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F44", bug: "a claim that is given up while another owns the row raises no stamp",
		old: `	if ok || err != nil {
		return s.answer(item, ok, err)
	}
	in :=`,
		new: `	if ok || err != nil || str(item, "ownerToken") != "" {
		return s.answer(item, ok, err)
	}
	in :=`,
		by: "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F44", bug: "a claim that was granted while it was given up keeps the name",
		old: `if err != nil || len(item) > 0 && str(item, "ownerToken") != t.Token {`,
		new: `if err != nil || len(item) > 0 {`,
		by:  "TestGrantedWhileGivenUp",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F41", bug: "to give up a claim changes the row of a newer version",
		old: `raiseIf       = readable + " AND " + below`,
		new: `raiseIf       = below`,
		by:  "TestForeignRows|TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P4, F44", bug: "a claim that is given up releases the row without raising its stamp",
		old: `raiseUpdate   = "SET stamp = :stamp, deleteAfter = :deleteAfter"`,
		new: `raiseUpdate   = "SET stamp = if_not_exists(stamp, :stamp), deleteAfter = :deleteAfter"`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "P1, F44", bug: "to give up a claim releases a later round of it",
		old: `((ownerToken = :token AND stamp <= :stamp) OR`,
		new: `((ownerToken = :token) OR`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F1, F8", bug: "the SDK repeats requests by itself",
		old: `func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} },
	}}`,
		new: `func(*dynamodb.Options) { _ = aws.NopRetryer{} },
	}}`,
		by: "TestErrorsNameTheCause|TestConflictsOverHTTP|TestLostAnswers",
	},
	{
		file: "stores/dynamostore/store.go", breaks: "F40", bug: "a write that was throttled or met a conflict is followed by a read, which no function is allowed",
		old: `	return nil, false, s.classify(err)
}`,
		new: `	if c, ok := s.client.(reader); ok && awserror.Status(err) == 400 {
		_, _ = c.GetItem(ctx, &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key})
	}
	return nil, false, s.classify(err)
}`,
		by: "TestCallsAreThoseShipped",
	},
	{
		file: "stores/dynamostore/inspector.go", breaks: "F41", bug: "an item that is not a row ends the list",
		old: `		if (err != nil || !row.Unknown()) && !yield(driver.NamedRow{Name: name, Row: row}, err) {`,
		new: `		if (err != nil || !row.Unknown()) && !yield(driver.NamedRow{Name: name, Row: row}, err) || err != nil {`,
		by:  "TestRowsOfAnotherKind",
	},
	{
		file: "stores/dynamostore/inspector.go", breaks: "F41", bug: "a table with another key lists no rows and no error",
		old: `begins_with(#lock, :prefix) OR attribute_not_exists(#lock)`,
		new: `begins_with(#lock, :prefix)`,
		by:  "TestRowsOfAnotherTable",
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
	{
		file: "stores/dynamostore/errors.go", breaks: "F13", bug: "behind a proxy that refuses everything, FailOpen switches the locks off for good",
		old: `			e.Answered = true
			e.Hint`,
		new: `			e.Hint`,
		by:  "TestFailOpen", in: "middleware",
	},
	{
		file: "stores/dynamostore/errors.go", breaks: "F45", bug: "a conflict of a global table is permanent",
		old: `, "ReplicatedWriteConflictException": true}`,
		new: `}`,
		by:  "TestConflictsOverHTTP|TestErrorsNameTheCause",
	},
	{
		file: "stores/dynamostore/errors.go", breaks: "F9", bug: "a conflict of a transaction is permanent",
		old: `"TransactionConflictException": true, `,
		new: ``,
		by:  "TestConflictsOverHTTP|TestErrorsNameTheCause",
	},
	{
		file: "stores/dynamostore/errors.go", breaks: "F2", bug: "a request that got an answer of 500 counts as not applied",
		old: `>= http.StatusInternalServerError {
		return e`,
		new: `>= http.StatusInternalServerError {
		e.Unapplied = true
		return e`,
		by: "TestErrorsNameTheCause|TestLostAnswers",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P5", bug: "what is forgotten stays in the row",
		old: `		remove = append(remove, "completed")
`,
		new: `		remove = append(remove, "holder")[:len(remove)]
`,
		by: "TestAgreesWithMemstore|TestConformance",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P5", bug: "the result of a forgotten event stays in the row",
		old: `		remove = append(remove, "resultBody", "resultEvent")
`,
		new: ``,
		by:  "TestAgreesWithMemstore|TestConformance",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "F35", bug: "an event without a result gets that of an older one",
		old: `	case newest: // the result`,
		new: `	default: // the result`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P5, F47", bug: "events are read in the order in which they expire",
		old: `cmp.Or(strings.Compare(a.place, b.place), a.Until.Compare(b.Until))`,
		new: `cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.place, b.place))`,
		by:  "TestConformance|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P5", bug: "TTL may delete a row within the last second of its time",
		old: `t.Add(time.Second - time.Nanosecond).Unix()`,
		new: `t.Unix()`,
		by:  "TestConformance|TestRowIsReadable|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P5, F23", bug: "the TTL attribute counts milliseconds",
		old: `t.Add(time.Second - time.Nanosecond).Unix()`,
		new: `t.Add(time.Second - time.Nanosecond).UnixMilli()`,
		by:  "TestConformance|TestRowIsReadable|TestAgreesWithMemstore",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "P1, F14", bug: "times are stored in the zone of their writer",
		old: `t.UTC().Format(layout)`,
		new: `t.Format(layout)`,
		by:  "TestConformance",
	},
	{
		file: "stores/dynamostore/row.go", breaks: "F41", bug: "a row of a newer version is read as one of this",
		old: `	if _, ok := item["rowFormat"]; ok {`,
		new: `	if _, ok := item["rowFormat2"]; ok {`,
		by:  "TestForeignRows|TestConformance",
	},
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
}

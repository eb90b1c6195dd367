package main

// setup has the bugs in what is set up once: the options of a handler and its
// environment, how the store is opened and its table made, and what people read
// of it.
var setup = []mutant{
	{
		file: "middleware/environment.go", breaks: "F15", bug: "managed instances are taken for a platform that kills",
		old: `lambdacontext.MaxConcurrency() == 1 && os.Getenv("AWS_LAMBDA_INITIALIZATION_TYPE") != "lambda-managed-instances"`,
		new: `lambdacontext.MaxConcurrency() == 1`,
		by:  "TestOverdueWhereNobodyKills",
	},
	{
		file: "middleware/environment.go", breaks: "F13", bug: "the holder does not name the request",
		old: `			request = lc.AwsRequestID
`,
		new: `			_ = lc
`,
		by: "TestHolder",
	},
	{
		file: "middleware/policy.go", breaks: "P6", bug: "a handler without an error acknowledges an event whose lock is held",
		old: `sig.t.NumOut() == 0 && (held == fail || completed == fail)`,
		new: `sig.t.NumOut() == 0 && completed == fail`,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/policy.go", breaks: "P5", bug: "Replay takes a result that cannot be decoded",
		old: `case sig.result.Kind() == reflect.Interface && sig.result.NumMethod() > 0:`,
		new: `case sig.result.Kind() == reflect.Struct && sig.result.NumMethod() < 0:`,
		by:  "TestReplayNeedsAResultThatCanBeDecoded",
	},
	{
		file: "middleware/body.go", breaks: "P6", bug: "a Limit that refuses every message is seen at the first one",
		old: `	b.refuseLimit()
`,
		new: ``,
		by:  "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/policy.go", breaks: "P6", bug: "one stream is returned to several callers",
		old: `	case sig.streams():
		refuse("OnHeld(Respond)`,
		new: `	case sig.streams() && sig.result == nil:
		refuse("OnHeld(Respond)`,
		by: "TestWrongUsePanicsAtConstruction",
	},
	{
		file: "middleware/result.go", breaks: "P5", bug: "numbers of a replayed result lose their digits",
		old: `	d.UseNumber()
`,
		new: ``,
		by:  "TestReplayOfAnything",
	},
	{
		file: "middleware/result.go", breaks: "P5", bug: "a replayed result is escaped for HTML",
		old: `	e.SetEscapeHTML(false)
`,
		new: ``,
		by:  "TestReplayOfRawJSON",
	},
	{
		file: "middleware/batcherror.go", breaks: "P6", bug: "the error of a large batch names every record",
		old: `e.Failed[:min(shown, len(e.Failed))]`,
		new: `e.Failed[:min(1000, len(e.Failed))]`,
		by:  "TestBatchErrorStaysShort",
	},
	{
		file: "middleware/withlocks.go", breaks: "P5", bug: "an event under several keys is reported as the first one, which has no duplicates",
		old: `if i == 0 || s.Event == "" && all[i].Event != "" {`,
		new: `if i == 0 {`,
		by:  "TestResultOfASetDropped|TestWithLocks",
	},
	{
		file: "middleware/withlocks.go", breaks: "P6", bug: "an event without keys runs without a lock",
		old: `append([]lock.Key{}, all...)} // never nil`,
		new: `append([]lock.Key(nil), all...)} // maybe nil`,
		by:  "TestWithLocksWrongUse|TestWithLocks",
	},
	{
		file: "middleware/signature.go", breaks: "P6", bug: "a handler that takes the key function's event by pointer is refused",
		old: `	s.byPointer = in == reflect.PointerTo(event)
`,
		new: `	s.byPointer = false
`,
		by: "TestEventByPointer",
	},
	{
		file: "middleware/settings.go", breaks: "F40", bug: "the namespace may differ from the one that the permission allows",
		old: `allowed != "" && s.engine.Namespace != allowed`,
		new: `allowed != "" && s.engine.Namespace == ""`,
		by:  "TestOtherNamespaceIsRefused",
	},
	{
		file: "middleware/settings.go", breaks: "P5", bug: "messages of a queue are remembered for a day",
		old: `s.engine.Remember = rememberBySource[event]`,
		new: `s.engine.Remember = 0 * rememberBySource[event]`,
		by:  "TestRememberedAsLongAsTheSourceKeeps",
	},
	{
		file: "middleware/options.go", breaks: "F11", bug: "OnHeld(Wait) does not wait",
		old: `		o.engine.MaxWait = o.held.wait
`,
		new: ``,
		by:  "TestWaitPolicy",
	},
	{
		file: "middleware/options.go", breaks: "P5", bug: "Remember is ignored",
		old: `o.engine.Remember = d }`,
		new: `o.engine.Remember = 0 * d }`,
		by:  "TestRememberedAsLongAsTheSourceKeeps",
	},
	{
		file: "middleware/options.go", breaks: "F46", bug: "RememberEvents is ignored",
		old: `o.engine.RememberEvents = events }`,
		new: `o.engine.RememberEvents = 0 * events }`,
		by:  "TestRememberEvents",
	},
	{
		file: "middleware/options.go", breaks: "F16", bug: "Reserve is ignored",
		old: `o.engine.Reserve = d }`,
		new: `o.engine.Reserve = 0 * d }`,
		by:  "TestNothingBeginsWithinReserve|TestOverdueRecordIsNamed",
	},
	{
		file: "middleware/options.go", breaks: "F7", bug: "CompleteWithin is ignored",
		old: `o.engine.CompleteWithin = d }`,
		new: `o.engine.CompleteWithin = 0 * d }`,
		by:  "TestClientsDoNotWaitForCompletion",
	},
	{
		file: "middleware/options.go", breaks: "P1", bug: "Limit lets nobody in beside the first",
		old: `		o.engine.Limit = n
`,
		new: ``,
		by:  "TestLimit",
	},
	{
		file: "middleware/options.go", breaks: "P5", bug: "CompletedIf sees a zero result",
		old: `r, _ := result.(T) // a nil`,
		new: `r, _ := any(nil).(T) // a nil`,
		by:  "TestCompletedIf",
	},
	{
		file: "middleware/options.go", breaks: "F48", bug: "an observer is not called if one before it panics",
		old: `				defer f(ctx, seen) // also if before panics
				before(ctx, seen)
`,
		new: `				before(ctx, seen)
				f(ctx, seen)
`,
		by: "TestSeveralObservers",
	},
	{
		file: "middleware/record.go", breaks: "F31", bug: "RecordFromContext returns a record of another type",
		old: `	if r, ok := ctx.Value(recordKey[R]{}).(*R); ok {`,
		new: `	if r, ok := ctx.Value(anyRecordKey{}).(*R); ok || ctx.Value(anyRecordKey{}) != nil {
		if !ok {
			r = new(R)
		}`,
		by: "TestRecordFromContext",
	},
	{
		file: "middleware/record.go", breaks: "F30", bug: "a Kafka record is named without its partition",
		old: `fmt.Sprintf("%s-%d@%d", r.Topic, r.Partition, r.Offset)`,
		new: `fmt.Sprintf("%s-%d@%d", r.Topic, 0*r.Partition, r.Offset)`,
		by:  "TestLinesOfKafkaRecordsNameThem",
	},
	{
		file: "middleware/withlock.go", breaks: "P6", bug: "options for records are ignored around whole events",
		old: `	s.refuseEach()
	key`,
		new: `	key`,
		by:  "TestWithLocksWrongUse",
	},
	{
		file: "middleware/withlock.go", breaks: "F49", bug: "a lambda.Handler of requests has no defaults for HTTP",
		old: `		s.use(httpOf(reflect.TypeFor[E](), rawType))
`,
		new: ``,
		by:  "TestHTTPReplay",
	},
	{
		file: "middleware/withlock.go", breaks: "F49", bug: "the event of the handler does not show the gateway",
		old: `s.use(httpOf(sig.event(reflect.TypeFor[E]()), sig.result))`,
		new: `s.use(httpOf(reflect.TypeFor[E](), sig.result))`,
		by:  "TestHTTPByTheHandlersEvent",
	},
	{
		file: "middleware/body.go", breaks: "P6", bug: "an error of a record's key is blamed on its body",
		old: `errors.As(err, &ofRecord) {`,
		new: `errors.As(err, &ofRecord) && ofRecord.err == nil {`,
		by:  "TestRecordKeyErrors",
	},
	{
		file: "middleware/problem.go", breaks: "P7", bug: "the client of a request in progress is not told when to try again",
		old: `if p.retryAfter > 0 {`,
		new: `if p.retryAfter > 100 {`,
		by:  "TestHTTPRetryAfter|TestHTTPInProgress",
	},
	{
		file: "middleware/problem.go", breaks: "P7", bug: "a mistake in the function is blamed on the client",
		old: `errors.As(err, &noKey) && noKey.Client:`,
		new: `errors.As(err, &noKey):`,
		by:  "TestOperatorsMistakeIsNotABadRequest",
	},
	{
		file: "middleware/observe.go", breaks: "P7", bug: "names of keys are logged without LogKeys",
		old: `if w.engine.LogKeys {`,
		new: `if !w.engine.LogKeys {`,
		by:  "TestLogKeys",
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

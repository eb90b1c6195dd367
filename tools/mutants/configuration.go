package main

// configuration has the bugs in signatures, options and what surrounds a
// function.
var configuration = []mutant{
	{
		file: "middleware/defaultstore.go", breaks: "F59", bug: "a given store looks at its server when the first event comes",
		old: `		checkWithin(checkTimeout, s)
`,
		new: ``,
		by:  "TestStoreIsCheckedDuringINIT",
	},
	{
		file: "middleware/defaultstore.go", breaks: "F10", bug: "a default store that could not be opened is never opened again",
		old: `	d.store, err = dynamostore.Open(ctx, d.table)
`,
		new: `	d.store, err = dynamostore.Open(ctx, d.table)
	if err != nil && d.table != "" {
		d.store = dynamostore.New(nil, d.table)
	}
`,
		by: "TestDefaultStoreOpensAgain",
	},
	{
		file: "middleware/remember.go", breaks: "P5", bug: "an SQS message is forgotten before its queue forgets it",
		old: `events.SQSMessage]():  4 * day,`,
		new: `events.SQSMessage]():  1 * day,`,
		by:  "TestRememberedAsLongAsTheSourceKeeps|TestBodyIsRememberedBySource",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "the refusal of a key of records names no wrapper",
		old: `	case perRecord(event) != "":`,
		new: `	case perRecord(in) != "":`,
		by:  "TestKeyOfRecordsAroundTheWholeEvent",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "a whole event is taken for a record with nothing in it",
		old: `		if record.IsZero() {`,
		new: `		if !record.IsValid() {`,
		by:  "TestDeliveryOfTheWholeEvent",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "an event with a time window is taken for a record",
		old: `			stream.SetZero()`,
		new: `			_ = stream`,
		by:  "TestDeliveryOfTheWholeEvent",
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
		file: "middleware/metrics.go", breaks: "F12", bug: "a second observer replaces the first",
		old: `		before(ctx, v)
`,
		new: ``,
		by:  "TestSeveralObservers",
	},
	{
		file: "middleware/options.go", breaks: "F11", bug: "OnHeld(Wait) does not wait",
		old: `o.engine.MaxWait, o.engine.Coalesce = o.held.wait, `,
		new: `o.engine.MaxWait, o.engine.Coalesce = 0, `,
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
		file: "middleware/result.go", breaks: "P5", bug: "CompletedIf sees a zero result",
		old: `r, _ := result.(T) // a nil`,
		new: `r, _ := any(nil).(T) // a nil`,
		by:  "TestCompletedIf",
	},
	{
		file: "middleware/metrics.go", breaks: "F48", bug: "an observer is not called if one before it panics",
		old: `		defer f(ctx, v)
		before(ctx, v)
`,
		new: `		before(ctx, v)
		f(ctx, v)
`,
		by: "TestSeveralObservers",
	},
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
		file: "middleware/withlock.go", breaks: "P6", bug: "options for records are ignored around whole events",
		old: `	s.refuseEach()
	key`,
		new: `	key`,
		by:  "TestWithLocksWrongUse",
	},
	{
		file: "middleware/withlock.go", breaks: "F49", bug: "a lambda.Handler of requests has no defaults for HTTP",
		old: `		s.use(httpOf(event, rawType))
`,
		new: ``,
		by:  "TestHTTPReplay",
	},
	{
		file: "middleware/withlock.go", breaks: "F49", bug: "the event of the handler does not show the gateway",
		old: `s.use(httpOf(sig.event(event), sig.result))`,
		new: `s.use(httpOf(event, sig.result))`,
		by:  "TestHTTPByTheHandlersEvent",
	},
}

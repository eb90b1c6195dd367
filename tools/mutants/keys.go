package main

// keys has the bugs in the names and events that keys are made of: two events
// that are taken for one are lost, and one that is taken for two runs twice.
var keys = []mutant{
	// internal/event: what a row holds.
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "two pairs of namespace and name are stored as one",
		old: `return url.PathEscape(namespace) + "/" }`,
		new: `_ = url.PathEscape; return namespace + "/" }`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "a name can be chosen to collide with the hash of another",
		old: `utf8.ValidString(s) && !strings.HasPrefix(s, hashPrefix)`,
		new: `utf8.ValidString(s)`,
		by:  "TestName|TestEvent",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "a name can be chosen to collide with the slot of another",
		old: `storable(name) && !strings.HasPrefix(name, SlotPrefix) {`,
		new: `storable(name) {`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27", bug: "names that are not UTF-8 are stored, and become one in JSON",
		old: `utf8.ValidString(s) && !strings`,
		new: `utf8.ValidString(hashPrefix) && !strings`,
		by:  "TestName|TestEvent",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27", bug: "a name that is too long for a store is stored",
		old: `if len(prefix)+len(name) <= maxName && storable`,
		new: `if len(name) <= maxName && storable`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27, F46", bug: "an event that is too long for a row is stored",
		old: `if len(event) <= maxEvent && storable`,
		new: `if len(event) <= 2*maxEvent && storable`,
		by:  "TestEvent",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "F25", bug: "members in another order make another key",
		old: `		return o.Sort()
`,
		new: `		return o
`,
		by: "TestJSON",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "F27", bug: "half of a surrogate pair makes two strings one",
		old: `b = fmt.Appendf(append(b, mark), "u%04x", r)`,
		new: `b = utf8.AppendRune(b, r)`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/canonical/number.go", breaks: "F27", bug: "a number and its negative make one key",
		old: `	if negative {`,
		new: `	if negative && len(s) > 40 {`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/canonical/number.go", breaks: "F27", bug: "a fraction makes one key with a whole number",
		old: `len(written)-len(digits)-len(fraction)`,
		new: `len(written)-len(digits)`,
		by:  "TestJSON",
	},
	{
		file: "internal/event/invocation/invocation.go", breaks: "F46", bug: "a batch knows only the last event of each name",
		old: `append(b.events[name], event)`,
		new: `append(b.events[name][:0], event)`,
		by:  "TestBatch",
	},

	// keyfuncs.
	{
		file: "internal/event/keyparts/keyparts.go", breaks: "F28", bug: "the parts of a name are not told apart",
		old: `url.PathEscape(p)`,
		new: `url.PathEscape(p)[:0] + p`,
		by:  "TestCombinators|TestIdempotencyKeyTellsApart|TestCloudWatchLogsTellsApart", in: "keyfuncs",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F28", bug: "two prefixes turn different names into one",
		old: `head := url.PathEscape(prefix) + "/"`,
		new: `head := url.PathEscape(prefix)[:0] + prefix + "/"`,
		by:  "TestPrefixIsUnambiguous",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F26", bug: "a prefix makes a name of an empty one",
		old: `if k.Name != "" { // an empty name`,
		new: `if k.Name != prefix { // an empty name`,
		by:  "TestCombinators|TestCombinatorsRefuse|TestPrefixIsUnambiguous",
	},
	{
		file: "keyfuncs/compose.go", breaks: "P5", bug: "Once keeps the event of the inner key",
		old: `Event: k.Name, Payload: k.Payload}, err`,
		new: `Event: k.Event, Payload: k.Payload}, err`,
		by:  "TestCombinators",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F26", bug: "a request that is broken runs without a lock",
		old: `e != nil && e.Client && e.Missing`,
		new: `e != nil && e.Client`,
		by:  "TestOptional|TestOptionalOfRequests",
	},
	{
		file: "keyfuncs/compose.go", breaks: "P5", bug: "numbers are put in order by their bytes",
		old: `fmt.Sprintf("%03d%s", len(digits), digits)`,
		new: `fmt.Sprintf("%03d%s", 1, digits)`,
		by:  "TestCombinators|TestKinesisRecord|TestSQSFIFOMessage",
	},
	{
		file: "keyfuncs/compose.go", breaks: "P5", bug: "a joined key has the event of its first part alone",
		old: `joined.Event = keyparts.Name("join", events...)`,
		new: `joined.Event = keyparts.Name("join", events[:1]...)`,
		by:  "TestCombinators",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F28", bug: "of a payload and a caller that are compared together, only one is",
		old: `append(payloads, cmp.Or(k.Payload, k.Name))`,
		new: `append(payloads, k.Payload)`,
		by:  "TestCombinators",
	},
	{
		file: "keyfuncs/s3.go", breaks: "P5, F51", bug: "news of another kind about an upload is lost as a duplicate",
		old: `id.writes = strings.HasPrefix(id.kind, "ObjectCreated:") || strings.HasPrefix(id.kind, "ObjectRemoved:") || id.bare()`,
		new: `id.writes = true`,
		by:  "TestS3KindsAreDifferentEvents|TestS3Samples",
	},
	{
		file: "keyfuncs/s3.go", breaks: "P5, F51", bug: "a deletion is a different event each time that it is reported",
		old: ` || strings.HasPrefix(id.kind, "ObjectRemoved:") || id.bare()`,
		new: ` || id.bare()`,
		by:  "TestS3EveryWay|TestS3Samples|TestS3KindsAreDifferentEvents|TestS3LatestOrders",
	},
	{
		file: "keyfuncs/s3.go", breaks: "P5", bug: "news of other kinds is dropped as stale",
		old: `if err != nil || !id.writes || oldVersion {`,
		new: `if err != nil || oldVersion {`,
		by:  "TestS3LatestHandlesOtherKinds",
	},
	{
		file: "keyfuncs/s3.go", breaks: "P6", bug: "the deletion of an old version makes the newest upload stale",
		old: `id.kind == "ObjectRemoved:Delete" && id.version != ""`,
		new: `id.kind == "ObjectRemoved:DeleteMarkerCreated"`,
		by:  "TestS3DeletionOfAVersion|TestS3LatestHandlesOtherKinds",
	},
	{
		file: "keyfuncs/s3.go", breaks: "P5", bug: "sequencers of different lengths are compared without their padding",
		old: `"s" + strings.TrimRight(sequencer, "0")`,
		new: `"s" + strings.TrimRight(sequencer, "")`,
		by:  "TestS3LatestOrders",
	},
	{
		file: "keyfuncs/s3.go", breaks: "F31", bug: "an object key is decoded twice",
		old: `		return o.URLDecodedKey, nil
`,
		new: `		return url.QueryUnescape(o.URLDecodedKey)
`,
		by: "TestS3|TestS3EveryWay",
	},
	{
		file: "keyfuncs/eventbridges3.go", breaks: "P5, F51", bug: "deletions by a lifecycle rule of one day are one event",
		old: ` && d.Reason != "Lifecycle Expiration" ||`,
		new: ` ||`,
		by:  "TestEventBridgeS3Object|TestS3KindsAreDifferentEvents|TestS3Samples",
	},
	{
		file: "keyfuncs/keyerror.go", breaks: "F39", bug: "a key function's error value grows with every event",
		old: `	located := *e
	change(&located)
	if err != error(e) {
		located.Err = err
	}
	return &located`,
		new: `	change(e)
	return err`,
		by: "TestSentinelKeyErrorsStayUnchanged",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "P5", bug: "the message id replaces the event that the body carries",
		old: `k.Event = cmp.Or(k.Event, id)`,
		new: `k.Event = cmp.Or(id, k.Event)`,
		by:  "TestBodyTakesTheMessageID|TestSNSInAQueue|TestS3EveryWay",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F26", bug: "a body of null is an event of which nothing is said",
		old: `if string(bytes.TrimSpace(text)) == "null" {`,
		new: `if string(bytes.TrimSpace(text)) == "nil" {`,
		by:  "TestNeighboursAreRefused|TestEventBridgeDetail|TestKinesisBodyErrors",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F31", bug: "an event of another source is decoded as an empty one",
		old: `kind != "" && kind != want && (`,
		new: `kind != "" && kind != want && carrier == "" && (`,
		by:  "TestEveryEventInEveryEnvelope|TestNeighboursAreRefused",
	},
	{
		file: "keyfuncs/hash.go", breaks: "F29", bug: "the event stays readable",
		old: `[]*string{&k.Name, &k.Event}`,
		new: `[]*string{&k.Name}`,
		by:  "TestHash",
	},
	{
		file: "keyfuncs/hash.go", breaks: "F29", bug: "a keyed hash does not depend on its key",
		old: `h := hmac.New(sha256.New, secret)`,
		new: `h := hmac.New(sha256.New, nil)`,
		by:  "TestHash",
	},
	{
		file: "keyfuncs/dynamodb.go", breaks: "P5", bug: "the changes of a new stream look stale",
		old: `Order: label + " " + order}, err`,
		new: `Order: order}, err`,
		by:  "TestDynamoDBRecord",
	},
	{
		file: "keyfuncs/dynamodb.go", breaks: "F28", bug: "a number and a string make one primary key",
		old: `parts = append(parts, name, "N", v.Number())`,
		new: `parts = append(parts, name, "S", v.Number())`,
		by:  "TestDynamoDBRecord",
	},
	{
		file: "keyfuncs/kinesis.go", breaks: "P6", bug: "a record of one shard makes those of another stale",
		old: `keyparts.Name("kinesis", r.EventSourceArn, shard, r.Kinesis.PartitionKey)`,
		new: `keyparts.Name("kinesis", r.EventSourceArn, r.Kinesis.PartitionKey)`,
		by:  "TestShardsAreInOrderByThemselves|TestKinesisRecord",
	},
	{
		file: "keyfuncs/kinesis.go", breaks: "P6", bug: "records of two shards with one sequence number are one event",
		old: `Event: shard + ":" + number, Order`,
		new: `Event: number, Order`,
		by:  "TestShardsAreInOrderByThemselves|TestKinesisRecord",
	},
	{
		file: "keyfuncs/compose.go", breaks: "P6", bug: "the orders of two shards are compared under a name from the data",
		old: `			k.Name = keyparts.Name("join", k.Name, other.Name)
`,
		new: ``,
		by:  "TestShardsAreInOrderByThemselves|TestKinesisBody|TestCombinators",
	},
	{
		file: "keyfuncs/compose.go", breaks: "P6", bug: "two schedules that are due at one time are one event under a name of their own",
		old: `	return keyparts.Name("event", k.Name, k.Event)
`,
		new: `	return k.Event
`,
		by: "TestPairs|TestCombinators",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F26", bug: "an order makes a name of an empty one",
		old: `if other.Order != "" && k.Name != "" {`,
		new: `if other.Order != "" {`,
		by:  "TestCombinators",
	},
	{
		file: "keyfuncs/kinesis.go", breaks: "P5", bug: "records of several shards look stale to each other",
		old: `		return k, within("kinesis", err)
`,
		new: `		k.Order = r.Kinesis.SequenceNumber
		return k, within("kinesis", err)
`,
		by: "TestKinesisBody",
	},
	{
		file: "keyfuncs/services/stepfunctions.go", breaks: "P6", bug: "items of a Map that begin in one millisecond are one event",
		old: `keyparts.Digest(string(canonical.Text(withoutAttempts(tree))))`,
		new: `keyparts.Digest(string(canonical.Text(withoutAttempts(tree)))[:0])`,
		by:  "TestMapItemsWithoutIndex|TestStepFunctions", in: "keyfuncs",
	},
	{
		file: "keyfuncs/services/stepfunctions.go", breaks: "P5", bug: "each retry of a task is another event",
		old: `return c.Name == "RetryCount" || `,
		new: `return `,
		by:  "TestMapItemsWithoutIndex", in: "keyfuncs",
	},
	{
		file: "keyfuncs/kafka.go", breaks: "P5", bug: "a topic that is created again repeats its events",
		old: `+ "/" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)`,
		new: ``,
		by:  "TestKafkaRecord",
	},
	{
		file: "keyfuncs/services/cloudwatchlogs.go", breaks: "P5", bug: "batches with other log events are one",
		old: `		parts = append(parts, l.ID)
`,
		new: `		parts = append(parts, d.LogEvents[0].ID)
`,
		by: "TestCloudWatchLogsTellsApart", in: "keyfuncs",
	},
	{
		file: "keyfuncs/services/cloudwatchlogs.go", breaks: "F32", bug: "a small payload unpacks to gigabytes",
		old: `io.LimitReader(z, maxLogs+1)`,
		new: `io.LimitReader(z, 1<<40)`,
		by:  "TestCloudWatchLogsTooLarge", in: "keyfuncs",
		survives: "the size is still refused after it was unpacked; a test would have to fill the memory",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F28", bug: "two callers share their idempotency keys",
		old: `keyparts.Once("http", key, r.api.value, r.stage, by.Name)`,
		new: `keyparts.Once("http", key, r.api.value, r.stage)`,
		by:  "TestIdempotencyKeyTellsApart|TestCallers",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F28", bug: "behind an HTTP API a function typed for a Function URL takes all callers for one",
		old: `c.DomainName != "" && !strings`,
		new: `c.DomainName == "" && !strings`,
		by:  "TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "a token without a subject counts as nobody",
		old: `	if r.callerErr != nil {
`,
		new: `	if false {
`,
		by: "TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F37", bug: "another body under one idempotency key is taken for a retry",
		old: `r.query, keyparts.Digest(text))`,
		new: `r.query, keyparts.Digest(text[:0]))`,
		by:  "TestIdempotencyKeyFingerprint",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F27", bug: "values that are not UTF-8 make one idempotency key",
		old: `unicode.IsControl(r) || r == utf8.RuneError`,
		new: `unicode.IsControl(r) && r != utf8.RuneError`,
		by:  "TestIdempotencyKeyHeader|TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "users of two issuers are one caller",
		old: `return iss + " " + sub, nil`,
		new: `return " " + sub, nil`,
		by:  "TestCallers|TestIdempotencyKeyTellsApart",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "a role's session makes a retry another request",
		old: `		id, _, _ = strings.Cut(id, ":")
`,
		new: `		id, _, _ = strings.Cut(id, "#")
`,
		by: "TestCallers|TestIdempotencyKeyKnowsTheSameRequest",
	},
	{
		file: "keyfuncs/sqs.go", breaks: "P5", bug: "two groups of a queue wait for each other and look stale",
		old: `keyparts.Name("sqs", m.EventSourceARN, m.Attributes["MessageGroupId"])`,
		new: `keyparts.Name("sqs", m.EventSourceARN)`,
		by:  "TestSQSFIFOMessage",
	},
	{
		file: "keyfuncs/services/invocationrecord.go", breaks: "P6", bug: "the records of two functions' invocations are one",
		old: `keyparts.Name("invocation", c.FunctionARN, c.RequestID)`,
		new: `keyparts.Name("invocation", c.RequestID)`,
		by:  "TestInvocationRecord", in: "keyfuncs",
	},
	{
		file: "keyfuncs/services/invocationrecord.go", breaks: "P6", bug: "success and failure of one invocation are one record",
		old: `Event: c.RequestID + "/" + c.Condition}`,
		new: `Event: c.RequestID}`,
		by:  "TestInvocationRecord", in: "keyfuncs",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F31", bug: "the pointer to a large message is called malformed JSON",
		old: `		if eventkind.IsPointer(text) {`,
		new: `		if eventkind.IsPointer(text[:0]) {`,
		by:  "TestNeighboursAreRefused",
	},
	{
		file: "internal/event/eventkind/eventkind.go", breaks: "F31", bug: "what a destination gets is called an HTTP request",
		old: `&& requestContext.FunctionARN != "" {`,
		new: `&& requestContext.FunctionARN == "-" {`,
		by:  "TestOf|TestOfOddities",
	},
	{
		file: "keyfuncs/single.go", breaks: "P5", bug: "one lock stands for all records of an event",
		old: `	if len(records) == 1 {`,
		new: `	if len(records) >= 1 {`,
		by:  "TestSingle",
	},
	{
		file: "keyfuncs/several.go", breaks: "F26", bug: "a key that cannot be found is left out of the set",
		old: `			if err != nil {
				return nil, err
			}`,
		new: `			if err != nil {
				continue
			}`,
		by: "TestAll",
	},
	{
		file: "keyfuncs/source.go", breaks: "F31", bug: "a record of another source is taken",
		old: `case source == "" || kind == want:`,
		new: `case source == "" || kind != "":`,
		by:  "TestRecordsOfAnotherSourceAreRefused",
	},
}

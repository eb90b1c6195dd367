package main

// keys has the bugs in the names and events that keys are made of.
var keys = []mutant{
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
		file: "keyfuncs/compose.go", breaks: "F28", bug: "a broken character names a lock",
		old: `if strings.ContainsRune(name, utf8.RuneError) {`,
		new: `if name == string(utf8.RuneError) {`,
		by:  "TestLostCharacters",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F37", bug: "EventFrom drops the fingerprint of a request",
		old: `, cmp.Or(k.Payload, other.Payload)
		if err`,
		new: `, k.Payload
		if err`,
		by: "TestEventFromKeepsThePayload",
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
		file: "keyfuncs/keyerror.go", breaks: "F26", bug: "a nil key function crashes at the first event",
		old: `		if key == nil {`,
		new: `		if key == nil && i > 0 {`,
		by:  "TestNilKeyFunctions",
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
		old: `kind != nil && kind != want && (`,
		new: `kind != nil && kind != want && carrier == nil && (`,
		by:  "TestEveryEventInEveryEnvelope|TestNeighboursAreRefused",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F31", bug: "the pointer to a large message is called malformed JSON",
		old: `	if eventkind.IsPointer(text) {`,
		new: `	if eventkind.IsPointer(text[:0]) {`,
		by:  "TestNeighboursAreRefused",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "halves of surrogate pairs are one key",
		old: `otherErr != nil || k != exact`,
		new: `otherErr != nil && k != exact`,
		by:  "TestHalvesOfSurrogatePairs",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "half of a surrogate pair is refused wherever it is",
		old: `otherErr != nil || k != exact`,
		new: `otherErr == nil || k != exact`,
		by:  "TestHalvesOfSurrogatePairs",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "a body is taken from an envelope that nobody opened",
		old: `if !taken.IsZero() {`,
		new: `if taken.IsValid() {`,
		by:  "TestUnopenedEnvelope",
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
		old: `id := shard + ":" + number`,
		new: `id := number`,
		by:  "TestShardsAreInOrderByThemselves|TestKinesisRecord",
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
		new: `case source == "" || kind != nil:`,
		by:  "TestRecordsOfAnotherSourceAreRefused",
	},
}

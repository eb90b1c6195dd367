package keyfuncs_test

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// relation is what two deliveries are to each other.
type relation string

const (
	same     relation = "one event"
	distant  relation = "two events"           // whatever becomes of one, the other is handled
	sequence relation = "two events, in order" // the first is stale once the second is completed
)

const (
	lambdaGuide   = "https://docs.aws.amazon.com/lambda/latest/dg/"
	sqsGuide      = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
	s3Guide       = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
	busGuide      = "https://docs.aws.amazon.com/eventbridge/latest/userguide/"
	streamsGuide  = "https://docs.aws.amazon.com/streams/latest/dev/"
	dynamoDBGuide = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	statesGuide   = "https://docs.aws.amazon.com/step-functions/latest/dg/"
)

// pairs are two deliveries each, and what the key functions must take them for.
// The evidence is a page, or the source of a vendor. docs/SOURCES.md has
// them by key function.
var pairs = []struct {
	source, deliveries string
	are                relation
	evidence           string
	keys               func(*testing.T) (first, second lock.Key)
}{
	{"`S3Object`", "an upload, reported again", same, s3Guide + "notification-content-structure.html", s3Pair(keyfuncs.S3Object, func(r *events.S3EventRecord) { r.EventTime = r.EventTime.Add(time.Second) })},
	{"`S3Object`", "an upload, and the same through EventBridge", same, s3Guide + "ev-mapping-troubleshooting.html", s3Bridged},
	{"`S3Object`", "two uploads of one object", distant, s3Guide + "notification-content-structure.html", s3Pair(keyfuncs.S3Object, func(r *events.S3EventRecord) { r.S3.Object.Sequencer = "0055AED6DCD90281F6" })},
	{"`S3Object`", "an upload, and its restore later, with the sequencer of the upload", distant, s3Guide + "replication-metrics-events.html", s3Pair(keyfuncs.S3Object, func(r *events.S3EventRecord) { r.EventName = "ObjectRestore:Completed" })},
	{"`S3LatestRecord`", "two uploads of one object", sequence, s3Guide + "notification-content-structure.html", s3Pair(s3Latest, func(r *events.S3EventRecord) { r.S3.Object.Sequencer = "0055AED6DCD90281F6" })},
	{"`S3LatestRecord`", "an upload, and a delete marker", sequence, s3Guide + "notification-how-to-event-types-and-destinations.html", s3Pair(s3Latest, removed("DeleteMarkerCreated", "marker"))},
	{"`S3LatestRecord`", "an upload, and the deletion of an older version", distant, s3Guide + "notification-how-to-event-types-and-destinations.html", s3Pair(s3Latest, removed("Delete", "older"))},
	{"`EventBridgeS3Object`", "two versions that a lifecycle rule deletes on one day", distant, s3Guide + "ev-events.html", both("eventbridge-s3-expired.json", keyfuncs.EventBridgeS3Object, func(e *events.EventBridgeEvent) {
		e.Detail = json.RawMessage(strings.Replace(string(e.Detail), `"version-id": "`, `"version-id": "2`, 1))
	})},
	{"`SQSMessage`", "a message, received again", same, sqsGuide + "sqs-queue-message-identifiers.html", sqsPair(keyfuncs.SQSMessage, receivedAgain)},
	{"`SQSMessage`", "two messages with one body", distant, sqsGuide + "sqs-queue-message-identifiers.html", sqsPair(keyfuncs.SQSMessage, func(m *events.SQSMessage) { m.MessageId = "another" })},
	{"`SQSMessage`", "a message, and the same redriven", distant, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(keyfuncs.SQSMessage, redriven)},
	{"`SQSBody(Once(byID))`", "a message, and the same redriven", same, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(keyfuncs.SQSBody(keyfuncs.Once(byOrder)), redriven)},
	{"`SQSBody(EventFrom(byCustomer, byID))`", "a message, and the same redriven", same, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(keyfuncs.SQSBody(keyfuncs.EventFrom(byCustomer, byOrder)), redriven)},
	{"`SQSFIFOMessage`", "a message, received again", same, sqsGuide + "FIFO-queues-understanding-logic.html", sqsPair(keyfuncs.SQSFIFOMessage, receivedAgain)},
	{"`SQSFIFOMessage`", "two messages of one group", sequence, sqsGuide + "FIFO-queues-understanding-logic.html", sqsPair(keyfuncs.SQSFIFOMessage, sentAfter)},
	{"`SQSFIFOMessage`", "two messages of two groups", distant, sqsGuide + "FIFO-queues-understanding-logic.html", sqsPair(keyfuncs.SQSFIFOMessage, func(m *events.SQSMessage) { sentAfter(m); m.Attributes["MessageGroupId"] = "joe" })},
	{"`SQSFIFOMessage`", "a message, and the same redriven", sequence, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(keyfuncs.SQSFIFOMessage, redriven)},
	{"`EventFrom(SQSFIFOMessage, SQSBody(Once(byID)))`", "a message, and the same redriven", same, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(keyfuncs.EventFrom(keyfuncs.SQSFIFOMessage, keyfuncs.SQSBody(keyfuncs.Once(byOrder))), redriven)},
	{"`Once(Join(SQSFIFOMessage, ByField(deduplicationID)))`", "a message, sent again after 5 minutes", same, sqsGuide + "using-messagededuplicationid-property.html", sqsPair(byDeduplication, sentAfter)},
	{"`Once(Join(SQSFIFOMessage, ByField(deduplicationID)))`", "a message, and the same redriven", distant, sqsGuide + "sqs-configure-dead-letter-queue-redrive.html", sqsPair(byDeduplication, redriven)},
	{"`SNSRecord`", "a message, delivered again", same, "https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html", both("sns.json", snsRecord, func(e *events.SNSEvent) { e.Records[0].SNS.Signature = "another" })},
	{"`SNSRecord`", "a message, published twice", distant, "https://docs.aws.amazon.com/sns/latest/api/API_Publish.html", both("sns.json", snsRecord, func(e *events.SNSEvent) { e.Records[0].SNS.MessageID = "another" })},
	{"`EventBridgeEvent`", "an event, delivered again, or by another rule", same, busGuide + "eb-troubleshooting.html", both("eventbridge.json", keyfuncs.EventBridgeEvent, nil)},
	{"`EventBridgeEvent`", "an event, and the same replayed from an archive with its id", same, busGuide + "eb-archive.html", replayed},
	{"`EventBridgeEvent`", "two events with one detail", distant, busGuide + "eb-events-structure.html", both("eventbridge.json", keyfuncs.EventBridgeEvent, func(e *events.EventBridgeEvent) { e.ID = "another" })},
	{"`CustomBusEvent`", "an event, delivered again", same, busGuide + "eb-custom-bus-retry.html", both("custombus.json", first(keyfuncs.CustomBusEvent), nil)},
	{"`CustomBusEvent`", "an event, and the same replayed", same, busGuide + "eb-custom-bus-replay.html", both("custombus.json", first(keyfuncs.CustomBusEvent), fromHistory)},
	{"`CustomBusEvent`", "two events with one `Data`", distant, busGuide + "eb-custom-bus-addressing.html", both("custombus.json", first(keyfuncs.CustomBusEvent), another)},
	{"`CustomBusGroup`", "an event, and the same redriven after later ones of its group", same, busGuide + "eb-custom-bus-retry.html#eb-custom-bus-retry-redrive", both("custombus.json", first(keyfuncs.CustomBusGroup), fromHistory)},
	{"`CustomBusGroup`", "two events of a group", distant, busGuide + "eb-custom-bus-ordering.html", both("custombus.json", first(keyfuncs.CustomBusGroup), another)},
	{"`EventBridgeSchedule`", "two triggers of a rule for one time, with two ids", same, busGuide + "eb-troubleshooting.html", both("eventbridge-schedule.json", keyfuncs.EventBridgeSchedule, func(e *events.EventBridgeEvent) { e.ID = "another" })},
	{"`EventBridgeSchedule`", "two times of one schedule", distant, lambdaGuide + "with-eventbridge-scheduler.html", both("eventbridge-scheduler.json", keyfuncs.EventBridgeSchedule, func(e *events.EventBridgeEvent) { e.Time = e.Time.AddDate(0, 0, 1) })},
	{"`EventFrom(byTenant, EventBridgeSchedule)`", "two schedules of a tenant that are due at one time", distant, lambdaGuide + "with-eventbridge-scheduler.html", both("eventbridge-scheduler.json", keyfuncs.EventFrom(ofTenant, keyfuncs.EventBridgeSchedule), func(e *events.EventBridgeEvent) { e.Resources[0] += "2" })},
	{"`EventFrom(ByField(schedule), ByField(scheduledTime))`", "two attempts with an input of your own, with two execution ids", same, "https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html", scheduled},
	{"`KinesisRecord`", "a record, delivered again", same, lambdaGuide + "with-kinesis.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000006", "49")},
	{"`KinesisRecord`", "two records of a partition key in one shard", sequence, streamsGuide + "key-concepts.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000006", "50")},
	{"`KinesisRecord`", "a record, put twice by its producer", sequence, streamsGuide + "kinesis-record-processor-duplicates.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000006", "50")},
	{"`KinesisRecord`", "two records of a partition key in two shards (`ExplicitHashKey`)", distant, "https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000007", "50")},
	{"`KinesisRecord`", "two aggregated records (partition key `a`) in two shards", distant, "https://github.com/awslabs/amazon-kinesis-producer/blob/master/aws/kinesis/core/kinesis_record.cc", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000007", "48")},
	{"`KinesisRecord`", "two records of a partition key, before and after its shard was split", distant, streamsGuide + "kinesis-using-sdk-java-after-resharding.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000008", "51")},
	{"`KinesisRecord`", "a record without a partition key, delivered again", same, streamsGuide + "service-managed-pk-considerations.html", kinesisPair(withoutPartitionKey, "shardId-000000000006", "49")},
	{"`KinesisRecord`", "two records without a partition key in one shard", distant, streamsGuide + "service-managed-pk-considerations.html", kinesisPair(withoutPartitionKey, "shardId-000000000006", "50")},
	{"`KinesisBody(byCustomer)`", "two records of two shards with one sequence number", distant, streamsGuide + "key-concepts.html", kinesisPair(keyfuncs.KinesisBody(byCustomer), "shardId-000000000007", "49")},
	{"`KinesisRecord`", "a change of DynamoDB that is in the stream twice", sequence, dynamoDBGuide + "kds.html", kinesisPair(keyfuncs.KinesisRecord, "shardId-000000000006", "50")},
	{"`KinesisBody(Once(byID))`", "a change of DynamoDB that is in the stream twice, with one `eventID`", same, dynamoDBGuide + "kds.html", kinesisPair(keyfuncs.KinesisBody(keyfuncs.Once(byOrder)), "shardId-000000000006", "50")},
	{"`DynamoDBRecord`", "a change, delivered again", same, dynamoDBGuide + "Streams.html", dynamoDBPair(nil)},
	{"`DynamoDBRecord`", "two changes of one item", sequence, dynamoDBGuide + "Streams.html", dynamoDBPair(func(r *events.DynamoDBEventRecord) { r.Change.SequenceNumber = "4421584500000000017450439092" })},
	{"`DynamoDBRecord`", "two changes of one item, before and after a new stream was enabled", sequence, dynamoDBGuide + "Streams.html", dynamoDBPair(func(r *events.DynamoDBEventRecord) {
		r.EventSourceArn, r.Change.SequenceNumber = strings.Replace(r.EventSourceArn, "2026-06", "2026-07", 1), "1"
	})},
	{"`DynamoDBRecord`", "a change, and the same in another Region's replica", distant, dynamoDBGuide + "globaltables-CoreConcepts.html", dynamoDBPair(func(r *events.DynamoDBEventRecord) {
		r.EventSourceArn, r.EventID = strings.Replace(r.EventSourceArn, "us-east-2", "eu-west-1", 1), "another"
	})},
	{"`DocumentDBRecord`", "a change, delivered again", same, lambdaGuide + "with-documentdb.html", both("documentdb.json", onlyChange(keyfuncs.DocumentDBRecord), nil)},
	{"`KafkaRecord`", "a record, delivered again", same, lambdaGuide + "with-msk.html", kafkaPair(nil)},
	{"`KafkaRecord`", "two records with one offset, of a topic that was created anew", distant, "https://kafka.apache.org/documentation/#intro_concepts_and_terms", kafkaPair(func(r *events.KafkaRecord) {
		r.Timestamp = events.MilliSecondsEpochTime{Time: r.Timestamp.Add(time.Hour)}
	})},
	{"`ActiveMQEvent`", "a message, delivered again", same, "https://activemq.apache.org/activemq-message-properties.html", both("activemq.json", keyfuncs.ActiveMQEvent, func(e *events.ActiveMQEvent) { e.Messages[0].Redelivered = true })},
	{"`ActiveMQEvent`", "the copies of a message in two queues", distant, "https://activemq.apache.org/activemq-message-properties.html", both("activemq.json", keyfuncs.ActiveMQEvent, func(e *events.ActiveMQEvent) { e.Messages[0].Destination.PhysicalName = "invoices" })},
	{"`services.StepFunctions`", "two attempts of a task", same, statesGuide + "input-output-contextobject.html", taskPair(`"RetryCount": 0`, `"RetryCount": 1`)},
	{"`services.StepFunctions`", "a task, and the same after a redrive that keeps the time", same, statesGuide + "redrive-executions.html", taskPair(`"RedriveCount": 0`, `"RedriveCount": 1`)},
	{"`services.StepFunctions`", "two turns of a loop", distant, statesGuide + "input-output-contextobject.html", taskPair("30.123Z", "30.124Z")},
	{"`services.StepFunctions`", "two items of a Map state in one millisecond, with their index", distant, statesGuide + "input-output-contextobject.html", taskPair(`"Index": 1`, `"Index": 2`)},
	{"`services.StepFunctions`", "two items of a Map state in one millisecond, without an index", distant, statesGuide + "input-output-contextobject.html", taskPair(`"order": 1017`, `"order": 1018`)},
	{"`services.StepFunctions`", "two items of a distributed Map state, which are executions of their own", distant, statesGuide + "state-map-distributed.html", taskPair("execution:orders:1017", "execution:orders/items:1018")},
	{"`services.InvocationRecord`", "a record, delivered again", same, lambdaGuide + "invocation-async-retain-records.html", both[awsevents.InvocationRecord]("invocationrecord.json", services.InvocationRecord, nil)},
	{"`services.InvocationRecord`", "failure of an invocation, and success of the same when Lambda ran it twice", distant, lambdaGuide + "invocation-async.html", both("invocationrecord.json", services.InvocationRecord, func(r *awsevents.InvocationRecord) { r.RequestContext.Condition = "Success" })},
	{"`services.CloudWatchLogs`", "a batch, delivered again", same, "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html", both("cloudwatchlogs.json", services.CloudWatchLogs, nil)},
	{"`services.CloudWatchAlarm`", "two time series of an alarm that change at the same time", distant, "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html", both("alarm-contributor.json", services.CloudWatchAlarm, func(e *awsevents.AlarmEvent) { e.AlarmData.AlarmContributor.ID = "another" })},
	{"`services.CloudFormation`", "a request, delivered again", same, lambdaGuide + "services-cloudformation.html", both[cfn.Event]("cloudformation.json", services.CloudFormation, nil)},
	{"`services.CodePipelineJob`", "a job, and the same that goes on with a continuation token", distant, "https://docs.aws.amazon.com/codepipeline/latest/userguide/action-reference-Lambda.html", both("codepipeline.json", services.CodePipelineJob, func(e *events.CodePipelineJobEvent) { e.CodePipelineJob.Data.ContinuationToken += "2" })},
	{"`SESRecord`", "one mail for two lists of recipients", distant, lambdaGuide + "services-ses.html", both("ses.json", sesRecord, func(e *events.SimpleEmailEvent) { e.Records[0].SES.Receipt.Recipients = []string{"joe@example.com"} })},
}

func TestPairs(t *testing.T) { // F60
	t.Parallel()
	for _, p := range pairs {
		t.Run(strings.Trim(p.source, "`")+", "+p.deliveries, func(t *testing.T) {
			t.Parallel()
			first, second := p.keys(t)
			got := distant
			switch {
			case first.Name == "" || second.Name == "" || first.Event == "" || second.Event == "":
				t.Fatalf("no event: %+v, %+v", first, second)
			case first.Name == second.Name && first.Event == second.Event:
				got = same
			case first.Name == second.Name && first.Order != "" && first.Order < second.Order:
				got = sequence
			case first.Name == second.Name && first.Order != "" && second.Order != "":
				got = "the second is stale"
			}
			if got != p.are {
				t.Errorf("are %s, want %s: %+v, %+v", got, p.are, first, second)
			}
		})
	}
}

// both are an event of testdata, before and after a change.
func both[E any](file string, key keyfuncs.Func[E], change func(*E)) func(*testing.T) (first, second lock.Key) {
	return func(t *testing.T) (first, second lock.Key) {
		t.Helper()
		second, err := changed(t, file, key, change)
		if err != nil {
			t.Fatal(err)
		}
		return keyOf(t, key, load[E](t, file)), second
	}
}

type lockPair = func(*testing.T) (first, second lock.Key)

func s3Pair(key keyfuncs.Func[events.S3Event], change func(*events.S3EventRecord)) lockPair {
	return both("s3-put.json", key, func(e *events.S3Event) { change(&e.Records[0]) })
}

// removed makes an upload a deletion that comes after it.
func removed(how, version string) func(*events.S3EventRecord) {
	return func(r *events.S3EventRecord) {
		r.EventName, r.S3.Object.VersionID, r.S3.Object.Sequencer = "ObjectRemoved:"+how, version, "0055AED6DCD90281F9"
	}
}

func s3Bridged(t *testing.T) (first, second lock.Key) {
	t.Helper()
	return keyOf(t, keyfuncs.S3Object, load[events.S3Event](t, "s3-put.json")), keyOfText(t, s3Kinds[0].bridged(t), keyfuncs.EventBridgeS3Object)
}

func sqsPair(key keyfuncs.Func[events.SQSMessage], change func(*events.SQSMessage)) lockPair {
	return both("sqs-fifo.json", keyfuncs.Single[events.SQSEvent](key), func(e *events.SQSEvent) { change(&e.Records[0]) })
}

var byOrder = keyfuncs.ByField(func(o shopOrder) string { return strconv.Itoa(o.Order) })

func ofTenant(context.Context, events.EventBridgeEvent) (lock.Key, error) {
	return lock.Key{Name: "tenant"}, nil
}

func receivedAgain(m *events.SQSMessage) {
	m.ReceiptHandle, m.Attributes["ApproximateReceiveCount"] = "another", "2"
}

func sentAfter(m *events.SQSMessage) {
	m.MessageId, m.Attributes["SequenceNumber"], m.Attributes["SentTimestamp"] = "another", "18849496460467696384", "1795250183000"
}

// redriven is what comes out of a dead-letter queue: the deduplication id was
// replaced on the way into it.
func redriven(m *events.SQSMessage) {
	m.Attributes["MessageDeduplicationId"] = m.MessageId
	sentAfter(m)
}

func replayed(t *testing.T) (first, second lock.Key) {
	t.Helper()
	event := text(t, "eventbridge.json")
	key := decoding(keyfuncs.EventBridgeEvent)
	return keyOf(t, key, event), keyOf(t, key, strings.Replace(event, `"region"`, `"replay-name": "again", "region"`, 1))
}

func scheduled(t *testing.T) (first, second lock.Key) {
	t.Helper()
	field := func(name string) keyfuncs.Func[map[string]string] {
		return keyfuncs.ByField(func(input map[string]string) string { return input[name] })
	}
	key := keyfuncs.EventFrom(field("schedule"), field("time"))
	input := map[string]string{"schedule": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly", "time": "2026-11-21T03:00:00Z", "execution": "d32c5kddcf5bb8c3"}
	again := maps.Clone(input)
	again["execution"], again["attempt"] = "e43d6leedg6cc9d4", "2"
	return keyOf(t, key, input), keyOf(t, key, again)
}

// kinesisPair are a record with the number 49 in shard 6, and another one of
// its partition key and data.
func kinesisPair(key keyfuncs.Func[events.KinesisEventRecord], shard, number string) lockPair {
	return func(t *testing.T) (first, second lock.Key) {
		t.Helper()
		const data = `{"customer":"jane","order":7}`
		other := inShard(shard, data)
		other.EventID, other.Kinesis.SequenceNumber = shard+":"+number, number
		return keyOf(t, key, inShard("shardId-000000000006", data)), keyOf(t, key, other)
	}
}

// withoutPartitionKey is KinesisRecord for a record that lost its key.
func withoutPartitionKey(ctx context.Context, r events.KinesisEventRecord) (lock.Key, error) {
	r.Kinesis.PartitionKey = ""
	return keyfuncs.KinesisRecord(ctx, r)
}

func dynamoDBPair(change func(*events.DynamoDBEventRecord)) lockPair {
	return both("dynamodb.json", dynamoDBRecord, func(e *events.DynamoDBEvent) {
		if change != nil {
			change(&e.Records[0])
		}
	})
}

func kafkaPair(change func(*events.KafkaRecord)) lockPair {
	return both("kafka.json", onlyRecord(keyfuncs.KafkaRecord), func(e *events.KafkaEvent) {
		for _, records := range e.Records {
			if change != nil {
				change(&records[0])
			}
		}
	})
}

// taskPair are a task, and the same with another text in its input. The index
// of an item is there only if the text says so.
func taskPair(text1, text2 string) lockPair {
	return func(t *testing.T) (first, second lock.Key) {
		t.Helper()
		task := text(t, "stepfunctions.json")
		if !strings.Contains(text1, "Index") {
			task = strings.Replace(task, `"Index": 1, `, "", 1)
		}
		if !strings.Contains(task, text1) {
			t.Fatalf("no %s", text1)
		}
		key := decoding(byTask)
		return keyOf(t, key, task), keyOf(t, key, strings.Replace(task, text1, text2, 1))
	}
}

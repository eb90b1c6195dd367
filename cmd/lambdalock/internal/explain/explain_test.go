package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const testdata = "../../../../keyfuncs/testdata"

// accepted has the functions that take each sample, by the name before any
// middleware; a - stands before what is ignored, and a ! for a record that
// nothing takes.
var accepted = map[string]string{
	"activemq":                     "ActiveMQEvent",
	"alarm-contributor":            "services.CloudWatchAlarm",
	"alarm":                        "services.CloudWatchAlarm",
	"alb-multivalue":               "IdempotencyKey[events.ALBTargetGroupRequest]",
	"alb":                          "IdempotencyKey[events.ALBTargetGroupRequest]",
	"apigateway-http":              "IdempotencyKey[events.APIGatewayV2HTTPRequest]",
	"apigateway-rest":              "IdempotencyKey[events.APIGatewayProxyRequest]",
	"apigateway-websocket-connect": "IdempotencyKey[events.APIGatewayWebsocketProxyRequest]",
	"apigateway-websocket-message": "!",
	"cloudformation":               "services.CloudFormation",
	"cloudwatchlogs-control":       "-services.CloudWatchLogs",
	"cloudwatchlogs":               "services.CloudWatchLogs",
	"codecommit":                   "Single[events.CodeCommitEvent](CodeCommitRecord)",
	"codepipeline":                 "services.CodePipelineJob",
	"cognito-postconfirmation":     "services.CognitoUser",
	"cognito-pretokengen":          "services.CognitoUser",
	"config-change":                "services.ConfigRule",
	"config-oversized":             "services.ConfigRule",
	"config-scheduled":             "services.ConfigRule",
	"custombus-single":             "CustomBusEvent CustomBusGroup",
	"custombus":                    "CustomBusEvent CustomBusGroup",
	"documentdb":                   "DocumentDBRecord",
	"dynamodb":                     "Single[events.DynamoDBEvent](DynamoDBRecord)",
	"eventbridge-s3-expired":       "EventBridgeS3Object EventBridgeEvent",
	"eventbridge-s3-restore":       "EventBridgeS3Object EventBridgeEvent",
	"eventbridge-s3-tags":          "EventBridgeS3Object EventBridgeEvent",
	"eventbridge-s3":               "EventBridgeS3Object EventBridgeEvent",
	"eventbridge-schedule":         "EventBridgeSchedule EventBridgeEvent",
	"eventbridge-scheduler":        "EventBridgeSchedule EventBridgeEvent",
	"eventbridge":                  "EventBridgeEvent",
	"functionurl":                  "IdempotencyKey[events.LambdaFunctionURLRequest]",
	"invocationrecord":             "services.InvocationRecord",
	"invocationrecord-stream":      "services.InvocationRecord",
	"iot":                          "services.IoTRule",
	"kafka":                        "KafkaRecord",
	"kinesis":                      "Single[events.KinesisEvent](KinesisRecord)",
	"rabbitmq":                     "RabbitMQEvent",
	"s3-intelligenttier":           "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-lifecycle":                 "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-malformed":                 "S3Record S3LatestRecord; !; S3Record S3LatestRecord",
	"s3-put":                       "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-replication":               "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-restore":                   "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-tagging":                   "S3Object Single[events.S3Event](S3LatestRecord)",
	"s3-test":                      "-S3Object",
	"s3batch-1":                    "services.S3BatchTask[events.S3BatchJobEvent]",
	"s3batch-2":                    "services.S3BatchTask[events.S3BatchJobEventV2]",
	"secretrotation":               "services.SecretRotation",
	"ses":                          "Single[events.SimpleEmailEvent](SESRecord)",
	"sns-alarm":                    "Single[events.SNSEvent](SNSRecord) Single[events.SNSEvent](services.SNSAlarmRecord)",
	"sns-s3":                       "Single[events.SNSEvent](SNSRecord) Single[events.SNSEvent](SNSBody(S3Object))",
	"sns":                          "Single[events.SNSEvent](SNSRecord)",
	"sqs-eventbridge":              "Single[events.SQSEvent](SQSMessage) Single[events.SQSEvent](SQSBody(EventBridgeEvent))",
	"sqs-fifo":                     "Single[events.SQSEvent](SQSMessage) Single[events.SQSEvent](SQSFIFOMessage)",
	"sqs-s3-test":                  "Single[events.SQSEvent](SQSMessage) -Single[events.SQSEvent](SQSBody(S3Object))",
	"sqs-s3":                       "Single[events.SQSEvent](SQSMessage) Single[events.SQSEvent](SQSBody(S3Object))",
	"sqs-sns-s3":                   "Single[events.SQSEvent](SQSMessage) Single[events.SQSEvent](SQSBody(SNSBody(S3Object))) Single[events.SQSEvent](SQSBody(SNSRecord))",
	"sqs":                          "Single[events.SQSEvent](SQSMessage)",
	"stepfunctions":                "services.StepFunctions",
}

// functions says which functions take each record.
func functions(e *explain.Event) string {
	var records []string
	for _, r := range e.Records {
		var names []string
		for _, k := range r.Keys {
			name := k.Function
			for _, end := range []string{", or ", ", with ", " with "} {
				name, _, _ = strings.Cut(name, end)
			}
			if k.Ignored {
				name = "-" + name
			}
			names = append(names, name)
		}
		if len(names) == 0 {
			names = []string{"!"}
		}
		records = append(records, strings.Join(names, " "))
	}
	return strings.Join(records, "; ")
}

// TestCognitoTriggers shows that the types of a user's attributes do not
// matter, which differ between the triggers.
func TestCognitoTriggers(t *testing.T) {
	t.Parallel()
	for _, attributes := range []string{`{"email_verified":"true"}`, `{"email_verified":true}`, `[]`} {
		e := expect.Value(explain.Explain(t.Context(), []byte(`{"triggerSource":"CustomMessage_SignUp","userPoolId":"eu-west-1_a","userName":"jane","request":{"userAttributes":`+attributes+`}}`)))(t)
		if got := functions(e); got != "services.CognitoUser" {
			t.Errorf("%s: %s", attributes, got)
		}
	}
}

func TestEverySample(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(testdata + "/*.json")
	if err != nil || len(files) != len(accepted) {
		t.Errorf("%d samples, %d are expected here, error %v", len(files), len(accepted), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := expect.Value(os.ReadFile(file))(t)
			e := expect.Value(explain.Explain(t.Context(), doc))(t)
			if got := functions(e); got != accepted[name] {
				t.Errorf("got %s\nwant %s", got, accepted[name])
			}
			if e.Accepted() != (accepted[name] != "!") {
				t.Errorf("accepted: %v", e.Accepted())
			}
			for _, r := range e.Records {
				for _, k := range r.Keys {
					if !k.Ignored && (k.Name == "" || k.Digest != (lock.Key{Name: k.Name}).Digest()) {
						t.Errorf("key %+v", k)
					}
				}
				for _, refused := range r.Refused {
					if refused.Reason == "" {
						t.Errorf("%s refuses without a reason", refused.Function)
					}
				}
			}
		})
	}
}

// TestKnownKeys compares with keys that docs/SOURCES.md describes.
func TestKnownKeys(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]lock.Key{
		"s3-put":     {Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281F4"},
		"sqs-s3":     {Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281F4"},
		"sqs-sns-s3": {Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281F4"},
		"documentdb": {Name: "documentdb/arn:aws:rds:us-east-1:123456789012:cluster:canaryclusterb2a659a2-qo5tcmqkcl03/test_database/test_collection/%7B%22_id%22:%7B%22$oid%22:%2263eeb6e7d418cd98afb1c1d7%22%7D%7D", Event: "0163eeb6e7000000090100000009000041e1"},
		"kafka":      {Name: "kafka/orders/0/15/1795249183000", Event: "0/15/1795249183000"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var got []lock.Key
			for _, k := range explained(t, sample(t, file)).Records[0].Keys {
				got = append(got, lock.Key{Name: k.Name, Event: k.Event})
			}
			if !slices.Contains(got, want) {
				t.Errorf("got %+v, want %+v among them", got, want)
			}
		})
	}
}

// TestNotes: what a delivery of the same event may differ in is said where the
// key depends on it, and nowhere else.
func TestNotes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"sqs":           {"dead-letter queue"},
		"sqs-fifo":      {"dead-letter queue", "dead-letter queue"},
		"sqs-s3":        {"dead-letter queue", ""},
		"stepfunctions": {"digest"},
		"s3-put":        {"", ""},
		"kinesis":       {""},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			keys := explained(t, sample(t, file)).Records[0].Keys
			if len(keys) != len(want) {
				t.Fatalf("%d keys, want %d", len(keys), len(want))
			}
			for i, k := range keys {
				if !strings.Contains(k.Note, want[i]) || (k.Note == "") != (want[i] == "") {
					t.Errorf("%s: note %q, want %q in it", k.Function, k.Note, want[i])
				}
			}
		})
	}
}

func TestRubbish(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                     "not a JSON object",
		`null`:                 "not a JSON object",
		`[]`:                   "not a JSON object",
		`"s3"`:                 "not a JSON object",
		`{}`:                   "not an event of a source that has a key function",
		`{"Records":[]}`:       "not an event of a source",
		`{"Records":[{}]}`:     "not an event of a source",
		`{"Records":{"s3":1}}`: "not an event of a source",
		`{"order":{"id":17}}`:  "jmespath.Path",
		`{"task":"nightly"}`:   "a schedule with an input of its own: docs/SOURCES.md#the-input-of-a-schedule",
		`{"schedule":"arn:aws:scheduler:eu-west-1:1:schedule/default/nightly","time":"2026-11-22T21:30:06Z"}`: "this looks like a schedule's own input, which docs/SOURCES.md#the-input-of-a-schedule describes: take a key from it with EventFrom",
		`{"requestContext":5}`: "authorizer",
		`{"requestContext":{"apiId":"x"},"methodArn":"a","httpMethod":"GET"}`: "authorizer",
		`{"Type":"Notification","Message":"x"}`:                               "an SNS message without its envelope; in the envelope, the key function is SQSBody(SNSBody(S3Object))",
		`{"AlarmArn":"x","NewStateValue":"OK"}`:                               "services.SNSAlarmRecord",
		`{"eventSource":"aws:docdb","events":5}`:                              "looks like an event of a DocumentDB change stream, but",
		`{"eventSource":"aws:kafka","records":[]}`:                            "looks like a Kafka event, but",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if e, err := explain.Explain(t.Context(), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v, error %v, want %q", e, err, want)
			}
		})
	}
	for text, want := range map[string]string{
		`{"Records":[{"s3":5}]}`:                                          "the runtime cannot decode it as events.S3EventRecord",
		`{"detail-type":1,"detail":2}`:                                    "the runtime cannot decode it",
		`{"eventSource":"aws:docdb","events":[null]}`:                     "is missing",
		`{"triggerSource":1,"userPoolId":2}`:                              "the runtime cannot decode it",
		`{"triggerSource":"x","userPoolId":"p"}`:                          "userName is missing",
		`{"Execution":1,"State":2}`:                                       "the runtime cannot decode it",
		`{"a":{"Execution":{"Id":"x"},"State":"new"}}`:                    "State.Name",
		`{"topic":"t","traceId":""}`:                                      "traceId is missing",
		`{"invocationSchemaVersion":"2.0","invocationId":"i","tasks":[]}`: "job.id",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e, err := explain.Explain(t.Context(), []byte(text))
			if err != nil || e.Accepted() || !strings.Contains(e.Records[0].Refused[0].Reason, want) {
				t.Errorf("%+v, error %v, want a refusal with %q", e, err, want)
			}
		})
	}
}

// sample returns an event of keyfuncs/testdata.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	doc := expect.Value(os.ReadFile(filepath.Join(testdata, name+".json")))(t)
	return doc
}

// order is an event of SQS FIFO, whose key has an Event and an Order.
func order(number string) []byte {
	return []byte(`{"Records":[{"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q.fifo","messageId":"m` + number +
		`","attributes":{"MessageGroupId":"g","SequenceNumber":"` + number + `"},"body":"x"}]}`)
}

// keyOf returns the key that a function gives, from what is printed.
func keyOf(t *testing.T, e *explain.Event, function string) (explain.Key, lock.Key) {
	t.Helper()
	for _, k := range e.Records[0].Keys {
		if strings.Contains(k.Function, function) {
			return k, lock.Key{Name: k.Name, Event: k.Event, Order: k.Order, Payload: k.Payload}
		}
	}
	t.Fatalf("no %s in %+v", function, e)
	return explain.Key{}, lock.Key{}
}

// TestVerdicts: what is said of an event is what the engine then does.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	request := func(body string) []byte {
		var e map[string]any
		expect.Must(t, json.Unmarshal(sample(t, "apigateway-http"), &e))
		e["body"] = body
		doc := expect.Value(json.Marshal(e))(t)
		return doc
	}
	for name, c := range map[string]struct {
		before   []byte
		complete bool          // before; or else it is held
		wait     time.Duration // after it
		now      []byte
		function string
		would    string
		why      string
		least    time.Duration // HoldAtLeast
	}{
		"never seen":            {nil, false, 0, order("10"), "SQSFIFOMessage", explain.Unknown, "there is no such row", 0},
		"completed":             {order("10"), true, 0, order("10"), "SQSFIFOMessage", explain.Skip, "completed at 2000-01-01T00:00:00Z (", 0},
		"completed, forgotten":  {order("10"), true, 25 * time.Hour, order("10"), "SQSMessage", explain.Run, "the event was completed at 2000-01-01T00:00:00Z (1d1h ago), and was remembered until", 0},
		"stale":                 {order("10"), true, 0, order("9"), "SQSFIFOMessage", explain.Skip, "stale", 0},
		"stale, forgotten":      {order("10"), true, 23 * time.Hour, order("9"), "SQSFIFOMessage", explain.Skip, "stale", 0},
		"next":                  {order("9"), true, 0, order("10"), "SQSFIFOMessage", explain.Run, "nobody holds the name", 0},
		"held by the same":      {order("10"), false, 0, order("10"), "SQSFIFOMessage", explain.Refuse, "held by a delivery of the same event in f request 1", 0},
		"held by another":       {order("9"), false, 0, order("10"), "SQSFIFOMessage", explain.Refuse, "held by another event", 0},
		"the holder died":       {order("9"), false, 2 * time.Minute, order("10"), "SQSFIFOMessage", explain.Run, "the holder f request 1 died", 0},
		"another message":       {order("9"), false, 0, order("10"), "(SQSMessage)", explain.Unknown, "there is no such row", 0},
		"payload, completed":    {request("a"), true, 0, request("b"), "IdempotencyKey", explain.Refuse, "completed with another payload", 0},
		"payload, held":         {request("a"), false, 0, request("b"), "IdempotencyKey", explain.Refuse, "worked on with another payload", 0},
		"same payload":          {request("a"), true, 0, request("a"), "IdempotencyKey", explain.Skip, "its result is kept for replay", 0},
		"payload, holder died":  {request("a"), false, 2 * time.Minute, request("b"), "IdempotencyKey", explain.Run, "died", 0},
		"long event":            {sample(t, "s3-replication"), true, 0, sample(t, "s3-replication"), "S3Object", explain.Skip, "completed", 0},
		"long event, held":      {sample(t, "s3-replication"), false, 0, sample(t, "s3-replication"), "S3Object", explain.Refuse, "the same event", 0},
		"same payload and held": {request("a"), false, 0, request("a"), "IdempotencyKey", explain.Refuse, "held by a delivery of the same event", 0},
		"in a cooldown":         {order("9"), true, 0, order("10"), "SQSFIFOMessage", explain.Refuse, "HoldAtLeast", time.Hour},
		"after a cooldown":      {order("9"), true, 2 * time.Minute, order("10"), "SQSFIFOMessage", explain.Run, "nobody holds the name", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				locker, err := lock.New(store, &lock.Options{
					Namespace: "a/b", Lease: lock.FixedLease(time.Minute), HoldAtLeast: c.least, Logger: slog.New(slog.DiscardHandler), Holder: func(context.Context) string { return "f request 1" },
				})
				if err != nil {
					t.Fatal(err)
				}
				if c.before != nil {
					_, key := keyOf(t, explained(t, c.before), c.function)
					lk, err := locker.Acquire(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					if c.complete {
						err = lk.CompleteWith(lock.Completion{Result: []byte("result")})
					}
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(c.wait)
				}
				e := explained(t, c.now)
				expect.Must(t, e.Judge(t.Context(), store, "a/b", time.Now()))
				k, key := keyOf(t, e, c.function)
				if k.Verdict.Would != c.would || !strings.Contains(k.Verdict.Why, c.why) || !strings.HasPrefix(k.Verdict.Row, "a%2Fb/") {
					t.Errorf("got %+v, want %s: %s", *k.Verdict, c.would, c.why)
				}
				_, err = locker.Acquire(t.Context(), key)
				if got := outcome(err); got != c.would && (c.would != explain.Unknown || got != explain.Run) {
					t.Errorf("the engine says %s (%v), want %s", got, err, c.would)
				}
			})
		})
	}
}

func explained(t *testing.T, doc []byte) *explain.Event {
	t.Helper()
	e := expect.Value(explain.Explain(t.Context(), doc))(t)
	return e
}

// outcome returns what an error of the engine means for an event.
func outcome(err error) string {
	switch {
	case err == nil:
		return explain.Run
	case errors.Is(err, lock.ErrCompleted):
		return explain.Skip
	case errors.Is(err, lock.ErrHeld), errors.As(err, new(*lock.PayloadMismatchError)):
		return explain.Refuse
	}
	return err.Error()
}

// rows is a store whose rows are all alike.
type rows struct {
	driver.Inspector
	row driver.Row
	err error
}

func (r rows) Read(context.Context, string) (driver.Row, error) { return r.row, r.err }

func TestVerdictOfOtherRows(t *testing.T) {
	t.Parallel()
	e := explained(t, order("10"))
	expect.Must(t, e.Judge(t.Context(), rows{row: driver.Row{Newer: true}}, "", time.Now()))
	if v := e.Records[0].Keys[0].Verdict; v.Would != explain.Refuse || !strings.Contains(v.Why, "newer version") {
		t.Errorf("a newer row: %+v", v)
	}
	ahead := driver.Row{Stamp: time.Now().Add(time.Hour), Fence: 1} // of an owner whose clock is fast
	expect.Must(t, e.Judge(t.Context(), rows{row: ahead}, "", time.Now()))
	if v := e.Records[0].Keys[0].Verdict; v.Would != explain.Run {
		t.Errorf("a row with a later stamp: %+v", v)
	}
	other := driver.Row{Stamp: time.Now(), Memory: driver.Memory{
		Completed: []driver.CompletedEvent{{Event: e.Records[0].Keys[0].Event, Until: time.Now().Add(time.Hour)}}, Result: driver.Result{Event: "another"},
	}}
	expect.Must(t, e.Judge(t.Context(), rows{row: other}, "", time.Now()))
	if v := e.Records[0].Keys[0].Verdict; v.Would != explain.Skip || strings.Contains(v.Why, "replay") {
		t.Errorf("a row that keeps another event's result: %+v", v)
	}
	denied := errors.New("denied")
	if err := e.Judge(t.Context(), rows{err: denied}, "", time.Now()); !errors.Is(err, denied) {
		t.Errorf("error %v", err)
	}
	ignored := explained(t, []byte(`{"Service":"Amazon S3","Event":"s3:TestEvent"}`))
	if err := ignored.Judge(t.Context(), rows{err: denied}, "", time.Now()); err != nil {
		t.Errorf("the store is asked about nothing: %v", err)
	}
}

// TestResultOfAnotherPayload: a result is not given out if only one of the two
// keys has a payload, so explain does not promise it.
func TestResultOfAnotherPayload(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	locker := expect.Value(lock.New(store, &lock.Options{Namespace: "a/b", Logger: slog.New(slog.DiscardHandler)}))(t)
	e := explained(t, sample(t, "apigateway-http"))
	_, key := keyOf(t, e, "IdempotencyKey")
	key.Payload = ""
	lk := expect.Value(locker.Acquire(t.Context(), key))(t)
	expect.Must(t, lk.CompleteWith(lock.Completion{Result: []byte("result")}))
	expect.Must(t, e.Judge(t.Context(), store, "a/b", time.Now()))
	if k, _ := keyOf(t, e, "IdempotencyKey"); k.Verdict.Would != explain.Skip || strings.Contains(k.Verdict.Why, "replay") {
		t.Errorf("%+v", k.Verdict)
	}
}

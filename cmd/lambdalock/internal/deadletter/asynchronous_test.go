package deadletter

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	thumbnails = "arn:aws:lambda:eu-west-1:123456789012:function:thumbnails"
	noDLQ      = "-"
)

// failedEvent puts the event of an invocation that failed into the queue: with
// a function into its failure destination, and without one into a dead-letter
// queue.
func failedEvent(f *sqstest.SQS, id, function, event string) *sqstest.Message {
	body := event
	if function != "" {
		body = fmt.Sprintf(`{"version":"1.0","requestContext":{"requestId":%q,"functionArn":%q,"condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":%s,"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":null}`, id, function, event)
	}
	m := f.Put("dlq", "", "m-"+id, "", body)
	delete(m.Attributes, "DeadLetterQueueSourceArn")
	if function == "" {
		m.MessageAttributes = map[string]types.MessageAttributeValue{
			"RequestID":    {DataType: aws.String("String"), StringValue: &id},
			"ErrorCode":    {DataType: aws.String("Number"), StringValue: aws.String("200")},
			"ErrorMessage": {DataType: aws.String("String"), StringValue: aws.String("no such picture")},
		}
	}
	return m
}

// uploaded is the event of an upload of each key.
func uploaded(keys ...string) string {
	var records []string
	for _, key := range keys {
		records = append(records, fmt.Sprintf(`{ "eventSource":"aws:s3", "eventName":"ObjectCreated:Put", "s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":"0055"},"x":1.0e3}}`, key))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

// TestDecideAsynchronous: what becomes of the message of an asynchronous
// invocation that failed, and which function gets its event. O5
func TestDecideAsynchronous(t *testing.T) {
	t.Parallel()
	s3 := func(key, event string) lock.Key { return lock.Key{Name: "s3/b/" + key, Event: event} }
	latest := s3("k", "0055")
	latest.Order = "s0055"
	for name, c := range map[string]struct {
		from             string // function in the message; empty: a dead-letter queue
		event            string // by default an upload of k
		asked, queue     string // function, and its dead-letter queue, by default this one
		key, name, given string
		unknown          bool
		rows             []lock.Key // completed
		held, died       lock.Key
		action, to, why  string
	}{
		"failure destination":               {from: thumbnails + ":prod", asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod", why: "not remembered"},
		"failure destination, unqualified":  {from: thumbnails + ":$LATEST", asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":$LATEST"},
		"failure destination, of an alias":  {from: thumbnails + ":prod", asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"the alias that was asked for":      {from: thumbnails + ":prod", asked: thumbnails + ":prod", rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"another alias":                     {from: thumbnails + ":$LATEST", asked: thumbnails + ":prod", unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "an asynchronous invocation of " + thumbnails + ":$LATEST, and --function names thumbnails:prod"},
		"another function":                  {from: thumbnails + "2:prod", asked: thumbnails, unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "--function names thumbnails"},
		"another account":                   {from: strings.Replace(thumbnails, "1234", "4321", 1), asked: thumbnails, action: Leave, why: "--function names thumbnails"},
		"completed":                         {from: thumbnails, asked: thumbnails, rows: []lock.Key{s3("k", "0055")}, action: Delete, why: "completed at "},
		"held":                              {from: thumbnails, asked: thumbnails, held: s3("k", "0044"), action: Leave, why: "held by another event"},
		"interrupted":                       {from: thumbnails, asked: thumbnails, unknown: true, died: s3("k", "0055"), action: Leave, why: "OnInterrupted decides"}, // F19
		"stale":                             {from: thumbnails, asked: thumbnails, rows: []lock.Key{{Name: "s3/b/k", Event: "0066", Order: "s0066"}}, action: Leave, why: "stale"},
		"completed, with an order":          {from: thumbnails, asked: thumbnails, rows: []lock.Key{latest}, action: Delete, why: "completed"},
		"no row":                            {from: thumbnails, asked: thumbnails, action: Leave, why: "there is no row"},
		"no row, invoked nevertheless":      {from: thumbnails, asked: thumbnails, unknown: true, action: Invoke, to: thumbnails},
		"dead-letter queue":                 {asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails},
		"dead-letter queue, of an alias":    {asked: thumbnails + ":prod", rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"dead-letter queue, no function":    {rows: []lock.Key{s3("k", "0044")}, action: Leave, why: "give the --function whose dead-letter queue this is"},
		"dead-letter queue, completed":      {asked: thumbnails, rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"which function, completed":         {rows: []lock.Key{s3("k", "0055")}, unknown: true, action: Leave, why: "give the --function whose dead-letter queue this is"},
		"a function, completed":             {from: thumbnails + ":prod", rows: []lock.Key{s3("k", "0055")}, unknown: true, action: Leave, why: "give --function " + thumbnails + ":prod"},
		"another dead-letter queue":         {asked: thumbnails, queue: "arn:other", unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "the dead-letter queue of thumbnails is another one: arn:other"},
		"no dead-letter queue":              {asked: thumbnails, queue: noDLQ, unknown: true, action: Leave, why: "it has none"},
		"several records":                   {from: thumbnails, asked: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055"), s3("l", "0044")}, action: Invoke, to: thumbnails},
		"several records, completed":        {from: thumbnails, asked: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055"), s3("l", "0055")}, action: Delete},
		"several records, one without row":  {from: thumbnails, asked: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "there is no row"},
		"several records, one held":         {from: thumbnails, asked: thumbnails, event: uploaded("m", "k", "l"), unknown: true, rows: []lock.Key{s3("l", "0055")}, held: s3("k", "0044"), action: Leave, why: "held"},
		"several records, one event given":  {from: thumbnails, asked: thumbnails, event: uploaded("k", "l"), key: "S3Object", given: "{{(index .Records 0).s3.object.sequencer}}", rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "has several records"},
		"several records, one name given":   {from: thumbnails, asked: thumbnails, event: uploaded("k", "l"), name: "s3/b/{{(index .Records 0).s3.object.key}}", given: "0055", rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "has several records"},
		"one record, its name given":        {from: thumbnails, asked: thumbnails, event: uploaded("k"), name: "s3/b/{{(index .Records 0).s3.object.key}}", given: "0055", rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"key function":                      {from: thumbnails, asked: thumbnails, key: "S3Object", rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"key function of a record":          {from: thumbnails, asked: thumbnails, key: "S3LatestRecord", rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"key function of a queue":           {from: thumbnails, asked: thumbnails, key: "SQSMessage", rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "SQSMessage is not a key function for it"},
		"own key, completed":                {from: thumbnails, asked: thumbnails, event: placed, name: "{{.customer}}", given: "{{.order}}", rows: []lock.Key{{Name: "jane", Event: "12345678901234567890"}}, action: Delete},
		"own key, not completed":            {asked: thumbnails, event: placed, name: "{{.customer}}", given: "{{.order}}", rows: []lock.Key{{Name: "jane", Event: "1"}}, action: Invoke, to: thumbnails},
		"own key, id of the message":        {from: thumbnails, asked: thumbnails, event: placed, name: "{{.customer}}", rows: []lock.Key{{Name: "jane", Event: "m-1"}}, action: Leave, why: "give --event, too"},
		"event of no source":                {from: thumbnails, asked: thumbnails, event: `{"a":1}`, action: Leave, why: "not an event of a source that has a key function"},
		"event that is null":                {from: thumbnails, asked: thumbnails, event: `null`, unknown: true, action: Invoke, to: thumbnails},
		"text":                              {asked: thumbnails, event: `hello`, unknown: true, action: Leave, why: "its event is not JSON"},
		"event that is too large":           {from: thumbnails, asked: thumbnails, event: `"` + strings.Repeat("x", largestEvent-1) + `"`, unknown: true, action: Leave, why: "its event has 1048577 bytes, and an asynchronous invocation takes at most 1048576"},
		"as large as may be":                {from: thumbnails, asked: thumbnails, event: `"` + strings.Repeat("x", largestEvent-2) + `"`, unknown: true, action: Invoke, to: thumbnails},
		"a function that is not a function": {from: "thumbnails", unknown: true, action: Leave, why: "is not an asynchronous invocation that failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "dlq"), memstore.New()
				for _, k := range c.rows {
					rowtest.Complete(t, store, k, nil)
				}
				if c.held.Name != "" {
					rowtest.Acquire(t, store, "f", time.Hour, c.held)
				}
				if c.died.Name != "" {
					rowtest.Acquire(t, store, "f", time.Minute, c.died, func(o *lock.Options) { o.OnInterrupted = lock.FailInterrupted })
					time.Sleep(2 * time.Minute)
				}
				if c.event == "" {
					c.event = uploaded("k")
				}
				failedEvent(f, "1", c.from, c.event)
				j := &Judge{Store: store, Namespace: "orders", Function: c.key, Unknown: c.unknown, Functions: Functions{ARN: c.asked, DeadLetterQueue: sqstest.ARNPrefix + "dlq"}}
				switch c.queue {
				case "":
				case noDLQ:
					j.Functions.DeadLetterQueue = ""
				default:
					j.Functions.DeadLetterQueue = c.queue
				}
				if c.name != "" {
					j.Name, _ = Template(c.name)
				}
				if c.given != "" {
					j.Event, _ = Template(c.given)
				}
				q := expect.Value(open(t, f, "dlq"))(t)
				round, err := NewRun(q, j).Next(t.Context())
				if err != nil || len(round) != 1 {
					t.Fatalf("%+v, %v", round, err)
				}
				if d := round[0]; d.Action != c.action || !strings.Contains(d.Why, c.why) || d.To != c.to {
					t.Errorf("got %+v, want %s to %q because of %q", d, c.action, c.to, c.why)
				}
			})
		})
	}
}

// TestNowhere: a message of neither kind stays, and says what to do.
func TestNowhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"failure destination, Kinesis":  {`{"requestContext":{"functionArn":"f"},"KinesisBatchInfo":{"shardId":"1"}}`, "read them from the stream by their sequence numbers"},
		"failure destination, DynamoDB": {`{"requestContext":{"functionArn":"f"},"DDBStreamBatchInfo":{"shardId":"1"}}`, "read them from the stream by their sequence numbers"},
		"success destination":           {`{"requestContext":{"requestId":"1","functionArn":"` + thumbnails + `","condition":"Success"},"requestPayload":{}}`, "that succeeded: this is a destination for successes"},
		"no event":                      {`{"requestContext":{"requestId":"1","functionArn":"` + thumbnails + `","condition":"RetriesExhausted"}}`, "give --to"},
		"other case":                    {`{"requestContext":{"functionArn":"` + thumbnails + `"},"RequestPayload":{}}`, "give --to"},
		"HTTP":                          {`{"requestContext":{"http":{"method":"GET"}},"version":"2.0"}`, "give --to"},
		"another":                       {upload, "give --to"},
		"no JSON":                       {"hello", "give --to"},
		"no object":                     {`[{"requestPayload":{}}]`, "give --to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sqstest.New(t, "dlq")
			delete(f.Put("dlq", "", "m1", "", c.body).Attributes, "DeadLetterQueueSourceArn")
			for _, unknown := range []bool{false, true} {
				q := expect.Value(open(t, f, "dlq"))(t)
				round, err := NewRun(q, &Judge{Store: memstore.New(), Unknown: unknown}).Next(t.Context())
				if err != nil || len(round) != 1 || round[0].Action != Leave || !strings.Contains(round[0].Why, c.want) {
					t.Errorf("%+v, %v", round, err)
				}
				_, _ = q.Release(t.Context())
			}
		})
	}
}

package keyfuncs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var uploaded = func() events.S3Event {
	var r events.S3EventRecord
	r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.Sequencer = "pictures", "holiday+2026/cat.png", "0055AED6DCD90281E5"
	return events.S3Event{Records: []events.S3EventRecord{r}}
}()

var received = events.SQSEvent{Records: []events.SQSMessage{{MessageId: "059f36b4", Body: "{}"}}}

func show(k lock.Key, err error) {
	fmt.Printf("name %q, event %q, order %q, error %v\n", k.Name, k.Event, k.Order, err)
}

func ExampleS3Object() {
	show(keyfuncs.S3Object(context.Background(), uploaded))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

func ExampleS3Latest() {
	show(keyfuncs.S3Latest(context.Background(), uploaded))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "s0055AED6DCD90281E5", error <nil>
}

func ExampleS3Record() {
	show(keyfuncs.S3Record(context.Background(), uploaded.Records[0]))
	// Output: name "s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

func ExampleSQSMessage() {
	show(keyfuncs.SQSMessage(context.Background(), received))
	// Output: name "sqs/059f36b4", event "059f36b4", order "", error <nil>
}

func ExampleSQSRecord() {
	show(keyfuncs.SQSRecord(context.Background(), received.Records[0]))
	// Output: name "sqs/059f36b4", event "059f36b4", order "", error <nil>
}

func ExampleStatic() {
	show(keyfuncs.Static("nightly-report")(context.Background(), nil))
	// Output: name "nightly-report", event "", order "", error <nil>
}

func ExamplePrefix() {
	show(keyfuncs.Prefix("thumbnails", keyfuncs.S3Object)(context.Background(), uploaded))
	// Output: name "thumbnails/s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

func ExampleHash() {
	k, err := keyfuncs.Hash(keyfuncs.S3Object)(context.Background(), uploaded)
	fmt.Println(len(k.Name), len(k.Event), err)
	// Output: 43 43 <nil>
}

func ExampleSQSFIFO() {
	e := events.SQSEvent{Records: []events.SQSMessage{{
		EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
		Attributes:     map[string]string{"MessageGroupId": "jane", "SequenceNumber": "18849496460467696128"},
	}}}
	show(keyfuncs.SQSFIFO(context.Background(), e))
	// Output: name "sqs/arn:aws:sqs:eu-central-1:123456789012:orders.fifo/jane", event "18849496460467696128", order "02018849496460467696128", error <nil>
}

func ExampleSchedule() {
	show(keyfuncs.Schedule(context.Background(), events.EventBridgeEvent{
		DetailType: "Scheduled Event", Time: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC),
		Resources: []string{"arn:aws:events:eu-central-1:123456789012:rule/nightly"},
	}))
	// Output: name "schedule/arn:aws:events:eu-central-1:123456789012:rule%2Fnightly", event "2026-11-21T03:00:00Z", order "", error <nil>
}

// An order message locks its customer; the message id tells duplicates.
func ExampleSQSBody() {
	type order struct {
		Customer string `json:"customer"`
	}
	perCustomer := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: o.Customer}, nil }
	show(keyfuncs.SQSBody(perCustomer)(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: `{"customer": "jane"}`}))
	// Output: name "jane", event "059f36b4", order "", error <nil>
}

func ExampleOnce() {
	show(keyfuncs.Once(keyfuncs.JSON("order.id"))(context.Background(), json.RawMessage(`{"order": {"id": 17}}`)))
	// Output: name "17", event "17", order "", error <nil>
}

// The customer is locked, and each order is handled once.
func ExampleEventFrom() {
	key := keyfuncs.EventFrom(keyfuncs.JSON("customer"), keyfuncs.JSON("order"))
	show(key(context.Background(), json.RawMessage(`{"customer": "jane", "order": 17}`)))
	// Output: name "\"jane\"", event "17", order "", error <nil>
}

// Only the newest version of a document matters.
func ExampleOrderFrom() {
	key := keyfuncs.OrderFrom(keyfuncs.JSON("document"), keyfuncs.JSON("version"))
	show(key(context.Background(), json.RawMessage(`{"document": "terms", "version": 12}`)))
	// Output: name "\"terms\"", event "", order "00212", error <nil>
}

// The tenant is part of what is locked.
func ExampleJoin() {
	key := keyfuncs.Join(keyfuncs.JSON("tenant"), keyfuncs.JSON("order"))
	show(key(context.Background(), json.RawMessage(`{"tenant": "acme", "order": 17}`)))
	// Output: name "join/%22acme%22/17", event "", order "", error <nil>
}

// A change of the notification's shape is refused until somebody has looked at it.
func ExampleVersion() {
	key := keyfuncs.Version(keyfuncs.S3Record, func(r events.S3EventRecord) string { return r.EventVersion }, "2.")
	show(key(context.Background(), events.S3EventRecord{EventVersion: "3.0"}))
	// Output: name "", event "", order "", error lambdalock: no key: version is "3.0", and the key function is for ["2."]
}

// A key function of your own decides what is locked and what a duplicate is.
func ExampleFunc() {
	type order struct{ Customer, ID string }
	perCustomer := func(_ context.Context, o order) (lock.Key, error) {
		return lock.Key{Name: "customer/" + o.Customer, Event: o.ID}, nil
	}
	show(perCustomer(context.Background(), order{"jane", "7"}))
	// Output: name "customer/jane", event "7", order "", error <nil>
}

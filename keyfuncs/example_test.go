package keyfuncs_test

import (
	"context"
	"fmt"

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

// A key function of your own decides what is locked and what a duplicate is.
func ExampleFunc() {
	type order struct{ Customer, ID string }
	perCustomer := func(_ context.Context, o order) (lock.Key, error) {
		return lock.Key{Name: "customer/" + o.Customer, Event: o.ID}, nil
	}
	show(perCustomer(context.Background(), order{"jane", "7"}))
	// Output: name "customer/jane", event "7", order "", error <nil>
}

package keyfuncs_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func show(k lock.Key, err error) {
	fmt.Printf("name %q, event %q, order %q, error %v\n", k.Name, k.Event, k.Order, err)
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

func ExampleStatic() {
	show(keyfuncs.Static("nightly-report")(context.Background(), nil))
	// Output: name "nightly-report", event "", order "", error <nil>
}

// Each order is handled once, and never twice at the same time.
func ExampleByField() {
	type order struct{ Customer, ID string }
	perOrder := keyfuncs.Once(keyfuncs.ByField(func(o order) string { return "order/" + o.ID }))
	show(perOrder(context.Background(), order{"jane", "7"}))
	// Output: name "order/7", event "order/7", order "", error <nil>
}

func ExamplePrefix() {
	key := keyfuncs.Prefix(keyfuncs.S3Object, "thumbnails")
	show(key(context.Background(), uploaded))
	// Output: name "thumbnails/s3/pictures/holiday 2026/cat.png", event "0055AED6DCD90281E5", order "", error <nil>
}

// Producers that give a deduplication id may send again after the five minutes
// for which SQS recognises it.
func ExampleOnce() {
	id := keyfuncs.ByField(func(m events.SQSMessage) string { return m.Attributes["MessageDeduplicationId"] })
	key := keyfuncs.Once(keyfuncs.Join(keyfuncs.SQSFIFOMessage, id))
	show(key(context.Background(), fifoMessage))
	// Output: name "join/sqs%2Farn:aws:sqs:eu-central-1:123456789012:orders.fifo%2Fjane/order-17", event "join/sqs%2Farn:aws:sqs:eu-central-1:123456789012:orders.fifo%2Fjane/order-17", order "", error <nil>
}

// Only one record of a key is worked on at a time, and each record is handled
// once.
func ExampleEventFrom() {
	byKey := keyfuncs.ByField(func(r events.KafkaRecord) string { return "kafka/" + r.Topic + "/" + r.Key })
	key := keyfuncs.EventFrom(byKey, keyfuncs.KafkaRecord)
	show(key(context.Background(), events.KafkaRecord{Topic: "orders", Partition: 2, Offset: 15, Key: "amFuZQ=="}))
	// Output: name "kafka/orders/amFuZQ==", event "event/kafka%2Forders%2F2%2F15%2F-62135596800000/2%2F15%2F-62135596800000", order "", error <nil>
}

// Only the newest version of a document matters.
func ExampleOrderFrom() {
	type change struct{ Document, Version string }
	document := keyfuncs.ByField(func(c change) string { return c.Document })
	version := keyfuncs.ByField(func(c change) string { return c.Version })
	show(keyfuncs.OrderFrom(document, version)(context.Background(), change{"terms", "12"}))
	// Output: name "terms", event "", order "00212", error <nil>
}

// The tenant is part of what is locked.
func ExampleJoin() {
	type order struct{ Tenant, ID string }
	tenant := keyfuncs.ByField(func(o order) string { return o.Tenant })
	id := keyfuncs.ByField(func(o order) string { return o.ID })
	show(keyfuncs.Join(tenant, id)(context.Background(), order{"acme", "17"}))
	// Output: name "join/acme/17", event "", order "", error <nil>
}

func ExampleHash() {
	k, err := keyfuncs.Hash(keyfuncs.S3Object)(context.Background(), uploaded)
	fmt.Println(len(k.Name), len(k.Event), err)
	// Output: 43 43 <nil>
}

func ExampleHMAC() {
	secret := []byte("at least 16 random bytes") // from Secrets Manager, say
	k, err := keyfuncs.HMAC(keyfuncs.S3Object, secret)(context.Background(), uploaded)
	fmt.Println(len(k.Name), len(k.Event), err)
	// Output: 43 43 <nil>
}

// The event source mapping has a batch size of 1.
func ExampleSingle() {
	key := keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage)
	show(key(context.Background(), events.SQSEvent{Records: []events.SQSMessage{message}}))
	show(key(context.Background(), events.SQSEvent{Records: []events.SQSMessage{message, message}}))
	// Output:
	// name "sqs/059f36b4", event "059f36b4", order "", error <nil>
	// name "", event "", order "", error lambdalock: no key: Records holds 2 records, and one lock cannot stand for them all: wrap a handler of one message with middleware.EachSQSMessage, or set the batch size to 1
}

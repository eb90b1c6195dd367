package jmespath_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

func show(k lock.Key, err error) {
	fmt.Printf("name %q, event %q, order %q, error %v\n", k.Name, k.Event, k.Order, err)
}

func ExamplePayload() {
	show(jmespath.Payload(context.Background(), json.RawMessage(`{"job": "report", "day": 17}`)))
	show(jmespath.Payload(context.Background(), json.RawMessage(`{"day":17.0,"job":"report"}`)))
	// Output:
	// name "payload/ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", event "ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", order "", error <nil>
	// name "payload/ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", event "ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", order "", error <nil>
}

func ExamplePath() {
	key := jmespath.Path("[tenant, order.id]")
	show(key(context.Background(), json.RawMessage(`{"tenant": "acme", "order": {"id": 17}}`)))
	// Output: name "[\"acme\",17]", event "", order "", error <nil>
}

// Each message is handled once, and messages about one order never at the same
// time.
func ExampleKey_message() {
	key := keyfuncs.SQSBody(jmespath.Path("order.id"))
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: `{"order": {"id": 17}}`}))
	// Output: name "17", event "059f36b4", order "", error <nil>
}

// Each order is handled once. Without Once every event would be handled, one
// after the other.
func ExampleKey_once() {
	key := keyfuncs.Once(jmespath.Path("order.id"))
	show(key(context.Background(), json.RawMessage(`{"order": {"id": 17}}`)))
	// Output: name "17", event "17", order "", error <nil>
}

// The customer is locked, and each order is handled once.
func ExampleKey_eventFrom() {
	key := keyfuncs.EventFrom(jmespath.Path("customer"), jmespath.Path("order"))
	show(key(context.Background(), json.RawMessage(`{"customer": "jane", "order": 17}`)))
	// Output: name "\"jane\"", event "17", order "", error <nil>
}

// Only the newest version of a document matters.
func ExampleKey_orderFrom() {
	key := keyfuncs.OrderFrom(jmespath.Path("document"), jmespath.Path("version"))
	show(key(context.Background(), json.RawMessage(`{"document": "terms", "version": 12}`)))
	// Output: name "\"terms\"", event "", order "00212", error <nil>
}

// The tenant is part of what is locked.
func ExampleKey_join() {
	key := keyfuncs.Join(jmespath.Path("tenant"), jmespath.Path("order"))
	show(key(context.Background(), json.RawMessage(`{"tenant": "acme", "order": 17}`)))
	// Output: name "join/%22acme%22/17", event "", order "", error <nil>
}

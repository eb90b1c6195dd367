package keyfuncs_test

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

func ExamplePayload() {
	key := keyfuncs.Payload()
	show(key(context.Background(), json.RawMessage(`{"job": "report", "day": 17}`)))
	show(key(context.Background(), json.RawMessage(`{"day":17.0,"job":"report"}`)))
	// Output:
	// name "payload/ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", event "ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", order "", error <nil>
	// name "payload/ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", event "ypQZrEPJCFFbaeo9qH2crjQqlusd8_q-fW--Mf6wKwc", order "", error <nil>
}

func ExampleJSON() {
	key := keyfuncs.JSON("[tenant, order.id]")
	show(key(context.Background(), json.RawMessage(`{"tenant": "acme", "order": {"id": 17}}`)))
	// Output: name "[\"acme\",17]", event "", order "", error <nil>
}

// Each message is handled once, and messages about one order never at the same time.
func ExampleJSON_message() {
	key := keyfuncs.SQSBody(keyfuncs.JSON("order.id"))
	show(key(context.Background(), events.SQSMessage{MessageId: "059f36b4", Body: `{"order": {"id": 17}}`}))
	// Output: name "17", event "059f36b4", order "", error <nil>
}

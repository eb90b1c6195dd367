package keyfuncs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
)

func ExampleSESRecord() {
	var r events.SimpleEmailRecord
	r.SES.Mail.MessageID, r.SES.Receipt.Recipients = "d6iitobk75", []string{"orders@example.com"}
	show(keyfuncs.SESRecord(context.Background(), r))
	// Output: name "ses/d6iitobk75/fFTy8KUsZINkDEfmDTlnblH2gHasD2241fltvIySVx0", event "d6iitobk75", order "", error <nil>
}

func ExampleCodeCommitRecord() {
	key := keyfuncs.Single[events.CodeCommitEvent](keyfuncs.CodeCommitRecord)
	show(key(context.Background(), events.CodeCommitEvent{Records: []events.CodeCommitRecord{{
		EventSourceARN: "arn:aws:codecommit:eu-central-1:123456789012:shop", EventID: "31ade2c7", EventPartNumber: 1,
		EventTime: events.CodeCommitEventTime(time.UnixMilli(1795249183000)),
	}}}))
	// Output: name "codecommit/arn:aws:codecommit:eu-central-1:123456789012:shop/31ade2c7%2F1%2F1795249183000", event "31ade2c7/1/1795249183000", order "", error <nil>
}

func ExampleDocumentDBRecord() {
	var e awsevents.DocumentDBEvent
	err := json.Unmarshal([]byte(`{
		"eventSource": "aws:docdb",
		"eventSourceArn": "arn:aws:rds:eu-central-1:123456789012:cluster:shop",
		"events": [{"event": {
			"_id": {"_data": "0163eeb6e7"}, "operationType": "insert", "ns": {"db": "shop", "coll": "orders"}, "documentKey": {"_id": 1017}
		}}]
	}`), &e)
	if err != nil {
		fmt.Println(err)
	}
	show(keyfuncs.DocumentDBRecord(context.Background(), e.Events[0]))
	// Output: name "documentdb/arn:aws:rds:eu-central-1:123456789012:cluster:shop/shop/orders/%7B%22_id%22:1017%7D", event "0163eeb6e7", order "", error <nil>
}

// ordered is what a subscriber with the transformer WITH_METADATA sends.
var ordered = awsevents.CustomBusEvent{
	Data:           json.RawMessage(`{"source": "shop", "id": "0c1f7c2e", "detail-type": "OrderPlaced", "detail": {"order": 17}}`),
	SystemMetadata: awsevents.CustomBusSystemMetadata{EventID: "7d5a3c7e", EventGroupID: "jane"},
}

func ExampleCustomBusEvent() {
	show(keyfuncs.CustomBusEvent(context.Background(), ordered))
	// Output: name "custombus/7d5a3c7e", event "7d5a3c7e", order "", error <nil>
}

func ExampleCustomBusGroup() {
	show(keyfuncs.CustomBusGroup(context.Background(), ordered))
	// Output: name "custombusgroup/jane", event "7d5a3c7e", order "", error <nil>
}

// The event was published with PutEvents, and its detail has the order.
func ExampleCustomBusData() {
	byOrder := keyfuncs.ByField(func(o struct{ Order json.Number }) string { return "order/" + o.Order.String() })
	key := keyfuncs.CustomBusData(keyfuncs.EventBridgeDetail(byOrder))
	show(key(context.Background(), ordered))
	// Output: name "order/17", event "0c1f7c2e", order "", error <nil>
}

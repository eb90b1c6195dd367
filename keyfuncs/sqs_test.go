package keyfuncs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var (
	sqsMessage     = keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage)
	sqsFIFOMessage = keyfuncs.Single[events.SQSEvent](keyfuncs.SQSFIFOMessage)
)

// byDeduplication is for producers that give a deduplication id and may send
// again after five minutes.
var (
	byDeduplication = keyfuncs.Once(keyfuncs.Join(
		keyfuncs.SQSFIFOMessage,
		keyfuncs.ByField(func(m events.SQSMessage) string { return m.Attributes["MessageDeduplicationId"] }),
	))
	sqsDeduplicated = keyfuncs.Single[events.SQSEvent](byDeduplication)
)

func TestSQSMessage(t *testing.T) {
	t.Parallel()
	id := "059f36b4-87a3-44ab-83d2-661975830a7d"
	gives(t, "sqs.json", sqsMessage, lock.Key{Name: "sqs/" + id, Event: id})
	refuses(t, "sqs.json", sqsMessage, map[string]func(*events.SQSEvent){
		"Records[0].messageId": func(e *events.SQSEvent) { e.Records[0].MessageId = "" },
	})
}

func TestSQSFIFOMessage(t *testing.T) {
	t.Parallel()
	gives(t, "sqs-fifo.json", sqsFIFOMessage, lock.Key{
		Name: "sqs/arn:aws:sqs:us-east-2:123456789012:orders.fifo/customer%2Fjane", Event: "18849496460467696128", Order: "02018849496460467696128",
	})
	set := func(name, value string) func(*events.SQSEvent) {
		return func(e *events.SQSEvent) { e.Records[0].Attributes[name] = value }
	}
	for _, key := range []keyfuncs.Func[events.SQSEvent]{sqsFIFOMessage, sqsDeduplicated} {
		refuses(t, "sqs-fifo.json", key, map[string]func(*events.SQSEvent){
			"Records[0].attributes.MessageGroupId": set("MessageGroupId", ""),
			"Records[0].attributes.SequenceNumber": set("SequenceNumber", ""),
			"Records[0].eventSourceARN":            func(e *events.SQSEvent) { e.Records[0].EventSourceARN = "" },
		})
		refuses(t, "sqs-fifo.json", key, map[string]func(*events.SQSEvent){
			"Records[0].attributes.SequenceNumber": set("SequenceNumber", "12x"),
		})
	}
	_, err := changed(t, "sqs-fifo.json", sqsFIFOMessage, set("SequenceNumber", ""))
	refused(t, "an emulator", err, "Records[0].attributes.SequenceNumber", "although the queue is a FIFO queue")
	_, err = changed(t, "sqs.json", sqsFIFOMessage, nil)
	refused(t, "a standard queue", err, "Records[0].attributes.MessageGroupId", "this is not a message of a FIFO queue; use SQSMessage")
	order := func(number string) string {
		k, err := changed(t, "sqs-fifo.json", sqsFIFOMessage, set("SequenceNumber", number))
		if err != nil {
			t.Error(err)
		}
		return k.Order
	}
	rising := []string{"0", "9", "10", "99", "100", "18849496460467696127", "18849496460467696128", "118849496460467696128"}
	for i := range rising[1:] {
		if order(rising[i]) >= order(rising[i+1]) {
			t.Errorf("%s orders not before %s", rising[i], rising[i+1])
		}
	}
}

func TestSQSDeduplicated(t *testing.T) {
	t.Parallel()
	name := "join/sqs%2Farn:aws:sqs:us-east-2:123456789012:orders.fifo%2Fcustomer%252Fjane/order-17"
	gives(t, "sqs-fifo.json", sqsDeduplicated, lock.Key{Name: name, Event: name})
	sentAgain, err := changed(t, "sqs-fifo.json", sqsDeduplicated, func(e *events.SQSEvent) {
		e.Records[0].MessageId, e.Records[0].Attributes["SequenceNumber"] = "another", "18849496460467696129"
	})
	if sentAgain != (lock.Key{Name: name, Event: name}) || err != nil {
		t.Errorf("sent again: %+v, %v", sentAgain, err)
	}
	apart(t, "sqs-fifo.json", sqsDeduplicated, map[string]func(*events.SQSEvent){
		"another id":    func(e *events.SQSEvent) { e.Records[0].Attributes["MessageDeduplicationId"] = "order-18" },
		"another group": func(e *events.SQSEvent) { e.Records[0].Attributes["MessageGroupId"] = "joe" },
		"another queue": func(e *events.SQSEvent) { e.Records[0].EventSourceARN += "2" },
	})
	refuses(t, "sqs-fifo.json", sqsDeduplicated, map[string]func(*events.SQSEvent){
		"Records[0]": func(e *events.SQSEvent) { e.Records[0].Attributes["MessageDeduplicationId"] = "" },
	})
}

type shopOrder struct {
	Customer string `json:"customer"`
	Order    int    `json:"order"`
}

func byCustomer(_ context.Context, o shopOrder) (lock.Key, error) {
	return lock.Key{Name: o.Customer}, nil
}

// TestBodyTakesTheMessageID: a key without an Event gets the id of its
// envelope.
func TestBodyTakesTheMessageID(t *testing.T) {
	t.Parallel()
	message := load[events.SQSEvent](t, "sqs-fifo.json").Records[0]
	for name, c := range map[string]struct {
		inner keyfuncs.Func[shopOrder]
		want  lock.Key
	}{
		"no event": {byCustomer, lock.Key{Name: "jane", Event: message.MessageId}},
		"an event": {keyfuncs.Once(byCustomer), lock.Key{Name: "jane", Event: "jane"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if k, err := keyfuncs.SQSBody(c.inner)(t.Context(), message); k != c.want || err != nil {
				t.Errorf("SQSBody: %+v, %v; want %+v", k, err, c.want)
			}
			record := events.SNSEventRecord{SNS: events.SNSEntity{MessageID: message.MessageId, Message: message.Body}}
			if k, err := keyfuncs.SNSBody(c.inner)(t.Context(), record); k != c.want || err != nil {
				t.Errorf("SNSBody: %+v, %v; want %+v", k, err, c.want)
			}
			bridged := events.EventBridgeEvent{ID: message.MessageId, Detail: []byte(message.Body)}
			if k, err := keyfuncs.EventBridgeDetail(c.inner)(t.Context(), bridged); k != c.want || err != nil {
				t.Errorf("EventBridgeDetail: %+v, %v; want %+v", k, err, c.want)
			}
		})
	}
}

// TestDifferentBodiesStayDifferent: decoding gives different things the same
// value only if nobody could tell them apart.
func TestDifferentBodiesStayDifferent(t *testing.T) { // F28
	t.Parallel()
	untyped := func(_ context.Context, body any) (lock.Key, error) {
		return lock.Key{Name: fmt.Sprint(body.(map[string]any)["order"])}, nil
	}
	key := inQueue(keyfuncs.SQSBody(untyped))
	for name, want := range map[string]string{
		`{"order":12345678901234567890}`: "12345678901234567890",
		`{"order":12345678901234567891}`: "12345678901234567891",
		`{"order":1017} `:                "1017",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if k, err := key(t.Context(), name); k.Name != want || err != nil {
				t.Errorf("%+v, %v; want the name %s", k, err, want)
			}
		})
	}
	for name, body := range map[string]string{"not UTF-8": "{\"order\":\"\xff\"}", "null": "null", "null and spaces": "\r\n\tnull "} {
		_, err := key(t.Context(), body)
		refused(t, name, err, "body", name[:4])
	}
}

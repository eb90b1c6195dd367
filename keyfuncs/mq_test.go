package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// refused checks that err names the field at fault and says what helps.
func refused(t *testing.T, name string, err error, field, says string) {
	t.Helper()
	if e, ok := err.(*lock.KeyError); !ok || e.Field != field || !strings.Contains(e.Error(), says) {
		t.Errorf("%s: %v, want a KeyError of %s that says %q", name, err, field, says)
	}
}

func TestActiveMQ(t *testing.T) {
	t.Parallel()
	e := load[events.ActiveMQEvent](t, "activemq.json")
	id := "ID:b-7f1c9d54-2a63-4b0e-9c58-3e4d6a1b8f20-1.mq.eu-central-1.amazonaws.com-41235-1795248930123-2:7:1:1:42"
	want := lock.Key{Name: "activemq/orders/" + id, Event: id}
	if got, err := keyfuncs.ActiveMQ(t.Context(), e); got != want || err != nil {
		t.Errorf("ActiveMQ: %+v, %v; want %+v", got, err, want)
	}
	m := e.Messages[0]
	m.Redelivered, m.BrokerOutTime, m.Timestamp = true, 1, 2
	if got, err := keyfuncs.ActiveMQRecord(t.Context(), m); got != want || err != nil {
		t.Errorf("another delivery: %+v, %v; want %+v", got, err, want)
	}
	m.Destination.PhysicalName = "invoices"
	if got, _ := keyfuncs.ActiveMQRecord(t.Context(), m); got.Name == want.Name {
		t.Errorf("the copy in another queue has the same name %q", got.Name)
	}
	m.MessageID += "3"
	if got, _ := keyfuncs.ActiveMQRecord(t.Context(), m); got.Event == want.Event {
		t.Errorf("another message has the same event %q", got.Event)
	}
}

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	e := load[events.RabbitMQEvent](t, "rabbitmq.json")
	want := lock.Key{Name: "rabbitmq/parcels::%2F/shop%2Fweb/parcel-2048", Event: "parcel-2048"}
	if got, err := keyfuncs.RabbitMQ(t.Context(), e); got != want || err != nil {
		t.Errorf("RabbitMQ: %+v, %v; want %+v", got, err, want)
	}
	m := e.MessagesByQueue["parcels::/"][0]
	m.Redelivered = true
	want.Name = "rabbitmq/shop%2Fweb/parcel-2048"
	if got, err := keyfuncs.RabbitMQRecord(t.Context(), m); got != want || err != nil {
		t.Errorf("RabbitMQRecord: %+v, %v; want %+v", got, err, want)
	}
	want.Name = "rabbitmq//parcel-2048"
	m.BasicProperties.AppID = nil
	if got, err := keyfuncs.RabbitMQRecord(t.Context(), m); got != want || err != nil {
		t.Errorf("without app-id: %+v, %v; want %+v", got, err, want)
	}
}

func TestRabbitMQTellsApart(t *testing.T) {
	t.Parallel()
	seen := map[lock.Key]string{}
	for _, c := range [][3]string{{"q", "a", "1"}, {"q", "a", "2"}, {"q", "b", "1"}, {"r", "a", "1"}, {"q", "a/1", "1"}, {"q/a", "", "1"}, {"", "q", "1"}} {
		var m events.RabbitMQMessage
		m.BasicProperties.AppID, m.BasicProperties.MessageID = &c[1], &c[2]
		k, err := keyfuncs.RabbitMQ(t.Context(), events.RabbitMQEvent{MessagesByQueue: map[string][]events.RabbitMQMessage{"empty": {}, c[0]: {m}}})
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%q and %q both give %+v, %v", c, other, k, err)
		}
		seen[k] = strings.Join(c[:], " ")
	}
}

func TestMQErrors(t *testing.T) {
	t.Parallel()
	active := func(change func(*events.ActiveMQEvent)) error {
		e := load[events.ActiveMQEvent](t, "activemq.json")
		change(&e)
		_, err := keyfuncs.ActiveMQ(t.Context(), e)
		return err
	}
	rabbit := func(change func(*events.RabbitMQEvent)) error {
		e := load[events.RabbitMQEvent](t, "rabbitmq.json")
		change(&e)
		_, err := keyfuncs.RabbitMQ(t.Context(), e)
		return err
	}
	refused(t, "no message", active(func(e *events.ActiveMQEvent) { e.Messages = nil }), "messages", "empty")
	refused(t, "several messages", active(func(e *events.ActiveMQEvent) { e.Messages = append(e.Messages, e.Messages[0]) }), "messages", "set the batch size to 1")
	refused(t, "no id", active(func(e *events.ActiveMQEvent) { e.Messages[0].MessageID = "" }), "messages[0].messageID", "missing")
	refused(t, "no queue", active(func(e *events.ActiveMQEvent) { e.Messages[0].Destination.PhysicalName = "" }), "messages[0].destination.physicalName", "missing")

	refused(t, "no queues", rabbit(func(e *events.RabbitMQEvent) { e.MessagesByQueue = nil }), "rmqMessagesByQueue", "empty")
	refused(t, "messages in two queues", rabbit(func(e *events.RabbitMQEvent) {
		e.MessagesByQueue["returns::/"] = e.MessagesByQueue["parcels::/"]
	}), "rmqMessagesByQueue", "holds 2 records")
	refused(t, "message-id null", rabbit(func(e *events.RabbitMQEvent) {
		e.MessagesByQueue["parcels::/"][0].BasicProperties.MessageID = nil
	}), "rmqMessagesByQueue[0].basicProperties.messageId", "publisher set message-id")
	refused(t, "message-id empty", rabbit(func(e *events.RabbitMQEvent) {
		e.MessagesByQueue["parcels::/"][0].BasicProperties.MessageID = new(string)
	}), "rmqMessagesByQueue[0].basicProperties.messageId", "key function of your own")
}

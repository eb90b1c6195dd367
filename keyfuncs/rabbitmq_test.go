package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "rabbitmq/parcels::%2F/shop%2Fweb/parcel-2048", Event: "parcel-2048"}
	gives(t, "rabbitmq.json", keyfuncs.RabbitMQEvent, want)
	first := func(change func(*events.RabbitMQMessage)) func(*events.RabbitMQEvent) {
		return func(e *events.RabbitMQEvent) { change(&e.MessagesByQueue["parcels::/"][0]) }
	}
	again, err := changed(t, "rabbitmq.json", keyfuncs.RabbitMQEvent, first(func(m *events.RabbitMQMessage) { m.Redelivered = true }))
	if again != want || err != nil {
		t.Errorf("another delivery: %+v, %v; want %+v", again, err, want)
	}
	want.Name = "rabbitmq/parcels::%2F//parcel-2048"
	nobody, err := changed(t, "rabbitmq.json", keyfuncs.RabbitMQEvent, first(func(m *events.RabbitMQMessage) { m.BasicProperties.AppID = nil }))
	if nobody != want || err != nil {
		t.Errorf("without app-id: %+v, %v; want %+v", nobody, err, want)
	}
}

func TestRabbitMQTellsApart(t *testing.T) {
	t.Parallel()
	keys := map[string]func() (lock.Key, error){}
	for _, c := range [][3]string{{"q", "a", "1"}, {"q", "a", "2"}, {"q", "b", "1"}, {"r", "a", "1"}, {"q", "a/1", "1"}, {"q/a", "", "1"}, {"", "q", "1"}} {
		keys[strings.Join(c[:], " ")] = func() (lock.Key, error) {
			var m events.RabbitMQMessage
			m.BasicProperties.AppID, m.BasicProperties.MessageID = &c[1], &c[2]
			return keyfuncs.RabbitMQEvent(t.Context(), events.RabbitMQEvent{MessagesByQueue: map[string][]events.RabbitMQMessage{"empty": {}, c[0]: {m}}})
		}
	}
	distinct(t, keys)
}

func TestRabbitMQErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(*events.RabbitMQEvent)
		field, says string
	}{
		"no queues": {func(e *events.RabbitMQEvent) { e.MessagesByQueue = nil }, "rmqMessagesByQueue", "empty"},
		"messages in two queues": {func(e *events.RabbitMQEvent) {
			e.MessagesByQueue["returns::/"] = e.MessagesByQueue["parcels::/"]
		}, "rmqMessagesByQueue", "holds 2 records"},
		"message-id null": {func(e *events.RabbitMQEvent) {
			e.MessagesByQueue["parcels::/"][0].BasicProperties.MessageID = nil
		}, "rmqMessagesByQueue[0].basicProperties.messageId", "publisher set message-id"},
		"message-id empty": {func(e *events.RabbitMQEvent) {
			e.MessagesByQueue["parcels::/"][0].BasicProperties.MessageID = new(string)
		}, "rmqMessagesByQueue[0].basicProperties.messageId", "key function of your own"},
	} {
		_, err := changed(t, "rabbitmq.json", keyfuncs.RabbitMQEvent, c.change)
		refused(t, name, err, c.field, c.says)
	}
}

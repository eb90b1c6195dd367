package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func TestActiveMQ(t *testing.T) {
	t.Parallel()
	id := "ID:b-7f1c9d54-2a63-4b0e-9c58-3e4d6a1b8f20-1.mq.eu-central-1.amazonaws.com-41235-1795248930123-2:7:1:1:42"
	want := lock.Key{Name: "activemq/orders/" + id, Event: id}
	gives(t, "activemq.json", keyfuncs.ActiveMQEvent, want)
	again, err := changed(t, "activemq.json", keyfuncs.ActiveMQEvent, func(e *events.ActiveMQEvent) {
		m := &e.Messages[0]
		e.EventSource = "aws:amq" // AWS shows both
		m.Redelivered, m.BrokerOutTime, m.Timestamp = true, 1, 2
	})
	if again != want || err != nil {
		t.Errorf("another delivery: %+v, %v; want %+v", again, err, want)
	}
	apart(t, "activemq.json", keyfuncs.ActiveMQEvent, map[string]func(*events.ActiveMQEvent){
		"the copy in another queue": func(e *events.ActiveMQEvent) { e.Messages[0].Destination.PhysicalName = "invoices" },
		"another message":           func(e *events.ActiveMQEvent) { e.Messages[0].MessageID += "3" },
	})
}

func TestActiveMQErrors(t *testing.T) {
	t.Parallel()
	refuses(t, "activemq.json", keyfuncs.ActiveMQEvent, map[string]func(*events.ActiveMQEvent){
		"messages":                             func(e *events.ActiveMQEvent) { e.Messages = nil },
		"messages[0].messageID":                func(e *events.ActiveMQEvent) { e.Messages[0].MessageID = "" },
		"messages[0].destination.physicalName": func(e *events.ActiveMQEvent) { e.Messages[0].Destination.PhysicalName = "" },
	})
	_, err := changed(t, "activemq.json", keyfuncs.ActiveMQEvent, func(e *events.ActiveMQEvent) { e.Messages = append(e.Messages, e.Messages[0]) })
	refused(t, "several messages", err, "messages", "set the batch size to 1")
}

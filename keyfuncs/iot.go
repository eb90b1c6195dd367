package keyfuncs

import (
	"context"

	"github.com/lambdalock/lambdalock/lock"
)

// IoTMessage is what the SQL of an IoT rule must add to the payload. Embed it in your
// event type, or fill it from there.
type IoTMessage struct {
	Topic   string `json:"topic"`
	TraceID string `json:"traceId"`
}

// IoTRule handles each MQTT message of an IoT rule once. The events of a rule are
// what its SQL selects, so it must select topic and trace id, and of finds them:
//
//	SELECT *, topic() AS topic, traceid() AS traceId FROM 'sensors/#'
//
// Name is topic and trace id, Event the trace id, which Lambda keeps in its retries:
// distinct messages never wait for each other. The topic is there for people who
// read the table, and for a message that is republished to another topic. One
// message that two rules give to the same function counts as one: let of add the
// name of the rule to the topic if it does not. No Order: Lambda is invoked
// asynchronously.
//
// A device that publishes again because it got no PUBACK (QoS 1) makes a new message
// with a new trace id. Against that, let the device put an id into the payload, and
// let of return it as the TraceID; so too for messages that do not come over MQTT,
// which have none.
//
// IoTRule panics if of is nil.
//
// Sources: https://docs.aws.amazon.com/iot/latest/developerguide/iot-sql-functions.html#iot-sql-function-traceid,
// https://docs.aws.amazon.com/iot/latest/developerguide/lambda-rule-action.html.
func IoTRule[E any](of func(E) IoTMessage) Func[E] {
	if of == nil {
		panic("lambdalock: IoTRule(nil): give it the function that finds topic and trace id in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		m := of(e)
		switch "" {
		case m.Topic:
			return lock.Key{}, &lock.KeyError{Field: "topic", Reason: "is missing: add topic() AS topic to the SQL of the rule"}
		case m.TraceID:
			return lock.Key{}, &lock.KeyError{Field: "traceId", Reason: "is missing: add traceid() AS traceId to the SQL of the rule; a message that does not come over MQTT has none and needs an id in its payload"}
		}
		return once("iot", m.TraceID, m.Topic), nil
	}
}

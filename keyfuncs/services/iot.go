package services

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// IoTRule handles each MQTT message of an IoT rule once. The SQL of a rule
// decides what its events contain, so it must select topic and trace id, and
// find returns them:
//
//	SELECT *, topic() AS topic, traceid() AS traceId FROM 'sensors/#'
//
// Name is topic and trace id, Event the trace id, which Lambda keeps in its
// retries: distinct messages never wait for each other. The topic is there for
// people who read the table, and for a message that is republished to another
// topic. If two rules give one message to the same function, it counts as one:
// let find add the name of the rule to the topic if it must not. No Order:
// Lambda is invoked asynchronously.
//
// A device that publishes again because it got no PUBACK (QoS 1) makes a new
// message with a new trace id. To recognise it, let the device put an id into
// the payload, and let find return that id as the TraceID. Do the same for
// messages that do not come over MQTT, because they have no trace id.
//
// IoTRule panics if find is nil.
//
// Sources: https://docs.aws.amazon.com/iot/latest/developerguide/iot-sql-functions.html#iot-sql-function-traceid,
// https://docs.aws.amazon.com/iot/latest/developerguide/lambda-rule-action.html.
func IoTRule[E any](find func(E) awsevents.IoTMessage) keyfuncs.Func[E] {
	if find == nil {
		panic("lambdalock: services.IoTRule(nil): give it the function that finds topic and trace id in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		m := find(e)
		if m.Topic == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "topic", Reason: "is missing: add topic() AS topic to the SQL of the rule"}
		}
		if m.TraceID == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "traceId", Reason: "is missing: add traceid() AS traceId to the SQL of the rule; a message that does not come over MQTT has none and needs an id in its payload"}
		}
		return keyparts.Once("iot", m.TraceID, m.Topic), nil
	}
}

package services

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// IoTRule handles each MQTT message of an IoT rule once. The SQL of the rule
// selects topic and trace id, and find returns them:
//
//	SELECT *, topic() AS topic, traceid() AS traceId FROM 'sensors/#'
//
// Name is topic and trace id, Event the trace id, which Lambda keeps in its
// retries. No Order. If two rules give one message to the same function, it
// counts as one, unless find adds the rule to the topic. Where a device may
// publish again, or messages do not come over MQTT, let find return an id from
// the payload as the TraceID. IoTRule panics if find is nil.
func IoTRule[E any](find func(E) awsevents.IoTMessage) keyfuncs.Func[E] {
	// https://docs.aws.amazon.com/iot/latest/developerguide/iot-sql-functions.html#iot-sql-function-traceid
	// https://docs.aws.amazon.com/iot/latest/developerguide/lambda-rule-action.html
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

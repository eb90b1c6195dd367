package middleware

import (
	"reflect"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const day = 24 * time.Hour

// rememberBySource holds the default of [Remember] for the sources that can
// deliver an event again after more than package lock's default of 24 h: as
// long as a queue or a topic keeps it by default. It goes by the type of the
// event or record.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html (MessageRetentionPeriod)
// https://kafka.apache.org/documentation/#brokerconfigs_log.retention.hours
var rememberBySource = map[reflect.Type]time.Duration{
	reflect.TypeFor[events.SQSEvent]():    4 * day,
	reflect.TypeFor[events.SQSMessage]():  4 * day,
	reflect.TypeFor[events.KafkaEvent]():  7 * day,
	reflect.TypeFor[events.KafkaRecord](): 7 * day,
}

// rememberFrom fills in the default of [Remember] for events, or records, of a
// type.
func (c *config) rememberFrom(event reflect.Type) {
	if c.engine.Remember == 0 {
		c.engine.Remember = rememberBySource[event] // zero: package lock's default
	}
}

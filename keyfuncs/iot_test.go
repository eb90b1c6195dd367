package keyfuncs_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

type reading struct {
	Celsius float64 `json:"celsius"`
	awsevents.IoTMessage
}

var byMessage = services.IoTRule(func(e reading) awsevents.IoTMessage { return e.IoTMessage })

func TestIoTRuleFrom(t *testing.T) {
	t.Parallel()
	gives(t, "iot.json", byMessage, lock.Key{
		Name:  "iot/sensors%2Fkitchen%2Ftemperature/0d9c8b7a-6f5e-4d3c-8b2a-190f8e7d6c5b",
		Event: "0d9c8b7a-6f5e-4d3c-8b2a-190f8e7d6c5b",
	})
	keys := map[string]func() (lock.Key, error){}
	for _, m := range []awsevents.IoTMessage{{Topic: "a", TraceID: "1"}, {Topic: "a", TraceID: "2"}, {Topic: "b", TraceID: "1"}, {Topic: "a/1", TraceID: "1"}, {Topic: "a", TraceID: "1/1"}} {
		keys[m.Topic+" and "+m.TraceID] = func() (lock.Key, error) { return byMessage(t.Context(), reading{IoTMessage: m}) }
	}
	distinct(t, keys)
}

func TestIoTRuleFromErrors(t *testing.T) {
	t.Parallel()
	_, err := byMessage(t.Context(), reading{IoTMessage: awsevents.IoTMessage{TraceID: "1"}})
	refused(t, "no topic", err, "topic", "topic() AS topic")
	_, err = byMessage(t.Context(), reading{IoTMessage: awsevents.IoTMessage{Topic: "a"}})
	refused(t, "no trace id", err, "traceId", "traceid() AS traceId")
}

package keyfuncs_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

type reading struct {
	Celsius float64 `json:"celsius"`
	keyfuncs.IoTMessage
}

var byMessage = keyfuncs.IoTRule(func(e reading) keyfuncs.IoTMessage { return e.IoTMessage })

func TestIoTRule(t *testing.T) {
	t.Parallel()
	e := load[reading](t, "iot.json")
	want := lock.Key{
		Name:  "iot/sensors%2Fkitchen%2Ftemperature/0d9c8b7a-6f5e-4d3c-8b2a-190f8e7d6c5b",
		Event: "0d9c8b7a-6f5e-4d3c-8b2a-190f8e7d6c5b",
	}
	if got, err := byMessage(t.Context(), e); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	seen := map[lock.Key]string{}
	for _, m := range []keyfuncs.IoTMessage{{Topic: "a", TraceID: "1"}, {Topic: "a", TraceID: "2"}, {Topic: "b", TraceID: "1"}, {Topic: "a/1", TraceID: "1"}, {Topic: "a", TraceID: "1/1"}} {
		k, err := byMessage(t.Context(), reading{IoTMessage: m})
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%+v and %s both give %+v, %v", m, other, k, err)
		}
		seen[k] = m.Topic + " " + m.TraceID
	}
}

func TestIoTRuleErrors(t *testing.T) {
	t.Parallel()
	_, err := byMessage(t.Context(), reading{IoTMessage: keyfuncs.IoTMessage{TraceID: "1"}})
	refused(t, "no topic", err, "topic", "topic() AS topic")
	_, err = byMessage(t.Context(), reading{IoTMessage: keyfuncs.IoTMessage{Topic: "a"}})
	refused(t, "no trace id", err, "traceId", "traceid() AS traceId")
}

package keyfuncs_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func TestEventBridgeEvent(t *testing.T) {
	t.Parallel()
	id := "6a7e8feb-b491-4cf7-a9f1-bf3703467718"
	want := lock.Key{Name: "eventbridge/com.example.shop/" + id, Event: id}
	body := keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.EventBridgeEvent))
	gives(t, "eventbridge.json", keyfuncs.EventBridgeEvent, want)
	gives(t, "sqs-eventbridge.json", body, want)
	refuses(t, "eventbridge.json", keyfuncs.EventBridgeEvent, map[string]func(*events.EventBridgeEvent){
		"id":     func(e *events.EventBridgeEvent) { e.ID = "" },
		"source": func(e *events.EventBridgeEvent) { e.Source = "" },
	})
	refuses(t, "sqs-fifo.json", body, map[string]func(*events.SQSEvent){"Records[0].body.source": nil})
}

func TestEventBridgeDetail(t *testing.T) {
	t.Parallel()
	key := keyfuncs.EventBridgeDetail(byCustomer)
	gives(t, "eventbridge.json", key, lock.Key{Name: "jane", Event: "6a7e8feb-b491-4cf7-a9f1-bf3703467718"})
	refuses(t, "eventbridge.json", key, map[string]func(*events.EventBridgeEvent){
		"detail": func(e *events.EventBridgeEvent) { e.Detail = json.RawMessage(`[]`) },
		"id":     func(e *events.EventBridgeEvent) { e.ID = "" }, // by an input transformer
	})
	refuses(t, "eventbridge.json", key, map[string]func(*events.EventBridgeEvent){
		"detail": func(e *events.EventBridgeEvent) { e.Detail = nil },
	})
	once, err := changed(t, "eventbridge.json", keyfuncs.EventBridgeDetail(keyfuncs.Once(byCustomer)), func(e *events.EventBridgeEvent) { e.ID = "" })
	if err != nil || once.Event != "jane" {
		t.Errorf("an Event from the detail, without an id: %+v, %v", once, err)
	}
}

func TestEventBridgeSchedule(t *testing.T) {
	t.Parallel()
	gives(t, "eventbridge-schedule.json", keyfuncs.EventBridgeSchedule, lock.Key{Name: "schedule/arn:aws:events:eu-central-1:123456789012:rule%2Fnightly", Event: "2026-11-21T03:00:00Z"})
	gives(t, "eventbridge-scheduler.json", keyfuncs.EventBridgeSchedule, lock.Key{Name: "schedule/arn:aws:scheduler:eu-central-1:123456789012:schedule%2Fdefault%2Fnightly", Event: "2026-11-21T03:00:00Z"})
	again, err := changed(t, "eventbridge-schedule.json", keyfuncs.EventBridgeSchedule, func(e *events.EventBridgeEvent) { e.ID = "another" })
	if err != nil || again.Event != "2026-11-21T03:00:00Z" {
		t.Errorf("a second trigger for the same time: %+v, %v", again, err)
	}
	refuses(t, "eventbridge.json", keyfuncs.EventBridgeSchedule, map[string]func(*events.EventBridgeEvent){"detail-type": nil})
	refuses(t, "eventbridge-schedule.json", keyfuncs.EventBridgeSchedule, map[string]func(*events.EventBridgeEvent){
		"resources": func(e *events.EventBridgeEvent) { e.Resources = nil },
		"time":      func(e *events.EventBridgeEvent) { e.Time = time.Time{} },
	})
	refuses(t, "eventbridge-schedule.json", keyfuncs.EventBridgeSchedule, map[string]func(*events.EventBridgeEvent){
		"resources": func(e *events.EventBridgeEvent) { e.Resources = []string{""} },
	})
}

package keyfuncs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

type busOrder struct {
	Order    int    `json:"order"`
	Customer string `json:"customer"`
}

var byBusCustomer = keyfuncs.ByField(func(o busOrder) string { return o.Customer })

// first takes the key of the first event of an array.
func first(key keyfuncs.Func[awsevents.CustomBusEvent]) keyfuncs.Func[awsevents.CustomBusEvents] {
	return func(ctx context.Context, all awsevents.CustomBusEvents) (lock.Key, error) { return key(ctx, all[0]) }
}

func TestCustomBusEvent(t *testing.T) {
	t.Parallel()
	const id, id2 = "7d5a3c7e-8f3d-4d0a-b1c1-3c9f2f0a4e21", "9e6b1d52-02a4-4b7c-9c55-84b7d0b5c002"
	for file, want := range map[string]string{"custombus.json": id, "custombus-single.json": id2} {
		gives(t, file, first(keyfuncs.CustomBusEvent), lock.Key{Name: "custombus/" + want, Event: want})
		gives(t, file, first(keyfuncs.CustomBusGroup), lock.Key{Name: "custombusgroup/jane", Event: want})
	}
	detail := keyfuncs.CustomBusData(keyfuncs.EventBridgeDetail(byBusCustomer))
	gives(t, "custombus.json", first(detail), lock.Key{Name: "jane", Event: "0c1f7c2e-4f0b-4a55-9a3e-5d3f6c1f9a01"})
	gives(t, "custombus-single.json", first(keyfuncs.CustomBusData(byBusCustomer)), lock.Key{Name: "jane", Event: id2})
	// The id in the envelope is the sender's with PutRawEvents, and may come twice.
	bySource := keyfuncs.CustomBusData(keyfuncs.ByField(func(e events.EventBridgeEvent) string { return e.Source }))
	gives(t, "custombus.json", first(bySource), lock.Key{Name: "com.example.orders", Event: id})
	refuses(t, "custombus.json", first(keyfuncs.CustomBusGroup), map[string]func(*awsevents.CustomBusEvents){
		"SystemMetadata.aws:EventId":  func(e *awsevents.CustomBusEvents) { (*e)[0].SystemMetadata.EventID = "" },
		"SystemMetadata.EventGroupId": func(e *awsevents.CustomBusEvents) { (*e)[0].SystemMetadata.EventGroupID = "" },
	})
	refuses(t, "custombus.json", first(detail), map[string]func(*awsevents.CustomBusEvents){
		"Data": func(e *awsevents.CustomBusEvents) { (*e)[0].Data = []byte(`"text"`) },
	})
}

// TestCustomBusRaw: without metadata, an envelope has the id that it has
// elsewhere, and nothing else has one.
func TestCustomBusRaw(t *testing.T) { // F26
	t.Parallel()
	envelope := text(t, "eventbridge.json")
	alone := expect.Value(keyfuncs.EventBridgeEvent(t.Context(), load[events.EventBridgeEvent](t, "eventbridge.json")))(t)
	for _, doc := range []string{envelope, "[" + envelope + "]", " \n[" + envelope + "]"} {
		e := decoded[awsevents.CustomBusEvents](t, doc)
		if k, err := keyfuncs.CustomBusEvent(t.Context(), e[0]); len(e) != 1 || k != alone || err != nil {
			t.Errorf("%+v, %v, want %+v", k, err, alone)
		}
		byDetail := keyfuncs.CustomBusData(keyfuncs.EventBridgeDetail(keyfuncs.ByField(func(struct{}) string { return "n" })))
		bySource := keyfuncs.CustomBusData(keyfuncs.ByField(func(e events.EventBridgeEvent) string { return e.Source }))
		for _, key := range []keyfuncs.Func[awsevents.CustomBusEvent]{byDetail, bySource} {
			if k, err := key(t.Context(), e[0]); k.Event != alone.Event || err != nil {
				t.Errorf("%+v, %v", k, err)
			}
		}
	}
	broken := decoded[awsevents.CustomBusEvents](t, `[{"id":"1","source":"shop","detail-type":"Order","detail":{},"time":"noon"}]`)[0]
	_, err := keyfuncs.CustomBusEvent(t.Context(), broken)
	refused(t, "a time that is none", err, "event", "is not an EventBridge event")
	// Data may have members of the same names, which are not metadata.
	for _, bare := range []string{
		`{"order":17,"customer":"jane"}`, `{"id":"1","customer":"jane"}`, `{"Data":{},"SystemMetadata":{"aws:EventId":"1"},"customer":"jane"}`,
		`{"Data":{},"SystemMetadata":"none","customer":"jane"}`, `17`, `"text"`, `null`, `[1]`,
	} {
		e := decoded[awsevents.CustomBusEvents](t, "["+bare+"]")[0]
		for name, key := range map[string]keyfuncs.Func[awsevents.CustomBusEvent]{"event": keyfuncs.CustomBusEvent, "group": keyfuncs.CustomBusGroup} {
			_, err := key(t.Context(), e)
			refused(t, name+" "+bare, err, "SystemMetadata", "WITH_METADATA")
		}
		k, err := keyfuncs.CustomBusData(byBusCustomer)(t.Context(), e)
		if strings.Contains(bare, "jane") && !strings.Contains(bare, `"Data"`) {
			refused(t, "data "+bare, err, "SystemMetadata", "WITH_METADATA")
		} else if err == nil && k.Name != "" {
			t.Errorf("%s: %+v", bare, k)
		}
		if k, err := keyfuncs.CustomBusData(keyfuncs.Once(byBusCustomer))(t.Context(), e); k.Name == "jane" && (k.Event != "jane" || err != nil) {
			t.Errorf("%s: %+v, %v", bare, k, err)
		}
	}
}

// TestWithoutAnID: an envelope without an id changes nothing of what a key
// function says that finds no key.
func TestWithoutAnID(t *testing.T) {
	t.Parallel()
	down := errors.New("the database is down")
	failing := func(context.Context, busOrder) (lock.Key, error) { return lock.Key{Name: "n"}, down }
	for name, use := range map[string]func(keyfuncs.Func[busOrder]) (lock.Key, error){
		"EventBridgeDetail": func(inner keyfuncs.Func[busOrder]) (lock.Key, error) {
			return keyfuncs.Optional(keyfuncs.EventBridgeDetail(inner))(t.Context(), events.EventBridgeEvent{Source: "shop", Detail: []byte(`{}`)})
		},
		"CustomBusData": func(inner keyfuncs.Func[busOrder]) (lock.Key, error) {
			return keyfuncs.Optional(keyfuncs.CustomBusData(inner))(t.Context(), awsevents.CustomBusEvent{Data: []byte(`{}`)})
		},
	} {
		if k, err := use(byBusCustomer); err != keyfuncs.ErrNoLock {
			t.Errorf("%s, no customer: %+v, %v; want ErrNoLock", name, k, err)
		}
		if k, err := use(failing); err != down {
			t.Errorf("%s, an error: %+v, %v", name, k, err)
		}
	}
}

// fromHistory is an event that a subscriber reads from what the bus retains.
func fromHistory(e *awsevents.CustomBusEvents) { (*e)[0].SystemMetadata.DeliveryType = "REPLAY" }

// another is a later event of the same group.
func another(e *awsevents.CustomBusEvents) {
	(*e)[0].SystemMetadata.EventID += "2"
	(*e)[0].SystemMetadata.SequenceNumber = "9" // as if the number of digits could change
}

// TestCustomBusOrder: sequence numbers compare as numbers where somebody asks
// for an Order.
func TestCustomBusOrder(t *testing.T) {
	t.Parallel()
	number := func(e awsevents.CustomBusEvent) string { return e.SystemMetadata.SequenceNumber }
	key := keyfuncs.OrderFrom(keyfuncs.CustomBusGroup, keyfuncs.ByField(number))
	var last lock.Key
	for _, n := range []string{"9", "10", "9999999999999999999", "10000000000000012000", "10000000000000013000"} {
		k, err := changed(t, "custombus.json", first(key), func(e *awsevents.CustomBusEvents) { (*e)[0].SystemMetadata.SequenceNumber = n })
		if err != nil || k.Order <= last.Order || last.Name != "" && k.Name != last.Name {
			t.Errorf("%s: %+v after %+v, %v", n, k, last, err)
		}
		last = k
	}
}

package middleware

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// begin decides whether the handler runs for the keys that key finds in event.
// If it does, the answer is nil. payload is what the handler was given.
func begin[A any](ctx context.Context, w *wrapper, key keySource[A], event A, payload any) (handlerRun, *answer) {
	keys, err := key(ctx, event)
	gateway := w.http.gatewayOf(payload) // before the lock is taken, because it may panic
	for _, k := range keys.each() {
		w.ofTenant(ctx, k)
	}
	if err == nil {
		err = w.http.addCaller(ctx, &keys, gateway, payload)
	}
	run, instead := w.enter(ctx, keys, err)
	run.gateway = gateway
	return run, instead
}

// addCaller makes who sent a request the Payload of every key that has an Event
// and no Payload: otherwise the stored answer would be replayed to everybody
// who knows the key. payload is what the handler was given.
func (h *overHTTP) addCaller(ctx context.Context, keys *keySet, gateway eventkind.Gateway, payload any) error {
	if gateway == eventkind.NoGateway && !h.byValue {
		return nil
	}
	for _, k := range keys.each() {
		if k.Event == "" || k.Payload != "" {
			continue
		}
		by, err := callerOf(ctx, payload, gateway)
		if err != nil {
			return err
		}
		k.Payload = by
	}
	return nil
}

// callerOf returns what [keyfuncs.PayloadFrom] takes from [keyfuncs.Caller],
// for a payload of any type. Where that is a type of the user's, the handler
// knows the caller by no more than is in its JSON form. Without a gateway it
// returns "" if nothing in the payload can name the caller.
func callerOf(ctx context.Context, payload any, gateway eventkind.Gateway) (string, error) {
	if _, ok := eventkind.RequestIn(payload); ok {
		return fingerprint(keyfuncs.Caller(ctx, payload))
	}
	doc, ok := payload.([]byte)
	if !ok {
		doc, _ = json.Marshal(payload) // what has no JSON form came from no gateway
	}
	shown := eventkind.GatewayOf(doc)
	doc, ok = callerFields(doc)
	if !ok && gateway == eventkind.NoGateway {
		return "", nil
	}
	var all []string
	for _, c := range []struct {
		of eventkind.Gateway
		as func(context.Context, []byte) (lock.Key, error)
	}{
		{eventkind.Payload2, callerAs[events.APIGatewayV2HTTPRequest]},         // also of a Function URL
		{eventkind.Payload1, callerAs[events.APIGatewayWebsocketProxyRequest]}, // also of a REST API
		{eventkind.LoadBalancer, callerAs[events.ALBTargetGroupRequest]},
	} {
		if shown != eventkind.NoGateway && shown != c.of {
			continue
		}
		by, err := fingerprint(c.as(ctx, doc))
		if err != nil {
			return "", err
		}
		if !slices.Contains(all, by) {
			all = append(all, by)
		}
	}
	if len(all) > 1 { // the fields mean something else to each gateway
		return fmt.Sprintf("%q", all), nil
	}
	return all[0], nil
}

func fingerprint(caller lock.Key, err error) (string, error) {
	return cmp.Or(caller.Payload, caller.Name), err
}

// callerFields returns the fields of a request in which the caller is, and
// whether there are any.
func callerFields(doc []byte) ([]byte, bool) {
	var r struct {
		Headers           json.RawMessage `json:"headers,omitempty"`
		MultiValueHeaders json.RawMessage `json:"multiValueHeaders,omitempty"`
		Cookies           json.RawMessage `json:"cookies,omitempty"`
		RequestContext    json.RawMessage `json:"requestContext,omitempty"`
	}
	_ = json.Unmarshal(doc, &r) // other JSON has none of them
	found, _ := json.Marshal(r) // it came from JSON
	return found, string(found) != "{}"
}

func callerAs[E any](ctx context.Context, doc []byte) (lock.Key, error) {
	var e E
	if err := json.Unmarshal(doc, &e); err != nil {
		return lock.Key{}, &lock.NoKeyError{
			Field: "the event", Reason: "is not that of a gateway, so the callers cannot be told apart: name the caller in the Payload of the key, with keyfuncs.PayloadFrom(key, caller), or say with keyfuncs.Anonymous as caller that everybody may have the answer", Err: err,
		}
	}
	return keyfuncs.Caller(ctx, e)
}

package middleware

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// request is an event that may come from a client over HTTP. It implements
// exchange.
type request struct {
	*overHTTP
	payload any               // what the handler was given
	gateway eventkind.Gateway // that waits for the response; NoGateway: none
	nobody  bool              // nothing in the key tells the sender from others
	unread  bool              // something may, but not in the form of a gateway
	counts  bool              // if only the result shows whether it completes the event: that matters
}

// ask begins a request. payload is what the handler was given, and keysOf
// computes its keys.
func (h *overHTTP) ask(ctx context.Context, payload any, keysOf func(context.Context) (keySet, error)) (exchange, keySet, error) {
	var asker invocation.Asker
	keys, err := keysOf(invocation.WithAsker(ctx, &asker))
	r := &request{overHTTP: h, payload: payload, gateway: h.gatewayOf(payload)} // before the lock is taken, because it may panic
	r.counts = (h.byValue || h.maySayAgain) && slices.ContainsFunc(keys.each(), func(k *lock.Key) bool { return k.Event != "" || k.Order != "" })
	switch {
	case r.gateway != eventkind.NoGateway && keys.missing(err) && isOptions(payload):
		err = keyfuncs.ErrNoLock
	case err == nil:
		err = r.addCaller(ctx, &keys, payload, &asker)
	}
	return r, keys, err
}

// missing reports whether a key function found no key, for which it returned
// err.
func (s *keySet) missing(err error) bool {
	if err != nil {
		return !errors.Is(keyError(err), keyfuncs.ErrIgnore)
	}
	return s.Name == "" || slices.ContainsFunc(s.all, func(k lock.Key) bool { return k.Name == "" })
}

// isOptions reports whether a request has the method OPTIONS. Browsers send
// such a request before one to another origin, and give it no header of the
// page's, so it has no key.
// https://fetch.spec.whatwg.org/#cors-preflight-fetch
func isOptions(payload any) bool {
	if found, ok := eventkind.RequestIn(payload); ok {
		payload = found
	}
	return eventkind.MethodOf(documentOf(payload)) == http.MethodOptions
}

// addCaller makes the sender of a request the Payload of every key that has an
// Event and no Payload: otherwise the stored answer would be replayed to
// everybody who knows the key. payload is what the handler was given. asker has
// what the key functions found out about whether their keys tell the sender
// from others; if they have not looked, a Payload of their own does not.
func (r *request) addCaller(ctx context.Context, keys *keySet, payload any, asker *invocation.Asker) error {
	if r.gateway == eventkind.NoGateway && !r.byValue {
		return nil
	}
	var without []*lock.Key
	own := false
	for _, k := range keys.each() {
		switch {
		case k.Event == "": // it has no duplicates
		case k.Payload == "":
			without = append(without, k)
		default:
			own = true
		}
	}
	known, looked := asker.Known()
	if len(without) == 0 {
		r.nobody = !known || !looked // credentials that nobody compares may be anything
		return nil
	}
	by, inRequest, err := callerOf(ctx, payload, r.gateway)
	if errors.Is(err, errUnread) {
		r.unread, err = true, nil
	}
	if by == "" && r.namesCaller {
		by = "nobody" // no Payload would equal that of everybody
	}
	for _, k := range without {
		k.Payload = by
	}
	r.nobody = !known || !inRequest || own // of several keys, one is enough for the answer
	return err
}

const nameCaller = "name the caller in the Payload of the key, with keyfuncs.PayloadFrom(key, caller), or say with keyfuncs.Anonymous as caller that everybody may have the answer"

// errUnread refuses no event, which may be anything. It says why a result that
// turns out to be a response is not stored.
var errUnread = errors.New("lambdalock: the result is a response, and the headers, cookies or requestContext of the event are not those of a gateway, so the callers cannot be told apart and it is not stored for Replay: " + nameCaller)

// callerOf returns what [keyfuncs.PayloadFrom] takes from [keyfuncs.Caller],
// for a payload of any type, and whether that tells the sender from others.
// Where it is a type of the user's, the handler knows the caller by no more
// than is in its JSON form. Without a gateway it returns "" if nothing in the
// payload can name the caller, and errUnread with what it could read if the
// payload is not like a request.
func callerOf(ctx context.Context, payload any, gateway eventkind.Gateway) (by string, known bool, err error) {
	if _, ok := eventkind.RequestIn(payload); ok {
		return fingerprint(ctx, payload, keyfuncs.Caller)
	}
	doc := documentOf(payload)
	shown := eventkind.GatewayOf(doc)
	doc, ok := callerFields(doc)
	if !ok && gateway == eventkind.NoGateway {
		return "", false, nil
	}
	maybeOther := gateway == eventkind.NoGateway && shown == eventkind.NoGateway && !hasHeaderLists(doc)
	var all []string
	var unread error
	for _, c := range []struct {
		of eventkind.Gateway
		as func(context.Context, *json.Decoder) (lock.Key, error)
	}{
		{eventkind.Payload2, callerAs[events.APIGatewayV2HTTPRequest]},         // also of a Function URL
		{eventkind.Payload1, callerAs[events.APIGatewayWebsocketProxyRequest]}, // also of a REST API
		{eventkind.LoadBalancer, callerAs[events.ALBTargetGroupRequest]},
	} {
		if shown != eventkind.NoGateway && shown != c.of {
			continue
		}
		by, asked, err := fingerprint(ctx, json.NewDecoder(bytes.NewReader(doc)), c.as)
		if err != nil && isJSON(payload) { // perhaps because of a number that Go rounds
			d := json.NewDecoder(bytes.NewReader(doc))
			d.UseNumber()
			by, asked, err = fingerprint(ctx, d, c.as)
		}
		switch {
		case maybeOther && errors.As(err, new(*json.UnmarshalTypeError)):
			unread = errUnread
		case err != nil:
			return "", false, err
		}
		known = known || asked
		if !slices.Contains(all, by) {
			all = append(all, by)
		}
	}
	if len(all) > 1 { // the fields mean something else to each gateway
		return fmt.Sprintf("%q", all), known, unread
	}
	return all[0], known, unread
}

// isJSON reports whether a payload is JSON as the gateway sent it, with all
// digits of its numbers.
func isJSON(payload any) bool {
	switch payload.(type) {
	case []byte, json.RawMessage:
		return true
	}
	return false
}

func fingerprint[E any](ctx context.Context, event E, caller func(context.Context, E) (lock.Key, error)) (by string, known bool, err error) {
	var asker invocation.Asker
	k, err := caller(invocation.WithAsker(ctx, &asker), event)
	known, _ = asker.Known()
	return cmp.Or(k.Payload, k.Name), known, err
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

// hasHeaderLists reports whether the headers are an object of lists of texts,
// and perhaps of texts, as VPC Lattice sends them. With texts alone an event
// may be anything.
// https://docs.aws.amazon.com/vpc-lattice/latest/ug/lambda-functions.html
func hasHeaderLists(doc []byte) bool {
	var r struct {
		Headers map[string]json.RawMessage `json:"headers"`
	}
	_ = json.Unmarshal(doc, &r) // headers of another form leave none
	lists := false
	for _, values := range r.Headers {
		isText := json.Unmarshal(values, new(string)) == nil // or null
		if !isText && json.Unmarshal(values, new([]string)) != nil {
			return false
		}
		lists = lists || !isText
	}
	return lists
}

// callerAs returns the caller by what can be read of the fields as those of an
// E, and an error if that is not all.
func callerAs[E any](ctx context.Context, fields *json.Decoder) (lock.Key, error) {
	var e E
	unread := fields.Decode(&e) // goes on after a field of another type
	k, err := keyfuncs.Caller(eventkind.WithOnlyCaller(ctx), e)
	if err == nil && unread != nil {
		err = &lock.NoKeyError{
			Field: "the event", Reason: "is not that of a gateway, so the callers cannot be told apart: " + nameCaller, Err: unread,
		}
	}
	return k, err
}

package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// reply returns what the caller gets instead of a, which is what the policies
// say: over HTTP the first response again or a problem document, and whatever
// RespondWith makes of an error. result is the handler's result type.
func (r *handlerRun) reply(a *answer, result reflect.Type) *answer {
	overHTTP := r.gateway != eventkind.NoGateway
	if overHTTP && r.w.replays(a) {
		a = r.replayed(a, result)
	}
	if a.action == fail && r.w.respondWith != nil {
		v, err := r.w.respondWith(r.ctx, a.err)
		switch {
		case err == nil:
			return &answer{action: respond, response: v}
		case err != a.err:
			return &answer{action: fail, err: err}
		}
	}
	if !overHTTP || !r.w.http.responds {
		return a
	}
	switch p := problemOf(a.err); {
	case a.action == fail && p != nil && !r.w.failsByChoice(a.err):
		return r.respond(p.response(r), result)
	case a.action == skip && a.err == nil: // nothing to work on
		return r.respond(newResponse(r.gateway, http.StatusNoContent, nil, ""), result)
	}
	return a
}

// replays reports whether a is the answer to a completed request whose first
// response is to be replayed, which is the default over HTTP.
func (w *wrapper) replays(a *answer) bool {
	return errors.Is(a.err, lock.ErrCompleted) && (!w.completed.chosen || w.completed.action == replay)
}

// failsByChoice reports whether OnHeld(Fail) or OnCompleted(Fail) asks for this
// error.
func (w *wrapper) failsByChoice(err error) bool {
	return w.held.chosen && errors.Is(err, lock.ErrHeld) ||
		w.completed.chosen && w.completed.action == fail && errors.Is(err, lock.ErrCompleted)
}

// replayed returns the first response again, marked as such. Without a stored
// response that fits the handler it fails: a zero response would look like an
// answer.
func (r *handlerRun) replayed(a *answer, result reflect.Type) *answer {
	failed := &answer{action: fail, err: a.err}
	if a.result == nil {
		return failed
	}
	doc := a.result
	if r.w.http.responds {
		var ok bool
		if doc, ok = markReplayed(doc, r.gateway); !ok {
			return failed
		}
	}
	v, err := r.decode(doc, result)
	if err != nil {
		r.reportDropped(err)
		return failed
	}
	return &answer{action: respond, response: v}
}

// respond returns a response in the handler's result type.
func (r *handlerRun) respond(response *response, result reflect.Type) *answer {
	response.Streamed = streamKindOf(result, r.gateway)
	v, err := r.decode(response.encoded(), result)
	if err != nil { // not for a type that holds responses
		return &answer{action: fail, err: err}
	}
	return &answer{action: respond, response: v}
}

// decode returns a JSON response as a handler with that result type returns it.
func (r *handlerRun) decode(doc []byte, result reflect.Type) (any, error) {
	if result == rawType {
		return json.RawMessage(bytes.Clone(doc)), nil // a store in memory keeps these bytes
	}
	v, err := decode(doc, result)
	if err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// replayedHeader marks a response that is not the first one.
const replayedHeader = "Idempotent-Replayed"

// markReplayed returns a stored response with the mark in its headers. It
// reports false if the gateway would make an error of the response. JSON
// without a status gets the status that the gateway infers; anything but an
// object has no place for a mark.
func markReplayed(doc []byte, gateway eventkind.Gateway) ([]byte, bool) {
	if statusOf(doc, gateway) == 0 {
		return nil, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || members == nil {
		return doc, true
	}
	if code, ok := members["statusCode"]; !ok || string(code) == "null" {
		headers := map[string]string{"Content-Type": "application/json", replayedHeader: "true"}
		return newResponse(gateway, http.StatusOK, headers, string(doc)).encoded(), true
	}
	members["headers"] = withHeader(members["headers"], "true")
	var multi map[string]json.RawMessage
	if json.Unmarshal(members["multiValueHeaders"], &multi) == nil && len(multi) > 0 {
		members["multiValueHeaders"] = withHeader(members["multiValueHeaders"], []string{"true"})
	}
	marked, err := json.Marshal(members)
	return marked, err == nil
}

// withHeader returns headers with the mark in place of any that the handler
// set.
func withHeader(headers json.RawMessage, value any) json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(headers, &all) // the gateway refuses what is no object
	marked := map[string]any{replayedHeader: value}
	for name, v := range all {
		if !strings.EqualFold(name, replayedHeader) {
			marked[name] = v
		}
	}
	b, _ := json.Marshal(marked) // it came from JSON
	return b
}

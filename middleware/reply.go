package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// judge implements exchange.
func (r *request) judge(doc []byte) verdict {
	r.infer(doc)
	v := verdict{fits: len(doc) <= longestResult(r.gateway), completes: !r.maySayAgain || !saysAgain(doc), withheld: r.withheld(doc)}
	if r.gateway != eventkind.NoGateway {
		v.completes, v.kept = completesWith(doc, r.gateway), true
	}
	return v
}

// infer takes a result for a response if it has a status and neither types nor
// payload show whether there is a gateway. doc is its JSON form. A status means
// the same to all gateways, so any will do.
func (r *request) infer(doc []byte) {
	if r.gateway != eventkind.NoGateway || !r.byValue {
		return
	}
	if status := statusOf(doc, eventkind.Payload1); status >= http.StatusContinue && status < 600 {
		r.gateway = eventkind.Payload1
	}
}

// blamesClient implements exchange.
func (r *request) blamesClient(err error) bool {
	var e *lock.NoKeyError
	return r.gateway != eventkind.NoGateway && r.responds && errors.As(err, &e) && e.Client // as problemOf has it
}

// reply implements exchange. Over HTTP the client gets the first response again
// or a problem document, and whatever OnError makes of an error.
func (r *request) reply(run *handlerRun, a *answer, result reflect.Type) *answer {
	r.infer(a.result)
	overHTTP := r.gateway != eventkind.NoGateway
	switch {
	case overHTTP && errors.Is(a.err, lock.ErrCompleted) && (!run.w.completed.chosen || run.w.completed.action == replay):
		a = r.replayed(run, a, result)
	case overHTTP && !r.responds && a.action == skip && errors.Is(a.err, lock.ErrHeld): // which [config.use] could not refuse
		a = &answer{action: fail, err: a.err}
	case a.action == replay:
		return respondJSON(run, a.result, result, nil) // or the zero result
	}
	if other := run.onError(a, r.payload); other != a || !overHTTP || !r.responds {
		return other
	}
	switch p := run.w.problemOf(a.err, clock.Wall(clock.From(run.ctx))); {
	case a.action == fail && p != nil && !run.w.failsByChoice(a.err), a.action == skip && p != nil:
		return r.respond(run, p.response(r.gateway), result, a.err)
	case a.action == skip && a.err == nil: // nothing to work on
		return r.respond(run, newResponse(r.gateway, http.StatusNoContent, nil, ""), result, nil)
	}
	return a
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
func (r *request) replayed(run *handlerRun, a *answer, result reflect.Type) *answer {
	doc, ok := a.result, a.result != nil && r.withheld(a.result) == nil
	if ok && r.responds {
		doc, ok = markReplayed(doc, r.gateway)
	}
	if !ok {
		return &answer{action: fail, err: a.err}
	}
	return respondJSON(run, doc, result, a.err)
}

// respond returns a response to an error in the handler's result type, which
// can hold it.
func (r *request) respond(run *handlerRun, response *response, result reflect.Type, err error) *answer {
	response.Streamed = streamKindOf(result, r.gateway)
	return respondJSON(run, response.encoded(), result, err)
}

// respondJSON returns a response as a handler with that result type returns it.
// If it does not fit the type, the answer is err.
func respondJSON(run *handlerRun, doc []byte, result reflect.Type, err error) *answer {
	if result == rawType {
		return &answer{action: respond, response: json.RawMessage(bytes.Clone(doc))} // a store in memory keeps these bytes
	}
	v, decodeErr := decode(doc, result)
	if decodeErr != nil {
		run.reportDropped(decodeErr)
		return &answer{action: fail, err: err}
	}
	return &answer{action: respond, response: v.Interface()}
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
	_ = json.Unmarshal(headers, &all) // the gateway refuses anything but an object
	marked := map[string]any{replayedHeader: value}
	for name, v := range all {
		if !strings.EqualFold(name, replayedHeader) {
			marked[name] = v
		}
	}
	b, _ := json.Marshal(marked) // it came from JSON
	return b
}

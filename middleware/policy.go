package middleware

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// HeldPolicy says what to do with an event whose lock another invocation holds:
// [Fail], [Skip], [Wait] or [Respond].
type HeldPolicy interface{ forHeld() policy }

// CompletedPolicy says what to do with an event that was already completed, or
// is stale: [Skip], [Fail] or [Replay].
type CompletedPolicy interface{ forCompleted() policy }

// Policy is a [HeldPolicy], a [CompletedPolicy] and an [InterruptedPolicy].
type Policy int

const (
	// Fail returns the error that says why the handler did not run, so that the
	// source delivers the event again.
	Fail Policy = iota
	// Skip returns the zero result and no error, which acknowledges the event. If
	// the lock is held, the event may be lost: the holder may fail, or work on
	// another event. So OnHeld(Skip) is refused for handlers of records, and for
	// events of a queue or a stream. A zero HTTP response is not valid, or looks
	// like an answer, so it is refused for handlers that answer over HTTP, too;
	// where only the payload shows that, the answer has status 409, or is the error
	// if the result has no room for a status.
	Skip
)

// Replay is the [CompletedPolicy] that returns the result of the first run,
// which is stored for as long as the event is the last completed one of its
// name. If no result is stored, or only one of the two keys has a
// [lock.Key.Payload], Replay does the same as [Skip], or over HTTP answers with
// status 409. A key without an Event has no duplicates: every
// delivery runs, and one warning is logged.
var Replay CompletedPolicy = replayPolicy{}

type replayPolicy struct{}

// Wait keeps asking for the lock for up to atMost: at least 1 ms; zero does not
// wait. It stops earlier if one more request, of up to 2 s, would leave the
// handler less than 100 ms to run, so let the timeout be longer than atMost and
// a run together. For a cooldown that lasts longer, it does not wait at all.
// After that it does the same as [Fail], or over HTTP answers with status 409.
// Lambda bills the waiting time.
func Wait(atMost time.Duration) HeldPolicy {
	return waitPolicy(atMost)
}

// Respond returns v and no error, and like [Skip] it acknowledges the event:
// for synchronous callers that should hear that their request is in progress.
// For a queue or a stream it is refused unless v is a partial answer with
// failures. v must be assignable to the handler's result type and cannot be a
// stream; use [OnError] for those. Over HTTP the default, status 409, needs no
// Respond.
func Respond(v any) HeldPolicy {
	return respondPolicy{v}
}

type waitPolicy time.Duration

type respondPolicy struct{ v any }

// policy is what one of the public policies makes the wrapper do.
type policy struct {
	action   action
	wait     time.Duration // before the action
	response any           // of respond
	chosen   bool          // by an option, so that no default for HTTP takes its place
	// loses is the name of a policy that, for a held lock, would lose an event
	// which its source keeps until it is acknowledged; empty: it would not.
	loses string
}

// action is what to do instead of running the handler.
type action int

const (
	fail action = iota
	skip
	respond
	replay
)

func (p Policy) forHeld() policy          { return p.policy() }
func (p Policy) forCompleted() policy     { return p.policy() }
func (replayPolicy) forCompleted() policy { return policy{action: replay, chosen: true} }
func (p waitPolicy) forHeld() policy      { return policy{action: fail, wait: time.Duration(p)} }

// A response acknowledges the event, unless it is a partial answer that names a
// record.
func (p respondPolicy) forHeld() policy {
	held := policy{action: respond, response: p.v, chosen: true}
	if !saysAgain(documentOf(p.v)) {
		held.loses = "Respond"
	}
	return held
}

func (p Policy) policy() policy {
	switch p {
	case Fail:
		return policy{action: fail, chosen: true}
	case Skip:
		return policy{action: skip, chosen: true, loses: "Skip"}
	}
	panic("lambdalock: this Policy is neither Fail nor Skip")
}

// checkPolicies panics if a policy does not fit the handler, so that the
// mistake is found before an event needs the policy. With kept, OnHeld(Skip)
// would lose an event.
func (c *config) checkPolicies(sig signature, kept bool) {
	held, completed := c.held.action, c.completed.action
	if sig.t.NumOut() == 0 && (held == fail || completed == fail) {
		refuse("the handler %s returns no error, so it cannot make Lambda deliver an event again: let it return an error, or for a schedule choose OnHeld(Skip)", sig.t)
	}
	if held == respond {
		checkRespond(sig, c.held.response, kept)
	}
	c.held.checkKept(kept)
	if completed == replay {
		checkReplay(sig)
	}
	c.checkResult(sig)
	c.checkInterrupted(sig)
}

// checkKept panics if the policy would lose an event that its source keeps.
func (p policy) checkKept(kept bool) {
	if kept && p.loses != "" {
		refuse(lossy, p.loses)
	}
}

// refuseLoss is [policy.checkKept] for an event that shows only now that its
// source keeps it. payload is what the handler was given.
func (w *wrapper) refuseLoss(ctx context.Context, key lock.Key, payload any) error {
	if w.held.loses == "" || !w.held.isKept(ctx, payload) {
		return nil
	}
	e := &lock.ConfigError{Reason: fmt.Sprintf(lossy, w.held.loses)}
	w.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Key: key, Err: e})
	return e
}

// lossy is why a record is not skipped, or answered, because its lock is held.
const lossy = "OnHeld(%s) would acknowledge a record while another invocation holds its name, and lose it if that one fails or works on another record: leave it out, so that the source delivers the record again (from SQS when the lock is free, with redelivery.SQS); or choose Wait, or OnlyLatest (Latest for a whole event) if the handler acts on current state"

// isKept reports whether an event shows what its type may not, by itself or by
// where it is handled: that its source keeps it until it is acknowledged.
// Within the wrapper of a batch every event is kept, but a response is seen by
// the handler of the record, which can fail.
func (p policy) isKept(ctx context.Context, payload any) bool {
	if _, ofRecord := invocation.RecordClaimOf(ctx); ofRecord && p.action == skip {
		return true
	}
	if t := reflect.TypeOf(payload); t != nil && ofAWS(t) { // most events, so save their encoding
		return eventkind.IsKept(t)
	}
	doc := documentOf(payload)
	kind := cmp.Or(eventkind.Of(doc), eventkind.OfArray(doc))
	return kind != nil && kind.IsKept()
}

// documentOf returns the JSON form of what a handler was given. What has none
// came from no source of events.
func documentOf(payload any) []byte {
	doc, ok := payload.([]byte)
	if !ok {
		doc, _ = json.Marshal(payload)
	}
	return doc
}

// wouldLose reports whether response, instead of the error that says why the
// handler did not run, would lose an event that its source keeps. payload is
// what the handler was given.
func wouldLose(ctx context.Context, payload, response any, err error) bool {
	p := policy{action: respond}
	return !errors.Is(err, lock.ErrCompleted) && p.isKept(ctx, payload) && !saysAgain(documentOf(response))
}

func checkRespond(sig signature, response any, kept bool) {
	choices := "Fail, Skip or Wait"
	switch {
	case kept:
		choices = "Fail or Wait"
	case !sig.returnsError:
		choices = "Skip"
	}
	switch {
	case sig.result == nil:
		refuse("OnHeld(Respond) needs a handler with a result, but %s has none: choose %s", sig.t, choices)
	case response != nil && !reflect.TypeOf(response).AssignableTo(sig.result):
		refuse("OnHeld(Respond) was given a %T, but the handler returns a %s: pass a %s", response, sig.result, sig.result)
	}
}

func checkReplay(sig signature) {
	switch {
	case sig.result == nil:
		refuse("OnCompleted(Replay) needs a handler with a result, but %s has none: choose Skip or Fail", sig.t)
	case sig.result.Kind() == reflect.Interface && sig.result.NumMethod() > 0:
		refuse("OnCompleted(Replay) stores the result as JSON, which cannot be decoded into the interface %s that %s returns: declare the result as a concrete type, or as any", sig.result, sig.t)
	}
}

// checkResult panics if CompletedIf, RememberFor or OnError does not fit the
// handler's result.
func (c *config) checkResult(sig signature) {
	asks, remembers, gives := c.completedIfTakes, c.rememberForTakes, c.onErrorGives
	if sig.result == nil && (asks != nil || remembers != nil || gives != nil) {
		refuse("CompletedIf, RememberFor and OnError need a handler with a result, but %s has none: leave them out", sig.t)
	}
	if asks != nil && !isOrImplements(sig.result, asks) {
		refuse("CompletedIf was given a func(%s) bool, but the handler returns a %s: pass a func(%s) bool", asks, sig.result, sig.result)
	}
	if remembers != nil && !isOrImplements(sig.result, remembers) {
		refuse("RememberFor was given a func(%s) time.Duration, but the handler returns a %s: pass a func(%s) time.Duration", remembers, sig.result, sig.result)
	}
	if remembers != nil && sig.streams() {
		refuse("RememberFor cannot judge the stream that %s returns before it is read: use Remember", sig.t)
	}
	if gives != nil && !gives.AssignableTo(sig.result) {
		refuse("OnError was given a function that returns %s, but the handler returns %s: return %s", gives, sig.result, sig.result)
	}
}

func isOrImplements(t, other reflect.Type) bool {
	return t == other || other.Kind() == reflect.Interface && t.Implements(other)
}

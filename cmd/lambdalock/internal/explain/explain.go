// Package explain says which key functions take an event, which key each of
// them gives, and what a lock's row says of that key.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// Event is what there is to say about an event.
type Event struct {
	Kind    string   `json:"kind"` // of event, in words
	Records []Record `json:"records"`
}

// Record is one record of an event, or the whole event if it has no records.
type Record struct {
	Where   string    `json:"where,omitempty"` // in the event; empty for the whole
	Keys    []Key     `json:"keys"`
	Refused []Refusal `json:"refused,omitempty"` // by the key functions of the source
}

// Key is what a key function makes of a record.
type Key struct {
	Function string `json:"function"` // as one writes it, without the package
	// Ignored: there is nothing to work on, so the event is acknowledged, and the
	// other fields are empty.
	Ignored bool   `json:"ignored,omitempty"`
	Name    string `json:"name,omitempty"`
	Event   string `json:"event,omitempty"`
	Order   string `json:"order,omitempty"`
	Payload string `json:"payload,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Note is what another delivery of the event may differ in.
	Note    string   `json:"note,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"` // nil without a store

	key   lock.Key
	names []string // of Function alone
}

func newKey(function string, k lock.Key) Key {
	return Key{Function: function, Name: k.Name, Event: k.Event, Order: k.Order, Payload: k.Payload, Digest: k.Digest(), key: k}
}

// OfTenant makes the keys of an event those of an invocation that a tenant
// asked for.
func (e *Event) OfTenant(tenant string) {
	for _, r := range e.Records {
		for i, k := range r.Keys {
			if !k.Ignored {
				k.key.Name = keyparts.OfTenant(tenant, k.key.Name)
				of := newKey(k.Function, k.key)
				of.Note = k.Note
				r.Keys[i] = of
			}
		}
	}
}

// Refusal is why a key function does not take a record.
type Refusal struct {
	Function string `json:"function"`
	Reason   string `json:"reason"`
}

// MayCarry reports whether an event of this kind carries what a program of the
// user's wrote, which key functions of the user's own read.
func (e *Event) MayCarry() bool {
	return !slices.Contains([]string{eventkind.S3.String(), eventkind.S3Test.String(), givenKey}, e.Kind)
}

// Given reports whether this is a key that was given without an event.
func (e *Event) Given() bool { return e.Kind == givenKey }

// Accepted reports whether any key function takes any record.
func (e *Event) Accepted() bool {
	for _, r := range e.Records {
		if len(r.Keys) > 0 {
			return true
		}
	}
	return false
}

// Explain asks the key functions about an event, which must be valid JSON. The
// error says that the event is not one that a key function of this module
// knows.
func Explain(ctx context.Context, doc []byte) (*Event, error) {
	kind := eventkind.Of(doc)
	if kind == eventkind.S3Test {
		return &Event{Kind: kind.String(), Records: []Record{{Keys: []Key{{Function: "S3Object", Ignored: true}}}}}, nil
	}
	var array []json.RawMessage
	if json.Unmarshal(doc, &array) == nil && array != nil {
		return explainArray(ctx, array)
	}
	if kind == nil {
		return explainUnknown(ctx, doc)
	}
	if (kind == eventkind.Kinesis || kind == eventkind.DynamoDB) && eventkind.HasWindow(doc) {
		return nil, fmt.Errorf("this is %s that %s", kind, eventkind.WindowRefusal)
	}
	functions := functionsOf(kind, doc)
	if len(functions) == 0 {
		return nil, withoutFunctions(kind)
	}
	e := &Event{Kind: kind.String()}
	places, err := split(kind, doc)
	if err != nil {
		return nil, fmt.Errorf("this looks like %s, but cannot be read as one: %w", kind, err)
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("this looks like %s, but has no records: put a record that stands alone into the event around it, or into an array if it comes from an EventBridge pipe; see %s", kind, pipesSection)
	}
	for _, p := range places {
		e.Records = append(e.Records, explainRecord(ctx, p, kind, functions, len(places) == 1))
	}
	return e, nil
}

// withoutFunctions returns the error for an event of a known kind that has no
// key function in this form.
func withoutFunctions(kind *eventkind.Kind) error {
	if kind == eventkind.HTTP {
		return errors.New("this looks like an HTTP request, but does not come from a gateway that has a key function; the event of an authorizer looks like this")
	}
	return fmt.Errorf("this is %s without its envelope; in the envelope, the key function is %s", kind, kind.KeyFunction(nil))
}

// explainUnknown tries the functions for events whose JSON does not name their
// source.
func explainUnknown(ctx context.Context, doc []byte) (*Event, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil || members == nil {
		return nil, errNotObject
	}
	functions := unknown(members)
	switch {
	case len(functions) > 0:
	case members["schedule"] != nil && members["time"] != nil:
		return nil, errors.New("this looks like a schedule's own input, which docs/SOURCES.md#the-input-of-a-schedule describes: take a key from it with EventFrom(ByField(schedule), ByField(scheduledTime))")
	default:
		return nil, errors.New("this is not an event of a source that has a key function: see ByField, jmespath.Path and jmespath.Payload for events of your own; for those of a schedule with an input of its own: docs/SOURCES.md#the-input-of-a-schedule; for all sources: docs/SOURCES.md")
	}
	r := explainRecord(ctx, place{doc: doc}, new(eventkind.Kind), functions, true)
	return &Event{Kind: "an event that does not name its source", Records: []Record{r}}, nil
}

// explainRecord asks all functions about one record. only: there is no other in
// the event.
func explainRecord(ctx context.Context, p place, kind *eventkind.Kind, functions []function, only bool) Record {
	r := Record{Where: p.where, Keys: []Key{}}
	for _, f := range functions {
		k, err := f.key(ctx, p.doc)
		switch {
		case err == nil:
			found := newKey(f.written(kind, only), k)
			found.Note, found.names = f.note, f.names(kind)
			r.Keys = append(r.Keys, found)
		case errors.Is(err, keyfuncs.ErrIgnore):
			r.Keys = append(r.Keys, Key{Function: f.written(kind, only), Ignored: true})
		default:
			r.Refused = append(r.Refused, Refusal{f.written(kind, only), err.Error()})
		}
	}
	return r
}

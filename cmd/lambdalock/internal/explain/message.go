package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// CheckFunction returns an error that lists the functions for a message of a
// queue if the name is not that of a function for a known kind of event.
func CheckFunction(name string) error {
	for kind, functions := range byKind {
		for _, f := range functions {
			if slices.Contains(f.names(kind), name) {
				return nil
			}
		}
	}
	var names []string
	for _, f := range byKind[eventkind.SQS] {
		names = append(names, f.name)
	}
	return fmt.Errorf("there is no key function %q: for messages of a queue, choose one of %s; for other events, one that explain names", name, strings.Join(names, ", "))
}

// OfEvent is Explain with the key function of that name only, or all of them if
// the name is empty.
func OfEvent(ctx context.Context, doc []byte, name string) (*Event, error) {
	e, err := Explain(ctx, doc)
	if err != nil || name == "" {
		return e, err
	}
	for i := range e.Records {
		r := &e.Records[i]
		r.Keys = slices.DeleteFunc(r.Keys, func(k Key) bool { return !slices.Contains(k.names, name) })
	}
	return e, nil
}

// OfMessage asks the key function of that name about a message of a queue, or
// all of them if the name is empty. Functions are named as explain lists them.
// The key of SQSFIFOMessage has no Order, which is the place in a queue: a
// message that is moved to another queue loses it.
func OfMessage(ctx context.Context, m events.SQSMessage, name string) (*Event, error) {
	doc, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var functions []function
	for _, f := range byKind[eventkind.SQS] {
		if name != "" && name != f.name {
			continue
		}
		if f.name == "SQSFIFOMessage" {
			f.key = withoutOrder(f.key)
		}
		functions = append(functions, f)
	}
	byName := new(eventkind.Kind) // a kind without a wrapper: functions are written by their names alone
	return &Event{Kind: eventkind.SQS.String(), Records: []Record{explainRecord(ctx, place{doc: doc}, byName, functions, true)}}, nil
}

func withoutOrder(key func(context.Context, []byte) (lock.Key, error)) func(context.Context, []byte) (lock.Key, error) {
	return func(ctx context.Context, doc []byte) (lock.Key, error) {
		k, err := key(ctx, doc)
		k.Order = ""
		return k, err
	}
}

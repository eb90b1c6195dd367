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

// CheckMessageFunction returns an error that lists the functions for a message
// if the name is not that of one of them.
func CheckMessageFunction(name string) error {
	var names []string
	for _, f := range byKind[eventkind.SQS] {
		names = append(names, f.name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("there is no key function %q for a message of a queue: choose one of %s", name, strings.Join(names, ", "))
	}
	return nil
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

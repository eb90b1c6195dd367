package otellock

import (
	"cmp"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lambdalock/lambdalock/lock"
)

// attributesOf returns what metrics and spans tell of an observation. Each has
// few values.
func attributesOf(o lock.Observation) attribute.Set {
	all := []attribute.KeyValue{attribute.String("lambdalock.outcome", outcomeOf(o))}
	all = text(all, "lambdalock.namespace", o.Namespace)
	all = text(all, "lambdalock.store", o.Store)
	if o.Failed() {
		all = text(all, "error.type", typeOf(o.Err))
	}
	return attribute.NewSet(all...)
}

func outcomeOf(o lock.Observation) string {
	switch {
	case o.Completed:
		return "completed"
	case o.Duplicate:
		return "in_progress"
	}
	return string(o.Outcome)
}

// typeOf returns the type of an error as Lambda reports it.
func typeOf(err error) string {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(t.Name(), "_OTHER") // https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/
}

// text appends an attribute unless it is empty. Exporters refuse a whole batch
// for the sake of one text that is not UTF-8.
func text(to []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return to
	}
	return append(to, key.String(valid(value)))
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

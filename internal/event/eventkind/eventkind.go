// Package eventkind tells AWS events apart. Decoded into the type of another
// source, an event may look as if there were nothing in it, and would be
// acknowledged. Its JSON shows what it is and which key function it needs. For
// HTTP, the JSON and the types of requests and responses show the gateway, also
// where a user's type points to them, is defined as them or embeds them.
package eventkind

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// OfSource returns the kind of a record by the source that it names, or nil.
func OfSource(source string) *Kind {
	return first(func(k *Kind) bool { return slices.Contains(k.sources, source) })
}

// OfType returns the kind of event that a Go type stands for, or nil for the
// types of users.
func OfType[E any]() *Kind {
	t := reflect.TypeFor[E]()
	return first(func(k *Kind) bool {
		return slices.ContainsFunc(k.types, func(event any) bool { return reflect.TypeOf(event) == t })
	})
}

// OfRecord returns the kind whose records have a Go type, or nil for the types
// of users.
func OfRecord(t reflect.Type) *Kind {
	return first(func(k *Kind) bool { return k.one != nil && reflect.TypeOf(k.one) == t })
}

// IsKept reports whether a Go type stands for an event or a record of a queue
// or a stream, which is gone once it is acknowledged: by itself, or because it
// is defined as, points to or embeds a type that does. A pipe of EventBridge
// sends an array of records.
func IsKept(t reflect.Type) bool {
	if list := deref(t); list.Kind() == reflect.Slice || list.Kind() == reflect.Array {
		t = list.Elem()
	}
	return embeds(t, func(t reflect.Type) bool {
		return first(func(k *Kind) bool {
			return k.kept && slices.ContainsFunc(append([]any{k.one}, k.types...), func(known any) bool { return known != nil && isDefinedAs(t, reflect.TypeOf(known)) })
		}) != nil
	}, map[reflect.Type]bool{})
}

// IsKept reports whether the source keeps the records until they are
// acknowledged.
func (k *Kind) IsKept() bool { return k.kept }

// Of returns the kind of a JSON document, or nil if it is unknown.
func Of(doc []byte) *Kind {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return nil
	}
	if text(members["Event"]) == "s3:TestEvent" && cmp.Or(text(members["Service"]), "Amazon S3") == "Amazon S3" && members["Records"] == nil {
		return S3Test
	}
	if k := OfArray(members["Records"]); k != nil {
		return k
	}
	if k := OfSource(text(members["eventSource"])); k != nil {
		return k
	}
	switch text(members["Type"]) {
	case "Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation":
		if members["Message"] != nil {
			return SNSMessage
		}
	}
	var requestContext struct {
		FunctionARN string `json:"functionArn"` // no gateway sends it
	}
	if json.Unmarshal(members["requestContext"], &requestContext) == nil && requestContext.FunctionARN != "" {
		return InvocationRecord
	}
	return first(func(k *Kind) bool {
		return k.members != nil && !slices.ContainsFunc(k.members, func(name string) bool { return members[name] == nil })
	})
}

// OfArray returns the kind of the first record of an array, as pipes of
// EventBridge send it, or nil. It decodes no other, of which there may be
// thousands.
func OfArray(list json.RawMessage) *Kind {
	var record map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(list))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') || d.Decode(&record) != nil {
		return nil
	}
	source := cmp.Or(text(record["eventSource"]), text(record["EventSource"]))
	if source != "" {
		return OfSource(source)
	}
	return first(func(k *Kind) bool { return k.record != "" && record[k.record] != nil })
}

// first returns the first kind that is, or nil.
func first(is func(*Kind) bool) *Kind {
	if i := slices.IndexFunc(kinds, is); i >= 0 {
		return kinds[i]
	}
	return nil
}

func text(v json.RawMessage) (s string) {
	_ = json.Unmarshal(v, &s) // s stays empty if v is not a string
	return s
}

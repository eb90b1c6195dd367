package keyfuncs

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// DynamoDBRecord works on one change of an item at a time, each once and in
// order: a change is stale once a later one of the item is completed. Name is
// the table and the item's primary key, Event the sequence number, and Order
// the time at which the stream was enabled and the sequence number.
func DynamoDBRecord(_ context.Context, r events.DynamoDBEventRecord) (lock.Key, error) {
	if err := keyparts.ForeignRecord(r); err != nil {
		return lock.Key{}, err
	}
	table, label, ok := strings.Cut(r.EventSourceArn, "/stream/")
	if !ok || len(label) > 64 {
		return lock.Key{}, &lock.NoKeyError{Field: "eventSourceARN", Reason: "is not the ARN of a DynamoDB stream"}
	}
	if len(r.Change.Keys) == 0 {
		return lock.Key{}, keyparts.Missing("dynamodb.Keys")
	}
	parts := []string{table}
	for _, name := range slices.Sorted(maps.Keys(r.Change.Keys)) {
		v := r.Change.Keys[name]
		if v == (events.DynamoDBAttributeValue{}) { // its accessors would panic
			return lock.Key{}, keyparts.Missing("dynamodb.Keys." + name)
		}
		switch v.DataType() {
		case events.DataTypeString:
			parts = append(parts, name, "S", v.String())
		case events.DataTypeNumber:
			parts = append(parts, name, "N", v.Number())
		case events.DataTypeBinary:
			parts = append(parts, name, "B", base64.StdEncoding.EncodeToString(v.Binary()))
		default:
			return lock.Key{}, &lock.NoKeyError{Field: "dynamodb.Keys." + name, Reason: "is not a string, number or binary, as a primary key must be"}
		}
	}
	number := r.Change.SequenceNumber
	order, err := ordinal("dynamodb.SequenceNumber", number)
	return lock.Key{Name: keyparts.Name("dynamodb", parts...), Event: number, Order: label + " " + order}, err
}

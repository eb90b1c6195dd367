package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var dynamoDBRecord = keyfuncs.Single[events.DynamoDBEvent](keyfuncs.DynamoDBRecord)

func TestDynamoDBRecord(t *testing.T) {
	t.Parallel()
	number := "4421584500000000017450439091"
	gives(t, "dynamodb.json", dynamoDBRecord, lock.Key{
		Name: "dynamodb/arn:aws:dynamodb:us-east-2:123456789012:table%2Forders/customer/S/jane/number/N/17", Event: number, Order: "2026-06-10T19:26:16.525 028" + number,
	})
	newer, err := changed(t, "dynamodb.json", dynamoDBRecord, func(e *events.DynamoDBEvent) {
		e.Records[0].EventSourceArn = strings.Replace(e.Records[0].EventSourceArn, "2026-06", "2026-07", 1)
		e.Records[0].Change.SequenceNumber = "1"
	})
	older, _ := changed(t, "dynamodb.json", dynamoDBRecord, nil)
	if err != nil || newer.Order <= older.Order || newer.Name != older.Name {
		t.Errorf("a new stream of the table: %+v, %v, after %+v", newer, err, older)
	}
	number17 := func(v events.DynamoDBAttributeValue) func() (lock.Key, error) {
		return func() (lock.Key, error) {
			k, err := changed(t, "dynamodb.json", dynamoDBRecord, func(e *events.DynamoDBEvent) { e.Records[0].Change.Keys["number"] = v })
			return lock.Key{Name: k.Name}, err
		}
	}
	distinct(t, map[string]func() (lock.Key, error){
		"a string":            number17(events.NewStringAttribute("17")),
		"a number":            number17(events.NewNumberAttribute("17")),
		"a binary":            number17(events.NewBinaryAttribute([]byte("17"))),
		"another binary":      number17(events.NewBinaryAttribute([]byte("18"))),
		"a string of slashes": number17(events.NewStringAttribute("17/number/N/1")),
	})
	first := func(change func(*events.DynamoDBEventRecord)) func(*events.DynamoDBEvent) {
		return func(e *events.DynamoDBEvent) { change(&e.Records[0]) }
	}
	labelled := func(bytes int) func(*events.DynamoDBEvent) {
		return first(func(r *events.DynamoDBEventRecord) {
			r.EventSourceArn = "arn:aws:dynamodb:us-east-2:123456789012:table/orders/stream/" + strings.Repeat("2", bytes)
		})
	}
	if k, err := changed(t, "dynamodb.json", dynamoDBRecord, labelled(64)); k.Order != strings.Repeat("2", 64)+" 028"+number || err != nil {
		t.Errorf("the longest label: %+v, %v", k, err)
	}
	refuses(t, "dynamodb.json", dynamoDBRecord, map[string]func(*events.DynamoDBEvent){"Records[0].eventSourceARN": labelled(65)})
	refuses(t, "dynamodb.json", dynamoDBRecord, map[string]func(*events.DynamoDBEvent){
		"Records[0].eventSourceARN":          first(func(r *events.DynamoDBEventRecord) { r.EventSourceArn = "arn:aws:dynamodb" }),
		"Records[0].dynamodb.Keys":           first(func(r *events.DynamoDBEventRecord) { r.Change.Keys = nil }),
		"Records[0].dynamodb.Keys.number":    first(func(r *events.DynamoDBEventRecord) { r.Change.Keys["number"] = events.NewNullAttribute() }),
		"Records[0].dynamodb.Keys.customer":  first(func(r *events.DynamoDBEventRecord) { r.Change.Keys["customer"] = events.DynamoDBAttributeValue{} }),
		"Records[0].dynamodb.SequenceNumber": first(func(r *events.DynamoDBEventRecord) { r.Change.SequenceNumber = "-1" }),
	})
}

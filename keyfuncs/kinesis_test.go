package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var kinesisRecord = keyfuncs.Single[events.KinesisEvent](keyfuncs.KinesisRecord)

func TestKinesisRecord(t *testing.T) {
	t.Parallel()
	number := "49590338271490256608559692538361571095921575989136588898"
	gives(t, "kinesis.json", kinesisRecord, lock.Key{
		Name: "kinesis/arn:aws:kinesis:us-east-2:123456789012:stream%2Freadings/sensor%2F17", Event: number, Order: "056" + number,
	})
	refuses(t, "kinesis.json", kinesisRecord, map[string]func(*events.KinesisEvent){
		"Records[0].eventSourceARN":         func(e *events.KinesisEvent) { e.Records[0].EventSourceArn = "" },
		"Records[0].kinesis.partitionKey":   func(e *events.KinesisEvent) { e.Records[0].Kinesis.PartitionKey = "" },
		"Records[0].kinesis.sequenceNumber": func(e *events.KinesisEvent) { e.Records[0].Kinesis.SequenceNumber = "" },
	})
}

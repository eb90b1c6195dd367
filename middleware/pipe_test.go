package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// piped is a record of Kinesis as EventBridge Pipes sends it. docs/SOURCES.md
// shows the same.
type piped struct {
	events.KinesisEventRecord
	events.KinesisRecord
}

// TestPipeAdapters shows that the adapters in docs/SOURCES.md handle each
// record of a pipe once, also after the batch was repeated.
func TestPipeAdapters(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		runs := &runLog{}
		kinesis := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, runs.kinesis, newFixture().options()...)
		adapter := func(ctx context.Context, records []piped) error {
			var e middleware.KinesisRecords
			for _, r := range records {
				r.Kinesis = r.KinesisRecord
				e.Records = append(e.Records, r.KinesisEventRecord)
			}
			answer, err := kinesis(ctx, e)
			if err == nil && len(answer.BatchItemFailures) > 0 {
				err = errors.New("records failed")
			}
			return err
		}
		deliver := func(does ...string) error {
			var records []map[string]any
			for i, d := range does {
				number := fmt.Sprint(100 + i)
				records = append(records, map[string]any{
					"eventSource": "aws:kinesis", "eventID": "shardId-000000000006:" + number, "eventSourceARN": "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks",
					"sequenceNumber": number, "partitionKey": "1", "data": []byte(number + " " + d), "approximateArrivalTimestamp": 1545084650.987,
				})
			}
			payload, err := json.Marshal(records)
			if err != nil {
				t.Fatal(err)
			}
			_, err = lambda.NewHandler(adapter).Invoke(ctx, payload)
			return err
		}
		if err := deliver("", "fails", ""); err == nil {
			t.Error("a failed record was acknowledged")
		}
		for range 2 {
			expect.OK(t, deliver("", "", ""))
		}
		if want := []string{"100", "101", "101", "102"}; !slices.Equal(runs.began, want) {
			t.Errorf("ran %q, want %q", runs.began, want)
		}
		var kafka []string
		each := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(_ context.Context, r events.KafkaRecord) error {
			kafka = append(kafka, fmt.Sprintf("%s-%d/%d", r.Topic, r.Partition, r.Offset))
			return nil
		}, newFixture().options(middleware.Concurrency(1))...)
		var records []events.KafkaRecord
		expect.Must(t, json.Unmarshal([]byte(`[{"eventSource":"aws:kafka","topic":"orders","partition":0,"offset":15},{"topic":"orders","partition":1,"offset":15}]`), &records))
		for range 2 {
			_, err := each(ctx, events.KafkaEvent{Records: map[string][]events.KafkaRecord{"": records}})
			expect.OK(t, err)
		}
		if slices.Sort(kafka); !slices.Equal(kafka, []string{"orders-0/15", "orders-1/15"}) {
			t.Errorf("ran %q", kafka)
		}
	})
}

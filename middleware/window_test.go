package middleware_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestTumblingWindow shows that a batch of a tumbling window is refused with an
// error that says so. Lambda counts an answer without the state of the window
// as a failed invocation: the shard would stand still, and the log show
// success.
func TestTumblingWindow(t *testing.T) { // F31
	t.Parallel()
	sensor := keyfuncs.ByField(func(o order) string { return o.ID })
	wrap := func(opts ...middleware.Option) map[string]any {
		return map[string]any{
			"Kinesis":      middleware.EachKinesisRecord(keyfuncs.KinesisRecord, func(context.Context, events.KinesisEventRecord) error { return nil }, opts...),
			"Kinesis body": middleware.EachKinesisBody(sensor, func(context.Context, order) error { return nil }, opts...),
			"DynamoDB":     middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, func(context.Context, events.DynamoDBEventRecord) error { return nil }, opts...),
		}
	}
	for name := range wrap(noLog) {
		records := `{"eventSource":"aws:kinesis","eventID":"shardId-000000000006:495","eventSourceARN":"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks",
			"kinesis":{"partitionKey":"1","sequenceNumber":"495","data":"eyJpZCI6IjEifQ=="}}`
		if name == "DynamoDB" {
			records = `{"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-06-10T19:26:16.525",
				"dynamodb":{"Keys":{"id":{"S":"1"}},"SequenceNumber":"495"}}`
		}
		window := `"window":{"start":"2026-11-26T10:00:00Z","end":"2026-11-26T10:02:00Z"},"isFinalInvokeForWindow":false,`
		for members, refused := range map[string]bool{
			"":               false,
			`"window":null,`: false,
			window:           true,
			window + `"state":{"count":282},"shardId":"shardId-000000000006",`: true,
			strings.Replace(window, "false", "true", 1):                        true,
		} {
			t.Run(name+" "+members, func(t *testing.T) {
				t.Parallel()
				f := newFixture()
				counted := 0
				count := middleware.Metrics(func(_ context.Context, t middleware.Totals) { counted = t.Outcomes[lock.OutcomeRefused] })
				_, err := lambda.NewHandler(wrap(f.options(count)...)[name]).Invoke(t.Context(), []byte(`{`+members+`"Records":[`+records+`]}`))
				e, _ := err.(*lock.NoKeyError)
				if refused && (e == nil || e.Field != "window" || !strings.Contains(e.Error(), "TumblingWindowInSeconds")) || !refused && err != nil {
					t.Errorf("%v", err)
				}
				if refused {
					f.want(t, lock.OutcomeRefused)
				}
				if want := map[bool]int{true: 1}[refused]; counted != want {
					t.Errorf("%d refused batches were counted, want %d", counted, want)
				}
			})
		}
		t.Run(name+" without records, at the end of a window", func(t *testing.T) {
			t.Parallel()
			_, err := lambda.NewHandler(wrap(newFixture().options()...)[name]).Invoke(t.Context(), []byte(`{`+window+`"Records":[]}`))
			if e, _ := err.(*lock.NoKeyError); e == nil || e.Field != "window" {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTumblingWindowIsNotAdvised shows that a panic does not send handlers of
// a window to a wrapper that refuses them.
func TestTumblingWindowIsNotAdvised(t *testing.T) {
	t.Parallel()
	type ours struct{ events.KinesisTimeWindowEvent }
	for name, wrap := range map[string]func(){
		"Kinesis": func() {
			middleware.WithLock(keyfuncs.KinesisRecord, func(context.Context, events.KinesisTimeWindowEvent) (events.KinesisTimeWindowEventResponse, error) {
				return events.KinesisTimeWindowEventResponse{}, nil
			}, noLog)
		},
		"an event of one": func() {
			middleware.WithLock(keyfuncs.Single[events.KinesisEvent](keyfuncs.KinesisRecord), func(*events.KinesisTimeWindowEvent) error { return nil }, noLog)
		},
		"DynamoDB": func() {
			middleware.WithLock(keyfuncs.DynamoDBRecord, func(events.DynamoDBTimeWindowEvent) error { return nil }, noLog)
		},
		"embedded": func() {
			middleware.WithLock(keyfuncs.KinesisRecord, func(ours) error { return nil }, noLog)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, "tumbling window") || strings.Contains(text, "Each") {
					t.Errorf("panic %q", text)
				}
			}()
			wrap()
		})
	}
}

// TestStreamRecordsAreEvents shows that the types that see a window decode all
// else as those of aws-lambda-go do.
func TestStreamRecordsAreEvents(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"kinesis", "dynamodb"} {
		doc := []byte(testdata(t, file+".json"))
		decode := func(v any) string {
			expect.Must(t, json.Unmarshal(doc, v))
			b := expect.Value(json.Marshal(v))(t)
			return string(b)
		}
		ours, theirs := decode(new(middleware.KinesisRecords)), decode(new(events.KinesisEvent))
		if file == "dynamodb" {
			ours, theirs = decode(new(middleware.DynamoDBRecords)), decode(new(events.DynamoDBEvent))
		}
		if ours != theirs {
			t.Errorf("%s, want %s", ours, theirs)
		}
	}
}

package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestSkipOfHeldRecords shows that no wrapper skips a record because its lock
// is held, whether it takes the records of a batch, one of them or the whole
// batch, and that it says what to use.
func TestSkipOfHeldRecords(t *testing.T) {
	t.Parallel()
	opts := newFixture().options(middleware.OnHeld(middleware.Skip))
	for name, use := range map[string]func(){
		"SQS":         func() { middleware.EachSQSMessage(keyfuncs.SQSMessage, handles[events.SQSMessage], opts...) },
		"SQS, bodies": func() { middleware.EachSQSBody(byOrder, handles[order], opts...) },
		"Kinesis": func() {
			middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handles[events.KinesisEventRecord], opts...)
		},
		"DynamoDB": func() {
			middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, handles[events.DynamoDBEventRecord], opts...)
		},
		"Kafka": func() { middleware.EachKafkaRecord(keyfuncs.KafkaRecord, handles[events.KafkaRecord], opts...) },
		"DocumentDB": func() {
			middleware.EachDocumentDBRecord(keyfuncs.DocumentDBRecord, handles[awsevents.DocumentDBEventRecord], opts...)
		},
		"custom bus": func() {
			middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, handles[awsevents.CustomBusEvent], opts...)
		},
		"S3":          func() { middleware.EachS3Record(keyfuncs.S3Record, handles[events.S3EventRecord], opts...) },
		"SNS":         func() { middleware.EachSNSRecord(keyfuncs.SNSRecord, handles[events.SNSEventRecord], opts...) },
		"SNS, bodies": func() { middleware.EachSNSBody(byOrder, handles[order], opts...) },
		"whole":       func() { middleware.WithLock(keyfuncs.Static("job"), handles[events.SQSEvent], opts...) },
		"by pointer":  func() { middleware.WithLock(keyfuncs.Static("job"), handles[*events.KinesisEvent], opts...) },
		"no error":    func() { middleware.WithLock(keyfuncs.Static("job"), func(events.KafkaEvent) {}, opts...) },
		"Single": func() {
			middleware.WithLock(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage), handles[events.SQSEvent], opts...)
		},
		"record":   func() { middleware.WithLock(keyfuncs.Static("job"), handles[events.SQSMessage], opts...) },
		"ActiveMQ": func() { middleware.WithLock(keyfuncs.ActiveMQEvent, handles[events.ActiveMQEvent], opts...) },
		"RabbitMQ": func() { middleware.WithLock(keyfuncs.RabbitMQEvent, handles[events.RabbitMQEvent], opts...) },
		"raw":      func() { middleware.WithLock(staticOf[events.SQSEvent], lambda.Handler(echo{}), opts...) },
		"any JSON": func() { middleware.WithLock(staticOf[events.SQSEvent], handles[[]byte], opts...) },
		"several": func() {
			middleware.WithLocks(keyfuncs.All(staticOf[events.SQSEvent]), handles[events.SQSEvent], opts...)
		},
		"several, any": func() {
			middleware.WithLocks(keyfuncs.All(keyfuncs.Static("job")), handles[events.DynamoDBEvent], opts...)
		},
		"around Kinesis": func() {
			middleware.WithLock(keyfuncs.Static("job"), middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handles[events.KinesisEventRecord]), opts...)
		},
		"around DynamoDB": func() {
			middleware.WithLock(keyfuncs.Static("job"), middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, handles[events.DynamoDBEventRecord]), opts...)
		},
		"embedded":   func() { middleware.WithLock(keyfuncs.Static("job"), handles[struct{ events.SQSEvent }], opts...) },
		"defined as": func() { middleware.WithLock(keyfuncs.Static("job"), handles[*ownKafkaEvent], opts...) },
		"pipe":       func() { middleware.WithLock(keyfuncs.Static("job"), handles[[]events.SQSMessage], opts...) },
		"pipe, own":  func() { middleware.WithLock(keyfuncs.Static("job"), handles[*[]*piped], opts...) },
	} {
		t.Run(name, func(t *testing.T) {
			wantPanic(t, use, "OnHeld(Skip) would acknowledge a record", "redelivery.SQS", "Wait", "OnlyLatest (Latest for a whole event)")
		})
	}
	for name, use := range map[string]func(){
		"schedule": func() { middleware.WithLock(keyfuncs.EventBridgeSchedule, handles[events.EventBridgeEvent], opts...) },
		"S3":       func() { middleware.WithLock(keyfuncs.S3Object, handles[events.S3Event], opts...) },
		"own type": func() { middleware.WithLock(byOrder, handles[order], opts...) },
	} {
		t.Run("accepted: "+name, func(*testing.T) { use() })
	}
}

// TestRespondForHeldRecords shows that an answer to a queue or a stream, which
// acknowledges the event, must name what has failed.
func TestRespondForHeldRecords(t *testing.T) {
	t.Parallel()
	answers := func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
		return events.SQSEventResponse{}, nil
	}
	opts := func(response any) []middleware.Option {
		return newFixture().options(middleware.OnHeld(middleware.Respond(response)))
	}
	for name, use := range map[string]func(){
		"SQS": func() { middleware.WithLock(keyfuncs.Static("job"), answers, opts(events.SQSEventResponse{})...) },
		"anything": func() {
			middleware.WithLock(keyfuncs.Static("job"), func(context.Context, events.KinesisEvent) (any, error) { return nil, nil }, opts("busy")...)
		},
		"nothing": func() { middleware.WithLock(keyfuncs.Static("job"), answers, opts(nil)...) },
		"raw":     func() { middleware.WithLock(staticOf[events.SQSEvent], lambda.Handler(echo{}), opts("{}")...) },
	} {
		t.Run(name, func(t *testing.T) {
			wantPanic(t, use, "OnHeld(Respond) would acknowledge a record", "leave it out")
		})
	}
	whole := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{}}} // an empty id fails the batch
	middleware.WithLock(keyfuncs.Static("job"), answers, opts(whole)...)
}

// TestSkipOfRecordsSeenLate shows that the first event is refused, whether its
// lock is held or not, if only it shows that its source keeps it: in a wrapper
// within that of a batch, and in an event of a type of the user's own.
func TestSkipOfRecordsSeenLate(t *testing.T) {
	t.Parallel()
	f := newFixture()
	skipping := f.options(middleware.OnHeld(middleware.Skip), middleware.Namespace("inner"))
	refused := func(t *testing.T, err error) {
		t.Helper()
		var e *lock.ConfigError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "OnHeld(Skip) would acknowledge a record") {
			t.Errorf("got %v", err)
		}
		if f.count(lock.OutcomeRefused) != 1 {
			t.Errorf("observed %q", f.outcomes())
		}
		f.forget()
	}
	const sqs = `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{\"id\":\"7\"}"}]}`
	t.Run("within a batch", func(t *testing.T) {
		var event events.SQSEvent
		expect.Must(t, json.Unmarshal([]byte(sqs), &event))
		answer, err := middleware.EachSQSBody(byOrder, middleware.WithLock(byOrder, handles[order], skipping...), f.options()...)(t.Context(), event)
		refused(t, err)
		if len(answer.BatchItemFailures) != 1 {
			t.Errorf("got %+v, want that the message comes again", answer)
		}
	})
	t.Run("a detail within a batch", func(t *testing.T) {
		event := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSource: "aws:sqs", Body: `{"id":"e","source":"shop","detail-type":"order","detail":{"id":"7"}}`}}}
		inner := middleware.WithEventBridgeDetail(byOrder, handles[order], skipping...)
		answer, err := middleware.EachSQSBody(middleware.RecordKey[events.EventBridgeEvent](keyfuncs.SQSMessage), inner, newFixture().options()...)(t.Context(), event)
		refused(t, err)
		if len(answer.BatchItemFailures) != 1 {
			t.Errorf("got %+v, want that the message comes again", answer)
		}
	})
	type own struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		} `json:"Records"`
	}
	t.Run("own type", func(t *testing.T) {
		var event own
		expect.Must(t, json.Unmarshal([]byte(sqs), &event))
		refused(t, middleware.WithLock(staticOf[own], handles[own], skipping...)(t.Context(), event))
		refused(t, middleware.WithLock(staticOf[own], handles[*own], skipping...)(t.Context(), &event))
	})
	t.Run("any JSON", func(t *testing.T) {
		refused(t, middleware.WithLock(staticOf[json.RawMessage], handles[json.RawMessage], skipping...)(t.Context(), json.RawMessage(sqs)))
		refused(t, middleware.WithLock(staticOf[any], handles[any], skipping...)(t.Context(), events.SQSEvent{})) // by a test, or another wrapper
	})
	t.Run("raw", func(t *testing.T) {
		_, err := middleware.WithLock(staticOf[json.RawMessage], lambda.Handler(echo{}), skipping...).Invoke(t.Context(), []byte(sqs))
		refused(t, err)
	})
	t.Run("a pipe", func(t *testing.T) {
		const piped = ` [{"messageId":"1","eventSource":"aws:sqs","body":"b"},{}]`
		refused(t, middleware.WithLock(staticOf[json.RawMessage], handles[json.RawMessage], skipping...)(t.Context(), json.RawMessage(piped)))
		refused(t, middleware.WithLock(staticOf[any], handles[any], skipping...)(t.Context(), []events.SQSMessage{{EventSource: "aws:sqs"}}))
	})
	t.Run("no key", func(t *testing.T) {
		keyless := func(context.Context, json.RawMessage) (lock.Key, error) { return lock.Key{}, errRecord }
		err := middleware.WithLock(keyless, handles[json.RawMessage], skipping...)(t.Context(), json.RawMessage(sqs))
		if !errors.As(err, new(*lock.NoKeyError)) {
			t.Errorf("%v, want what is wrong with the event itself", err)
		}
	})
	t.Run("an array of others", func(t *testing.T) {
		for _, doc := range []string{`[]`, `[{"id":"7"}]`, `[{"Data":{},"SystemMetadata":{}}]`, `[[{"eventSource":"aws:sqs"}]]`} {
			expect.OK(t, middleware.WithLock(staticOf[json.RawMessage], handles[json.RawMessage], skipping...)(t.Context(), json.RawMessage(doc)))
		}
	})
	t.Run("a schedule", func(t *testing.T) {
		err := middleware.WithLock(staticOf[json.RawMessage], handles[json.RawMessage], skipping...)(t.Context(), json.RawMessage(`{"source":"aws.scheduler"}`))
		expect.OK(t, err)
	})
}

// TestRespondForRecordsSeenLate is [TestSkipOfRecordsSeenLate] for an answer
// that names nothing that has failed. Within a batch it is for the handler of
// the record, which sees it.
func TestRespondForRecordsSeenLate(t *testing.T) {
	t.Parallel()
	const sqs = `{"Records":[{"messageId":"1","eventSource":"aws:sqs"}]}`
	answers := func(_ context.Context, e json.RawMessage) (any, error) { return "ran", nil }
	opts := func(response any) []middleware.Option {
		return newFixture().options(middleware.OnHeld(middleware.Respond(response)))
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		var e *lock.ConfigError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "OnHeld(Respond) would acknowledge a record") {
			t.Errorf("got %v", err)
		}
	}
	t.Run("any JSON", func(t *testing.T) {
		_, err := middleware.WithLock(staticOf[json.RawMessage], answers, opts("busy")...)(t.Context(), json.RawMessage(sqs))
		refused(t, err)
	})
	t.Run("raw", func(t *testing.T) {
		_, err := middleware.WithLock(staticOf[json.RawMessage], lambda.Handler(echo{}), opts("busy")...).Invoke(t.Context(), []byte(sqs))
		refused(t, err)
	})
	t.Run("a partial answer", func(t *testing.T) {
		whole := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{}}}
		expect.Value(middleware.WithLock(staticOf[json.RawMessage], answers, opts(whole)...)(t.Context(), json.RawMessage(sqs)))(t)
	})
	t.Run("within a batch", func(t *testing.T) {
		inner := middleware.WithLock(staticOf[json.RawMessage], answers, opts("busy")...)
		each := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			_, err := inner(ctx, json.RawMessage(m.Body))
			return err
		}, newFixture().options()...)
		answer, err := each(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "q", EventSource: "aws:sqs", Body: "{}"}}})
		if err != nil || len(answer.BatchItemFailures) > 0 {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// TestOnErrorLosesNoRecord shows that OnError cannot acknowledge an event of a
// queue or a stream that nobody has handled.
func TestOnErrorLosesNoRecord(t *testing.T) {
	t.Parallel()
	const sqs = `{"Records":[{"messageId":"1","eventSource":"aws:sqs"}]}`
	whole := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{}}}
	held := func(t *testing.T, f *fixture) { f.acquireElsewhere(t, lock.Key{Name: "job"}) }
	completed := func(t *testing.T, f *fixture) {
		expect.OK(t, f.acquireElsewhere(t, lock.Key{Name: "job", Event: "1"}).Complete())
	}
	key := func(context.Context, json.RawMessage) (lock.Key, error) {
		return lock.Key{Name: "job", Event: "1"}, nil
	}
	for name, c := range map[string]struct {
		before    func(*testing.T, *fixture)
		event     string
		responds  any
		responded bool
	}{
		"held":             {held, sqs, "busy", false},
		"a partial answer": {held, sqs, whole, true},
		"completed":        {completed, sqs, "done", true},
		"another source":   {held, `{"source":"aws.scheduler"}`, "busy", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			c.before(t, f)
			opts := f.options(middleware.OnCompleted(middleware.Fail), middleware.OnError(func(context.Context, error) (any, error) { return c.responds, nil }))
			check := func(got any, err error) {
				t.Helper()
				if (err == nil) != c.responded || (got != nil) != c.responded {
					t.Errorf("got %v, %v", got, err)
				}
			}
			check(middleware.WithLock(key, func(context.Context, json.RawMessage) (any, error) { return "ran", nil }, opts...)(t.Context(), json.RawMessage(c.event)))
			raw, err := middleware.WithLock(key, lambda.Handler(echo{}), opts...).Invoke(t.Context(), []byte(c.event))
			if (err == nil) != c.responded {
				t.Errorf("raw: got %s, %v", raw, err)
			}
		})
	}
	t.Run("no key", func(t *testing.T) {
		answer := middleware.OnError(func(context.Context, error) (events.SQSEventResponse, error) { return events.SQSEventResponse{}, nil })
		h := middleware.WithLock(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage), func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return events.SQSEventResponse{}, nil
		}, newFixture().options(answer)...)
		if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{EventSource: "aws:sqs"}}}); !errors.As(err, new(*lock.NoKeyError)) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("in the handler of a record", func(t *testing.T) { // which decides about the record
		f := newFixture()
		held(t, f)
		inside := middleware.WithLock(key, func(context.Context, json.RawMessage) (any, error) { return "ran", nil },
			f.options(middleware.OnError(func(context.Context, error) (any, error) { return "busy", nil }))...)
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, _ events.SQSMessage) error {
			if got, err := inside(ctx, json.RawMessage(`{"order":1}`)); got != "busy" || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
			return nil
		}, newFixture().options()...)
		r, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message("1", "")}})
		wantReturned(t, r, err)
	})
	t.Run("OnHeld(Skip)", func(t *testing.T) {
		opts := newFixture().options(middleware.OnHeld(middleware.Skip), middleware.OnError(func(context.Context, error) (any, error) { return "done", nil }))
		_, err := middleware.WithLock(key, func(context.Context, json.RawMessage) (any, error) { return "ran", nil }, opts...)(t.Context(), json.RawMessage(sqs))
		if !errors.As(err, new(*lock.ConfigError)) {
			t.Errorf("got %v", err)
		}
	})
}

type ownKafkaEvent events.KafkaEvent

func handles[E any](context.Context, E) error { return nil }

func staticOf[E any](context.Context, E) (lock.Key, error) { return lock.Key{Name: "job"}, nil }

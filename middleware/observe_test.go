package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestLevels shows at which level the wrapper logs each of its own outcomes.
func TestLevels(t *testing.T) {
	for outcome, level := range map[lock.Outcome]string{
		middleware.OutcomeUnlocked:      "ERROR",
		middleware.OutcomeNoLock:        "DEBUG",
		middleware.OutcomeIgnored:       "WARN",
		middleware.OutcomeHandlerFailed: "ERROR",
		middleware.OutcomeNotBegun:      "WARN",
		middleware.OutcomeOverdue:       "WARN",
		lock.OutcomeRefused:             "ERROR", // here because of the key function
	} {
		t.Run(string(outcome), func(t *testing.T) {
			c := callbackCases[outcome]
			synctest.Test(t, func(t *testing.T) {
				var log warnings
				all := middleware.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, _ = c.wrapRecords(t, c.prepare(t, new(atomic.Int32)), all)(ctx, sqsBatch(message("1", ""), message("2", "")))
				want := "level=" + level + ` msg="lambdalock: ` + string(outcome) + `"`
				if lines := strings.Join(log.lines(), "\n"); !strings.Contains(lines, want) {
					t.Errorf("logged %s, want %s", lines, want)
				}
			})
		})
	}
}

// TestLinesCarryTheInvocation shows that the handler of every log line is given
// the context of the invocation, from which lambdacontext.WithTenantID and its
// like take what they add.
func TestLinesCarryTheInvocation(t *testing.T) {
	for outcome, c := range callbackCases {
		if c.eventOnly {
			continue
		}
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen atomic.Bool
				lines := middleware.Logger(slog.New(lineHandler{slog.DiscardHandler, func(ctx context.Context, message string) {
					if lc, ok := lambdacontext.FromContext(ctx); !ok || lc.AwsRequestID != "r1" {
						t.Errorf("%s without the invocation", message)
					}
					if strings.HasSuffix(message, string(outcome)) {
						seen.Store(true)
					}
				}}))
				h := c.wrapRecords(t, c.prepare(t, new(atomic.Int32)), lines)
				ctx, cancel := context.WithTimeout(lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r1"}), 30*time.Second)
				defer cancel()
				_, _ = h(ctx, sqsBatch(message("1", ""), message("2", "")))
				if !seen.Load() {
					t.Error("not seen")
				}
			})
		})
	}
}

// lineHandler calls check with every record.
type lineHandler struct {
	slog.Handler
	check func(context.Context, string)
}

func (lineHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	h.check(ctx, r.Message)
	return nil
}

// TestLogKeys shows that the wrapper's own outcomes are logged with the name
// and the event of the key only if LogKeys asks for it.
func TestLogKeys(t *testing.T) {
	t.Parallel()
	key := func(context.Context, order) (lock.Key, error) {
		return lock.Key{Name: "customer-7", Event: "order-8"}, keyfuncs.ErrIgnore
	}
	for name, c := range map[string]struct {
		opts []middleware.Option
		want bool
	}{
		"by default": {nil, false},
		"LogKeys":    {[]middleware.Option{middleware.LogKeys()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var log warnings
			h := middleware.WithLock(key, func(context.Context, order) error { t.Error("ran"); return nil },
				newFixture().options(append(c.opts, log.option())...)...)
			expect.OK(t, h(t.Context(), order{}))
			line := strings.Join(log.lines(), "\n")
			if strings.Contains(line, "name=customer-7 event=order-8") != c.want || strings.Contains(line, "customer-7") != c.want {
				t.Errorf("logged %s", line)
			}
		})
	}
}

// TestOneDefaultLogger shows that all outcomes go to the logger that is the
// default one when the handler is wrapped, those of the lock and those of the
// wrapper.
func TestOneDefaultLogger(t *testing.T) {
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	var first, second warnings
	slog.SetDefault(slog.New(slog.NewTextHandler(&first, nil)))
	f := newFixture()
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return errors.New("boom") },
		middleware.Store(f.faulty))
	f.faulty.Always(fault.Release, fault.Deny)
	slog.SetDefault(slog.New(slog.NewTextHandler(&second, nil)))
	if _, err := h(t.Context(), sqsBatch(message("1", ""))); err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"store_failed", "handler_failed"} {
		if !strings.Contains(strings.Join(first.lines(), "\n"), want) {
			t.Errorf("%s is not in the log: %q", want, first.lines())
		}
	}
	if lines := second.lines(); lines != nil {
		t.Errorf("logged elsewhere: %q", lines)
	}
}

// TestSeveralObservers shows that every observer is called, in order, also if
// one before it panics.
func TestSeveralObservers(t *testing.T) {
	t.Parallel()
	var seen []string
	note := func(name string) middleware.Option {
		return middleware.Observe(func(_ context.Context, o lock.Observation) {
			seen = append(seen, name+" "+string(o.Outcome))
			if name == "b" && o.Outcome == lock.OutcomeReleased {
				panic("b")
			}
		})
	}
	h := middleware.WithLock(byOrder, func(context.Context, order) error { return nil },
		newFixture().options(note("a"), middleware.Observe(nil), note("b"), note("c"))...)
	func() {
		defer func() {
			if p := recover(); p != "b" {
				t.Errorf("recovered %v, want the panic of b", p)
			}
		}()
		_ = h(t.Context(), order{ID: "1"})
	}()
	want := []string{"a acquired", "b acquired", "c acquired", "a released", "b released", "c released"}
	if !slices.Equal(seen, want) {
		t.Errorf("observed %q, want %q", seen, want)
	}
}

// TestLinesOfRecordsNameThem shows that a line about a record names it if there
// is no key, and states no time or requests that nobody measured.
func TestLinesOfRecordsNameThem(t *testing.T) {
	t.Parallel()
	var log warnings
	h := middleware.EachSQSBody(keyfuncs.ByField(func(o order) string { return o.ID }), func(context.Context, order) error { return errRecord },
		middleware.Store(newFixture().faulty), log.option(), middleware.Concurrency(1))
	if _, err := h(t.Context(), sqsBatch(message("m1", `{"id":"1"}`), message("m2", "{"), message("m3", "{}"))); err == nil {
		t.Error("no error")
	}
	lines := log.lines()
	if len(lines) != 3 {
		t.Fatalf("logged %q", lines)
	}
	for i, want := range []string{"handler_failed\" key=", "refused\" error=", "refused\" error="} {
		if !strings.Contains(lines[i], want) || strings.Contains(lines[i], fmt.Sprintf("record=m%d", i+1)) != (i > 0) ||
			strings.Contains(lines[i], "duration=") || strings.Contains(lines[i], "requests=") {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[2], "no key: Records[2] has no key, because the key function returned an empty Name") {
		t.Errorf("the line names no field that the event has: %s", lines[2])
	}
}

// TestLinesNameRecordsOfAnySource shows that a record without a key is named by
// its source and its id or, where it has none, by its place and, inside another
// record, by that one.
func TestLinesNameRecordsOfAnySource(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]func(opts ...middleware.Option) error{
		"record=orders-3@7": func(opts ...middleware.Option) error {
			_, err := middleware.EachKafkaRecord(keyless[events.KafkaRecord], handles[events.KafkaRecord], opts...)(t.Context(),
				events.KafkaEvent{Records: map[string][]events.KafkaRecord{"orders-3": {{Topic: "orders", Partition: 3, Offset: 7}}}})
			return err
		},
		"source=arn:aws:sqs:q record=sqs-1": func(opts ...middleware.Option) error {
			_, err := middleware.EachSQSMessage(keyless[events.SQSMessage], handles[events.SQSMessage], opts...)(t.Context(),
				events.SQSEvent{Records: []events.SQSMessage{{EventSourceARN: "arn:aws:sqs:q", MessageId: "sqs-1"}}})
			return err
		},
		"source=arn:aws:sqs:of-no-id": func(opts ...middleware.Option) error {
			_, err := middleware.EachSQSMessage(keyless[events.SQSMessage], handles[events.SQSMessage], opts...)(t.Context(),
				events.SQSEvent{Records: []events.SQSMessage{{EventSourceARN: "arn:aws:sqs:of-no-id"}}})
			return err
		},
		"source=arn:aws:sns:t record=sns-1": func(opts ...middleware.Option) error {
			return middleware.EachSNSRecord(keyless[events.SNSEventRecord], handles[events.SNSEventRecord], opts...)(t.Context(),
				events.SNSEvent{Records: []events.SNSEventRecord{{EventSubscriptionArn: "arn", SNS: events.SNSEntity{MessageID: "sns-1", TopicArn: "arn:aws:sns:t"}}}})
		},
		"source=arn:aws:sqs:q record=around": func(opts ...middleware.Option) error {
			each := middleware.EachS3Record(keyless[events.S3EventRecord], handles[events.S3EventRecord], opts...)
			_, err := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, _ events.SQSMessage) error {
				return each(ctx, middleware.S3Records{S3Event: events.S3Event{Records: []events.S3EventRecord{{}}}})
			}, opts...)(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{EventSourceARN: "arn:aws:sqs:q", MessageId: "around"}}})
			return err
		},
		"source=shop record=bus-1": func(opts ...middleware.Option) error {
			return middleware.EachEventBridgeEvent(keyless[awsevents.CustomBusEvent], handles[awsevents.CustomBusEvent], opts...)(t.Context(),
				awsevents.CustomBusEvents{{SystemMetadata: awsevents.CustomBusSystemMetadata{EventID: "bus-1", EventGroupID: "g", Source: "shop"}}})
		},
	} {
		var log warnings
		err := call(middleware.Store(newFixture().faulty), log.option())
		if lines := strings.Join(log.lines(), "\n") + "\n"; err == nil || !strings.Contains(lines, " "+want+"\n") || strings.Contains(lines, `=""`) {
			t.Errorf("%s: %v, logged %s", want, err, lines)
		}
	}
}

func keyless[R any](context.Context, R) (lock.Key, error) { return lock.Key{}, errRecord }

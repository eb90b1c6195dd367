package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// kafkaBatch returns three records of each of two partitions, of which some do
// something.
func kafkaBatch(does map[string]string) events.KafkaEvent {
	e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
	for _, id := range []string{"0/1", "1/1", "0/2", "1/2", "0/3", "1/3"} {
		var p, o int64
		_, _ = fmt.Sscanf(id, "%d/%d", &p, &o)
		name := fmt.Sprintf("orders-%d", p)
		e.Records[name] = append(e.Records[name], events.KafkaRecord{Topic: "orders", Partition: p, Offset: o, Value: does[id]})
	}
	return e
}

func (l *runLog) kafka(ctx context.Context, r events.KafkaRecord) error {
	return l.act(ctx, fmt.Sprintf("%d/%d", r.Partition, r.Offset), r.Value)
}

// TestEachKafkaRecord shows that the records of a partition keep their order,
// that the batch is an error after a failure, and that only the rest of that
// partition runs again.
func TestEachKafkaRecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, runs.kafka, f.options()...)
		r, err := h(ctx, kafkaBatch(map[string]string{"0/2": "fails"}))
		if !errors.Is(err, errRecord) || !strings.Contains(err.Error(), "2 of 6 records failed; records[orders-0] offset 2: the record is bad") || len(r.BatchItemFailures) > 0 {
			t.Error(r, err)
		}
		if slices.Sort(runs.began); !slices.Equal(runs.began, []string{"0/1", "0/2", "1/1", "1/2", "1/3"}) || runs.mostAtOne != 2 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
		runs.began = nil
		if _, err := h(ctx, kafkaBatch(nil)); err != nil || !slices.Equal(runs.began, []string{"0/2", "0/3"}) {
			t.Errorf("ran %q again, %v", runs.began, err)
		}
	})
}

// TestPartialAnswersWithoutAKey shows that with OrderPerName, a record that has
// no key holds back what follows it in its partition, and no other partition.
func TestPartialAnswersWithoutAKey(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		runs := &runLog{}
		key := func(ctx context.Context, r events.KafkaRecord) (lock.Key, error) {
			if r.Partition == 0 && r.Offset == 2 {
				return lock.Key{}, errRecord
			}
			return lock.Key{Name: fmt.Sprint(r.Partition, r.Offset)}, nil
		}
		h := middleware.EachKafkaRecord(key, runs.kafka, newFixture().options(middleware.OrderPerName(), middleware.PartialAnswers())...)
		r, err := h(ctx, kafkaBatch(nil))
		const rest = `{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-0","offset":2}},{"itemIdentifier":{"partition":"orders-0","offset":3}}]}`
		if answer := string(expect.Value(json.Marshal(r))(t)); answer != rest || err != nil {
			t.Errorf("%s, %v", answer, err)
		}
		if slices.Sort(runs.began); !slices.Equal(runs.began, []string{"0/1", "1/1", "1/2", "1/3"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestPartialAnswersOfKafka shows what Lambda gets with PartialAnswers: each
// record that failed or was not begun, or an error if an answer could not say
// it.
func TestPartialAnswersOfKafka(t *testing.T) {
	elsewhere := func(e *events.KafkaEvent) { // as a pipe's adapter has them
		e.Records = map[string][]events.KafkaRecord{"": slices.Concat(e.Records["orders-0"], e.Records["orders-1"])}
	}
	const rest = `{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-0","offset":2}},{"itemIdentifier":{"partition":"orders-0","offset":3}}]}`
	for name, c := range map[string]struct {
		does   map[string]string
		change func(*events.KafkaEvent)
		opts   []middleware.Option
		answer string
		fails  bool
	}{
		"all succeed":         {nil, nil, nil, `{"batchItemFailures":[]}`, false},
		"one fails":           {map[string]string{"0/2": "fails"}, nil, nil, rest, false},
		"one panics":          {map[string]string{"0/2": "panics"}, nil, nil, rest, false},
		"by name":             {map[string]string{"0/2": "fails"}, nil, []middleware.Option{middleware.OrderPerName()}, strings.Replace(rest, `,{"itemIdentifier":{"partition":"orders-0","offset":3}}`, "", 1), false},
		"all fail":            {map[string]string{"0/1": "fails", "1/1": "fails"}, nil, nil, "", true},
		"no such partition":   {map[string]string{"0/2": "fails"}, elsewhere, nil, `{"batchItemFailures":[]}`, true},
		"no records":          {nil, func(e *events.KafkaEvent) { e.Records = nil }, nil, `{"batchItemFailures":[]}`, true},
		"elsewhere, no fault": {nil, elsewhere, nil, `{"batchItemFailures":[]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs := newFixture(), &runLog{}
				h := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, runs.kafka, f.options(append(c.opts, middleware.PartialAnswers())...)...)
				e := kafkaBatch(c.does)
				if c.change != nil {
					c.change(&e)
				}
				r, err := h(ctx, e)
				answer := string(expect.Value(json.Marshal(r))(t))
				if errors.As(err, new(*middleware.BatchError)) != c.fails || !c.fails && err != nil || c.answer != "" && answer != c.answer {
					t.Errorf("%s, %v, want %s", answer, err, c.answer)
				}
			})
		})
	}
	wantPanic(t, func() {
		middleware.EachSQSMessage(keyfuncs.SQSMessage, handles[events.SQSMessage], newFixture().options(middleware.PartialAnswers())...)
	}, "PartialAnswers is for EachKafkaRecord")
	wantPanic(t, func() {
		middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, handles[awsevents.CustomBusEvent], newFixture().options(middleware.PartialAnswers())...)
	}, "PartialAnswers is for EachKafkaRecord")
	wantPanic(t, func() {
		middleware.WithLock(keyfuncs.Static("n"), handles[order], newFixture().options(middleware.PartialAnswers())...)
	}, "PartialAnswers")
}

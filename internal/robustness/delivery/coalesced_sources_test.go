package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

var quietly = slog.New(slog.DiscardHandler)

// mergedSource is what differs between the sources of [TestCoalescedDelivery].
type mergedSource struct {
	ordered bool
	// deliver returns the changes that the function returned.
	deliver func(context.Context, *mergedProcess, []*mergedChange) []*mergedChange
	// again returns what comes again of a batch if these were returned.
	again func(batch, returned []*mergedChange) []*mergedChange
}

// onlyThey come again.
func onlyThey(_, returned []*mergedChange) []*mergedChange { return returned }

// fromTheFirst on, all come again.
func fromTheFirst(batch, returned []*mergedChange) []*mergedChange {
	for i, c := range batch {
		if slices.Contains(returned, c) {
			return batch[i:]
		}
	}
	return nil
}

// allOrNone come again.
func allOrNone(batch, returned []*mergedChange) []*mergedChange {
	if len(returned) > 0 {
		return batch
	}
	return nil
}

var mergedSources = map[string]mergedSource{
	"SQS":  {false, deliverMessages(false), onlyThey},
	"FIFO": {true, deliverMessages(true), onlyThey},
	"Kinesis": {true, func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(r events.KinesisEventRecord) string { return r.Kinesis.SequenceNumber }
		var e middleware.KinesisRecords
		for _, c := range batch {
			e.Records = append(e.Records, events.KinesisEventRecord{EventID: "shard:" + c.id, Kinesis: events.KinesisRecord{SequenceNumber: c.id}})
		}
		h := middleware.EachKinesisRecord(mergedKey(p, id), mergedHandler(p, id), mergedOptions(p, id)...)
		answer, err := h(ctx, e)
		return p.returned(batch, err, ids(answer.BatchItemFailures, func(f events.KinesisBatchItemFailure) string { return f.ItemIdentifier }))
	}, fromTheFirst},
	"DynamoDB": {true, func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(r events.DynamoDBEventRecord) string { return r.Change.SequenceNumber }
		var e middleware.DynamoDBRecords
		for _, c := range batch {
			e.Records = append(e.Records, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{SequenceNumber: c.id}})
		}
		h := middleware.EachDynamoDBRecord(mergedKey(p, id), mergedHandler(p, id), mergedOptions(p, id)...)
		answer, err := h(ctx, e)
		return p.returned(batch, err, ids(answer.BatchItemFailures, func(f events.DynamoDBBatchItemFailure) string { return f.ItemIdentifier }))
	}, fromTheFirst},
	"Kafka": {true, func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(r events.KafkaRecord) string { return r.Key }
		e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
		for i, c := range batch {
			partition := fmt.Sprint("t-", i%2)
			e.Records[partition] = append(e.Records[partition], events.KafkaRecord{Topic: "t", Partition: int64(i % 2), Key: c.id})
		}
		h := middleware.EachKafkaRecord(mergedKey(p, id), mergedHandler(p, id), mergedOptions(p, id)...)
		if _, err := h(ctx, e); err != nil {
			return batch
		}
		return nil
	}, allOrNone},
	"Kafka, in part": {true, func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(r events.KafkaRecord) string { return r.Key }
		e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
		for i, c := range batch {
			e.Records["t-0"] = append(e.Records["t-0"], events.KafkaRecord{Topic: "t", Offset: int64(i), Key: c.id})
		}
		h := middleware.EachKafkaRecord(mergedKey(p, id), mergedHandler(p, id), append(mergedOptions(p, id), middleware.PartialAnswers())...)
		answer, err := h(ctx, e)
		return p.returned(batch, err, ids(answer.BatchItemFailures, func(f awsevents.KafkaBatchItemFailure) string { return batch[f.ItemIdentifier.Offset].id }))
	}, onlyThey},
	"custom bus": {true, func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(e awsevents.CustomBusEvent) string { return e.SystemMetadata.EventID }
		var e awsevents.CustomBusEvents
		for _, c := range batch {
			e = append(e, awsevents.CustomBusEvent{SystemMetadata: awsevents.CustomBusSystemMetadata{EventID: c.id, EventGroupID: "g"}})
		}
		h := middleware.EachEventBridgeEvent(mergedKey(p, id), mergedHandler(p, id), mergedOptions(p, id)...)
		if err := h(ctx, e); err != nil {
			return batch
		}
		return nil
	}, allOrNone},
}

func deliverMessages(fifo bool) func(context.Context, *mergedProcess, []*mergedChange) []*mergedChange {
	return func(ctx context.Context, p *mergedProcess, batch []*mergedChange) []*mergedChange {
		id := func(m events.SQSMessage) string { return m.MessageId }
		var e events.SQSEvent
		for _, c := range batch {
			m := events.SQSMessage{MessageId: c.id, EventSource: "aws:sqs", Attributes: map[string]string{}}
			if fifo {
				m.Attributes["MessageGroupId"], m.Attributes["SequenceNumber"] = "g", c.id
			}
			e.Records = append(e.Records, m)
		}
		h := middleware.EachSQSMessage(mergedKey(p, id), mergedHandler(p, id), mergedOptions(p, id)...)
		answer, err := h(ctx, e)
		return p.returned(batch, err, ids(answer.BatchItemFailures, func(f events.SQSBatchItemFailure) string { return f.ItemIdentifier }))
	}
}

func mergedKey[R any](p *mergedProcess, id func(R) string) func(context.Context, R) (lock.Key, error) {
	return func(_ context.Context, r R) (lock.Key, error) {
		return lock.Key{Name: p.m.byID[id(r)].name, Event: id(r)}, nil
	}
}

func mergedHandler[R any](p *mergedProcess, id func(R) string) func(context.Context, R) error {
	return func(ctx context.Context, r R) error { return p.work(ctx, id(r)) }
}

func mergedOptions[R any](p *mergedProcess, id func(R) string) []middleware.Option {
	moves := middleware.OnFailed(func(_ context.Context, failed []*middleware.Failed[R]) {
		for _, f := range failed {
			if p.m.move(id(f.Record), f.Err) {
				f.Err = nil
			}
		}
	})
	options := append(slices.Clone(p.m.options), middleware.Store(p), moves)
	switch any(*new(R)).(type) {
	case events.SQSMessage, awsevents.CustomBusEvent: // which always keep the order of their groups
	default:
		if p.m.byName {
			options = append(options, middleware.OrderPerName())
		}
	}
	return options
}

// returned returns the changes that a function returned, by a partial answer.
func (p *mergedProcess) returned(batch []*mergedChange, err error, failed []string) (changes []*mergedChange) {
	for _, c := range batch {
		if slices.Contains(failed, c.id) {
			changes = append(changes, c)
		}
	}
	if err != nil && !errors.As(err, new(*middleware.BatchError)) {
		return batch
	}
	return changes
}

func ids[F any](failures []F, id func(F) string) (all []string) {
	for _, f := range failures {
		all = append(all, id(f))
	}
	return all
}

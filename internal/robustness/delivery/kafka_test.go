package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	pollersOfTopic    = 3
	partitionsOfOne   = 2 // poller
	partitionsOfTopic = pollersOfTopic * partitionsOfOne
	keysOfTopic       = 20
)

// topic is a Kafka topic with an event source mapping that takes partial
// answers. A poller reads some partitions, one batch at a time, until all of it
// has succeeded or is given up. Lambda repeats the records that an answer
// names, or each partition from the first of them on: AWS does not say which.
// After a rebalance, another poller delivers a batch as well.
// https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
type topic struct {
	*function[events.KafkaEvent, awsevents.KafkaEventResponse]
	records map[*event]events.KafkaRecord
	pollers [pollersOfTopic][]*event
}

// newTopic returns a topic of n records. If byName, the order to keep is that
// of each key, else that of the partition.
func newTopic(w *world, n int, byName bool, with ...middleware.Option) *topic {
	id := func(r events.KafkaRecord) string { return recordID(partitionOf(r), r.Offset) }
	name := func(r events.KafkaRecord) string { return r.Topic + " " + r.Key }
	key := keyfuncs.Func[events.KafkaRecord](keyfuncs.KafkaRecord)
	if byName {
		key = keyfuncs.EventFrom(keyfuncs.ByField(name), key)
	}
	key = keyed(w, key, id)
	handler := func(ctx context.Context, r events.KafkaRecord) error { return w.work(ctx, id(r), r.Value) }
	t := &topic{
		function: &function[events.KafkaEvent, awsevents.KafkaEventResponse]{w: w, with: append(with, middleware.PartialAnswers())},
		records:  map[*event]events.KafkaRecord{},
	}
	w.batches = true
	t.wrap = func(o ...middleware.Option) func(context.Context, events.KafkaEvent) (awsevents.KafkaEventResponse, error) {
		return middleware.EachKafkaRecord(key, handler, append(o, inTurn(id))...)
	}
	for i := range n {
		k := w.random.IntN(keysOfTopic)
		partition := k % partitionsOfTopic
		r := events.KafkaRecord{Topic: "orders", Partition: int64(partition), Offset: int64(i), Key: fmt.Sprint("key ", k)}
		r.Timestamp.Time = w.began.Add(time.Duration(i) * time.Millisecond)
		resource, inOrder := id(r), partitionOf(r)
		if byName {
			resource, inOrder = name(r), name(r)
		}
		e := w.event(id(r), resource, inOrder)
		r.Value = w.body(e, r.Key)
		poller := partition % pollersOfTopic
		t.pollers[poller], t.records[e] = append(t.pollers[poller], e), r
	}
	return t
}

func partitionOf(r events.KafkaRecord) string { return fmt.Sprintf("%s-%d", r.Topic, r.Partition) }

func recordID(partition string, offset int64) string { return fmt.Sprint(partition, "@", offset) }

func (t *topic) drain() {
	var wg sync.WaitGroup
	for i, records := range t.pollers {
		wg.Go(func() {
			for batch := range slices.Chunk(records, streamBatch) {
				if t.w.roll(20) == 0 {
					t.w.mu.Lock()
					t.w.copies++
					t.w.mu.Unlock()
					after := time.Duration(t.w.roll(2000)) * time.Millisecond
					wg.Go(func() {
						time.Sleep(after)
						t.w.turn("rebalance of " + batch[0].id)
						t.deliver(batch)
					})
				}
				t.process(fmt.Sprint("poller ", i), batch)
			}
		})
	}
	wg.Wait()
}

// process delivers a batch until all of it has succeeded or is given up. What
// has used up its attempts is split, and a single record is given up.
func (t *topic) process(who string, batch []*event) {
	for failures := 0; len(batch) > 0; {
		t.w.turn(who)
		if time.Since(t.w.began) > longest {
			t.w.complain("%s is stuck at %s", who, batch[0].id)
			return
		}
		left := t.deliver(batch)
		if failures++; len(left) < len(batch) {
			failures = 0
		}
		batch = left
		switch {
		case failures < maxAttempts:
		case len(batch) == 1:
			t.w.giveUp(batch)
			return
		default:
			t.process(who, batch[:len(batch)/2])
			t.process(who, batch[len(batch)/2:])
			return
		}
		time.Sleep(min(15*time.Second, time.Second<<failures))
	}
}

// deliver returns the records to deliver again.
func (t *topic) deliver(batch []*event) []*event {
	e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
	var records []*event // as the wrapper lists them
	for _, of := range batch {
		p := partitionOf(t.records[of])
		e.Records[p] = append(e.Records[p], t.records[of])
	}
	for p := range partitionsOfTopic {
		for _, of := range batch {
			if t.records[of].Partition == int64(p) {
				records = append(records, of)
			}
		}
	}
	var ids, failed []string
	for _, of := range records {
		ids = append(ids, of.id)
	}
	out := t.invoke(records, e, func(inv *invocation, a awsevents.KafkaEventResponse, err error) {
		if a.BatchItemFailures == nil {
			t.w.complain("the list of an answer is null")
		}
		answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, f := range a.BatchItemFailures {
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: recordID(f.ItemIdentifier.Partition, f.ItemIdentifier.Offset)})
		}
		failed = t.w.failed(eventsource.SQS, inv, ids, answer, err)
	})
	if out != answered {
		return batch
	}
	return t.again(batch, failed)
}

// again returns what comes again of a batch of which these records failed.
func (t *topic) again(batch []*event, failed []string) []*event {
	fromTheFirst, reached := t.w.roll(2) == 0, map[int64]bool{}
	return slices.DeleteFunc(slices.Clone(batch), func(e *event) bool {
		p := t.records[e].Partition
		reached[p] = reached[p] || slices.Contains(failed, e.id)
		return !slices.Contains(failed, e.id) && (!fromTheFirst || !reached[p])
	})
}

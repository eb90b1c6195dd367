package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	streamBatch = 30
	// maxAttempts of a batch: then it is split, and a single record is given up.
	// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
	maxAttempts = 10
	shards      = 4 // halfway each is split or merged, and another one goes on
	keysOfShard = 6
	// longestPause between two attempts. AWS does not say how long they are apart.
	longestPause = 15 * time.Second
)

// stream is a Kinesis stream with its event source mapping: of each shard one
// batch at a time, in order. Every partition key is in all shards, as with an
// ExplicitHashKey.
// https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
type stream struct {
	*function[events.KinesisEvent, events.KinesisEventResponse]
	shards [2 * shards][]piece // the one after a shard is shards further on
}

type piece struct {
	event  *event
	record events.KinesisEventRecord
}

// newStream returns a stream of n records. If byName, the order to keep is that
// of each partition key, else that of the shard.
func newStream(w *world, n int, byName bool, with ...middleware.Option) *stream {
	id := func(r events.KinesisEventRecord) string { return r.Kinesis.SequenceNumber }
	key := keyed(w, keyfuncs.KinesisRecord, id)
	handler := func(ctx context.Context, r events.KinesisEventRecord) error {
		return w.work(ctx, id(r), string(r.Kinesis.Data))
	}
	s := &stream{function: &function[events.KinesisEvent, events.KinesisEventResponse]{w: w, with: with}}
	s.wrap = func(o ...middleware.Option) func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error) {
		return middleware.EachKinesisRecord(key, handler, o...)
	}
	for i := range n {
		lineage := i % shards
		shard := lineage + 2*i/n*shards
		number := fmt.Sprintf("4959033827149025660855969253836157109591578%013d", 7*i)
		partition := fmt.Sprint("key ", w.random.IntN(keysOfShard))
		resource := fmt.Sprintf("%s of shard %d", partition, lineage)
		inOrder := fmt.Sprint("shard ", lineage)
		if byName {
			inOrder = resource
		}
		e := w.event(number, resource, inOrder)
		r := events.KinesisEventRecord{
			EventID: fmt.Sprintf("shardId-%012d:%s", shard, number), EventSource: "aws:kinesis",
			EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/orders",
		}
		r.Kinesis.PartitionKey, r.Kinesis.SequenceNumber = partition, number
		r.Kinesis.Data = []byte(w.body(e, partition))
		s.shards[shard] = append(s.shards[shard], piece{e, r})
	}
	return s
}

func (s *stream) drain() {
	var wg sync.WaitGroup
	for i := range shards {
		wg.Go(func() { // a shard is read to its end before the one after it
			for _, pieces := range [][]piece{s.shards[i], s.shards[i+shards]} {
				for batch := range slices.Chunk(pieces, streamBatch) {
					s.process(batch)
				}
			}
		})
	}
	wg.Wait()
}

// process delivers a batch until all of it has succeeded or is given up. It
// does not deliver again what succeeded; it splits a batch that has used up its
// attempts, which gives each half new ones. Lambda may split sooner, at the
// first failure; here a batch is delivered whole as often as possible.
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
func (s *stream) process(batch []piece) {
	for attempt := 1; len(batch) > 0; attempt++ {
		succeeded := s.deliver(batch)
		if batch = batch[succeeded:]; len(batch) == 0 {
			return
		}
		if succeeded > 0 {
			attempt = 1
		}
		switch {
		case time.Since(s.w.began) > longest:
			s.w.complain("a shard is stuck at %s", batch[0].event.id)
			return
		case attempt < maxAttempts:
			time.Sleep(min(longestPause, time.Second<<attempt))
		case len(batch) == 1:
			s.w.giveUp(batch[0].event)
			return
		default:
			s.process(batch[:len(batch)/2])
			batch, attempt = batch[len(batch)/2:], 0
		}
	}
}

// deliver returns how many records succeeded. The shard goes on at the lowest
// sequence number that is listed; an empty list says that all succeeded.
func (s *stream) deliver(batch []piece) int {
	var e events.KinesisEvent
	var records []*event
	for _, p := range batch {
		e.Records = append(e.Records, p.record)
		records = append(records, p.event)
	}
	succeeded := len(batch)
	_, out := s.invoke(records, e, func(inv *invocation, a events.KinesisEventResponse, err error) {
		listed := map[*event]bool{}
		for _, f := range a.BatchItemFailures {
			n := slices.IndexFunc(records, func(e *event) bool { return e.id == f.ItemIdentifier })
			if n < 0 {
				s.w.complain("the answer names %q, which is not in the batch", f.ItemIdentifier)
				continue
			}
			listed[records[n]] = true
			succeeded = min(succeeded, n)
		}
		s.w.checkAnswer(records, a.BatchItemFailures == nil, listed, err)
		s.w.answered(inv, listed)
	})
	if out != answered {
		return 0
	}
	return succeeded
}

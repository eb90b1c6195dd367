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
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	streamBatch = 30
	// maxAttempts of a batch: then it is split, and a single record is given up.
	// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
	maxAttempts = 10
	shards      = 4 // halfway each is split or merged, and another one goes on
	keysOfShard = 6
)

// stream is a Kinesis stream with its event source mapping: of each shard one
// batch at a time, in order. Every partition key is in all shards, as with an
// ExplicitHashKey.
// https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
type stream struct {
	*function[middleware.KinesisRecords, events.KinesisEventResponse]
	records map[*event]events.KinesisEventRecord
	shards  [2 * shards][]*event // the one after a shard is shards further on
}

// newStream returns a stream of n records. If byName, the order to keep is that
// of each partition key, else that of the shard.
func newStream(w *world, n int, byName bool, with ...middleware.Option) *stream {
	id := func(r events.KinesisEventRecord) string { return r.Kinesis.SequenceNumber }
	key := keyed(w, keyfuncs.KinesisRecord, id)
	handler := func(ctx context.Context, r events.KinesisEventRecord) error {
		return w.work(ctx, id(r), string(r.Kinesis.Data))
	}
	s := &stream{function: &function[middleware.KinesisRecords, events.KinesisEventResponse]{w: w, with: with}, records: map[*event]events.KinesisEventRecord{}}
	w.batches = true
	s.wrap = func(o ...middleware.Option) func(context.Context, middleware.KinesisRecords) (events.KinesisEventResponse, error) {
		return middleware.EachKinesisRecord(key, handler, append(o, inTurn(id))...)
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
		s.shards[shard], s.records[e] = append(s.shards[shard], e), r
	}
	return s
}

func (s *stream) drain() {
	var wg sync.WaitGroup
	for i := range shards {
		wg.Go(func() { // a shard is read to its end before the one after it
			for _, records := range [][]*event{s.shards[i], s.shards[i+shards]} {
				for batch := range slices.Chunk(records, streamBatch) {
					s.process(batch)
				}
			}
		})
	}
	wg.Wait()
}

// process delivers a batch until all of it has succeeded or is given up. A
// batch that has used up its attempts is split, which gives each half new ones.
// Lambda may split sooner; here a batch is delivered whole as often as
// possible.
func (s *stream) process(batch []*event) {
	b := eventsource.NewBatch(batch, maxAttempts)
	b.BisectAfter, b.GiveUp = maxAttempts, s.w.giveUp
	_ = b.Run(context.Background(), func(batch []*event, _ *eventsource.Wait) (int, bool, error) {
		s.w.turn("batch of " + batch[0].id)
		if time.Since(s.w.began) > longest {
			s.w.complain("a shard is stuck at %s", batch[0].id)
			return 0, false, context.DeadlineExceeded
		}
		return s.deliver(batch), true, nil
	})
}

// deliver returns how many records succeeded before the first that did not.
func (s *stream) deliver(batch []*event) int {
	var e middleware.KinesisRecords
	var ids []string
	for _, of := range batch {
		e.Records, ids = append(e.Records, s.records[of]), append(ids, of.id)
	}
	var failed []string
	out := s.invoke(batch, e, func(inv *invocation, a events.KinesisEventResponse, err error) {
		failed = s.w.failed(eventsource.Kinesis, inv, ids, a, err)
	})
	if out != answered {
		return 0
	}
	return len(batch) - len(failed)
}

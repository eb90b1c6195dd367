package middleware_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestKinesisWithoutPartitionKeys shows that every record of a stream without
// partition keys is handled once, also when one fails and the rest comes again,
// whatever the key function takes from the record.
func TestKinesisWithoutPartitionKeys(t *testing.T) { // F60
	t.Parallel()
	bySensor := keyfuncs.KinesisBody(jmespath.Path("sensor"))
	keys := map[string]keyfuncs.Func[events.KinesisEventRecord]{
		"KinesisRecord":         keyfuncs.KinesisRecord,
		"order of the body":     keyfuncs.OrderFrom(bySensor, keyfuncs.KinesisRecord),
		"event from the record": keyfuncs.EventFrom(bySensor, keyfuncs.KinesisRecord),
		"joined":                keyfuncs.Join(keyfuncs.KinesisRecord, bySensor),
		"record or partition": keyfuncs.EventFrom(keyfuncs.ByField(func(r events.KinesisEventRecord) string {
			return cmp.Or(r.Kinesis.PartitionKey, r.EventID)
		}), keyfuncs.KinesisRecord),
	}
	members := map[string]func(i int) string{
		"absent": func(int) string { return "" },
		"null":   func(int) string { return `"partitionKey":null,` },
		"mixed":  func(i int) string { return []string{"", `"partitionKey":null,`, `"partitionKey":"a",`}[i%3] },
	}
	for function, key := range keys {
		for which, member := range members {
			for _, opts := range [][]middleware.Option{nil, {middleware.OrderPerName()}} {
				t.Run(fmt.Sprintf("%s, %s, %d options", function, which, len(opts)), func(t *testing.T) {
					deliverUntilDone(t, key, member, opts)
				})
			}
		}
	}
}

// deliverUntilDone delivers nine records of two shards, as Lambda does: from
// the first failed one of the shard on. The third one fails twice.
func deliverUntilDone(t *testing.T, key keyfuncs.Func[events.KinesisEventRecord], member func(i int) string, opts []middleware.Option) {
	t.Helper()
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		failures, ran := 2, map[string]int{}
		var mu sync.Mutex
		h := middleware.EachKinesisRecord(key, func(_ context.Context, r events.KinesisEventRecord) error {
			mu.Lock()
			defer mu.Unlock()
			if r.EventID == "shardId-000000000001:102" && failures > 0 {
				failures--
				return errRecord
			}
			ran[r.EventID]++
			return nil
		}, newFixture().options(opts...)...)
		for shard := range 2 {
			var records []string
			for i := range 9 {
				records = append(records, fmt.Sprintf(`{"eventSource":"aws:kinesis","eventID":"shardId-00000000000%d:%d","eventSourceARN":"arn:aws:kinesis:us-east-2:123456789012:stream/readings","kinesis":{%[3]s"sequenceNumber":"%[2]d","data":%[4]q}}`,
					shard, 100+i, member(i), base64.StdEncoding.EncodeToString([]byte(`{"sensor":"kitchen"}`))))
			}
			for deliveries := 0; len(records) > 0; deliveries++ {
				if deliveries > 3 {
					t.Fatalf("%d records of shard %d stand still", len(records), shard)
				}
				var e middleware.KinesisRecords
				expect.Must(t, json.Unmarshal([]byte(`{"Records":[`+strings.Join(records, ",")+`]}`), &e))
				answer, err := h(ctx, e)
				var rest []string
				for i, r := range e.Records {
					if err != nil || len(answer.BatchItemFailures) > 0 && answer.BatchItemFailures[0].ItemIdentifier == r.Kinesis.SequenceNumber {
						rest = records[i:]
						break
					}
				}
				if len(rest) == 0 { // Lambda delivers the last batch once more, as it may
					again, err := h(ctx, e)
					wantReturned(t, again, err)
				}
				records = rest
			}
		}
		for id, n := range ran {
			if n != 1 {
				t.Errorf("record %s ran %d times", id, n)
			}
		}
		if len(ran) != 18 {
			t.Errorf("%d records of 18 ran", len(ran))
		}
	})
}

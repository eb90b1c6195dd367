package keyfuncs_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// onlyRecord takes the key of the only record of an event.
func onlyRecord(key keyfuncs.Func[events.KafkaRecord]) keyfuncs.Func[events.KafkaEvent] {
	return func(ctx context.Context, e events.KafkaEvent) (lock.Key, error) {
		for _, partition := range e.Records {
			if len(partition) > 0 {
				return key(ctx, partition[0])
			}
		}
		return lock.Key{}, &lock.NoKeyError{Field: "records", Reason: "is empty"}
	}
}

// kafkaKey locks a record's key, so that only one record of a key is worked on
// at a time.
var kafkaKey = keyfuncs.EventFrom(
	keyfuncs.ByField(func(r events.KafkaRecord) string { return "kafka/" + r.Topic + "/" + r.Key }),
	keyfuncs.KafkaRecord,
)

func TestKafkaRecord(t *testing.T) {
	t.Parallel()
	first := func(change func(*events.KafkaRecord)) func(*events.KafkaEvent) {
		return func(e *events.KafkaEvent) { change(&e.Records["orders-0"][0]) }
	}
	byRecord, byKey := onlyRecord(keyfuncs.KafkaRecord), onlyRecord(kafkaKey)
	gives(t, "kafka.json", byRecord, lock.Key{Name: "kafka/orders/0/15/1795249183000", Event: "0/15/1795249183000"})
	gives(t, "kafka.json", byKey, lock.Key{
		Name: "kafka/orders/amFuZQ==", Event: "event/kafka%2Forders%2F0%2F15%2F1795249183000/0%2F15%2F1795249183000",
	})
	refuses(t, "kafka.json", byRecord, map[string]func(*events.KafkaEvent){
		"topic": first(func(r *events.KafkaRecord) { r.Topic = "" }),
	})
	apart(t, "kafka.json", byRecord, map[string]func(*events.KafkaEvent){
		"another topic":     first(func(r *events.KafkaRecord) { r.Topic = "parcels" }),
		"another partition": first(func(r *events.KafkaRecord) { r.Partition++ }),
		"another offset":    first(func(r *events.KafkaRecord) { r.Offset++ }),
		"the same offset of a topic that was created anew": first(func(r *events.KafkaRecord) { r.Timestamp.Time = r.Timestamp.Add(1e6) }),
	})
}

package keyfuncs_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// onlyChange takes the key of the only change of an event.
func onlyChange(key keyfuncs.Func[awsevents.DocumentDBEventRecord]) keyfuncs.Func[awsevents.DocumentDBEvent] {
	return func(ctx context.Context, e awsevents.DocumentDBEvent) (lock.Key, error) {
		if len(e.Events) == 0 {
			return lock.Key{}, &lock.NoKeyError{Field: "events", Reason: "is empty"}
		}
		return key(ctx, e.Events[0])
	}
}

func TestDocumentDBRecord(t *testing.T) {
	t.Parallel()
	key := onlyChange(keyfuncs.DocumentDBRecord)
	gives(t, "documentdb.json", key, lock.Key{
		Name: "documentdb/arn:aws:rds:us-east-1:123456789012:cluster:canaryclusterb2a659a2-qo5tcmqkcl03/test_database/test_collection/" +
			"%7B%22_id%22:%7B%22$oid%22:%2263eeb6e7d418cd98afb1c1d7%22%7D%7D",
		Event: "0163eeb6e7000000090100000009000041e1",
	})
	first := func(change func(*awsevents.DocumentDBChange)) func(*awsevents.DocumentDBEvent) {
		return func(e *awsevents.DocumentDBEvent) { change(&e.Events[0].Event) }
	}
	apart(t, "documentdb.json", key, map[string]func(*awsevents.DocumentDBEvent){
		"another change":     first(func(c *awsevents.DocumentDBChange) { c.ID.Data += "2" }),
		"another document":   first(func(c *awsevents.DocumentDBChange) { c.DocumentKey = json.RawMessage(`{"_id":17}`) }),
		"no document":        first(func(c *awsevents.DocumentDBChange) { c.DocumentKey = nil }),
		"another collection": first(func(c *awsevents.DocumentDBChange) { c.Namespace.Collection += "2" }),
		"another database":   first(func(c *awsevents.DocumentDBChange) { c.Namespace.Database += "2" }),
		"another cluster":    func(e *awsevents.DocumentDBEvent) { e.Events[0].Cluster += "2" },
	})
	refuses(t, "documentdb.json", key, map[string]func(*awsevents.DocumentDBEvent){
		"event._id._data":   first(func(c *awsevents.DocumentDBChange) { c.ID.Data = "" }),
		"event.documentKey": first(func(c *awsevents.DocumentDBChange) { c.DocumentKey = json.RawMessage(`{`) }),
	})
}

// TestDocumentDBEvent: only the event says of which cluster its changes are.
func TestDocumentDBEvent(t *testing.T) {
	t.Parallel()
	var e awsevents.DocumentDBEvent
	if err := json.Unmarshal([]byte(text(t, "documentdb.json")), &e); err != nil || len(e.Events) == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	for i, r := range e.Events {
		if r.Cluster == "" || r.Cluster != e.EventSourceARN {
			t.Errorf("change %d is of cluster %q, want %q", i, r.Cluster, e.EventSourceARN)
		}
	}
	if err := json.Unmarshal([]byte(`{"events":{}}`), &e); err == nil {
		t.Error("events that are not a list are decoded without an error")
	}
}

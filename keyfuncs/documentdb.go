package keyfuncs

import (
	"context"
	"encoding/json"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// DocumentDBEvent is a batch of changes from a DocumentDB change stream, for which
// aws-lambda-go has no type.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html.
type DocumentDBEvent struct {
	EventSource    string                  `json:"eventSource"`
	EventSourceARN string                  `json:"eventSourceArn"` // of the cluster
	Events         []DocumentDBEventRecord `json:"events"`
}

// DocumentDBEventRecord is one change of a batch.
type DocumentDBEventRecord struct {
	// Cluster is the ARN of the cluster. Decoding an event fills it in.
	Cluster string           `json:"-"`
	Event   DocumentDBChange `json:"event"`
}

// DocumentDBChange is a change as the stream describes it. Its documents are in
// MongoDB's extended JSON.
//
// Source: https://www.mongodb.com/docs/manual/reference/change-events/.
type DocumentDBChange struct {
	ID struct {
		Data string `json:"_data"` // the resume token
	} `json:"_id"`
	OperationType string `json:"operationType"` // insert, update, replace, delete and others
	Namespace     struct {
		Database   string `json:"db"`
		Collection string `json:"coll"`
	} `json:"ns"`
	ClusterTime       json.RawMessage `json:"clusterTime,omitempty"`
	DocumentKey       json.RawMessage `json:"documentKey,omitempty"` // empty if no single document changed
	FullDocument      json.RawMessage `json:"fullDocument,omitempty"`
	UpdateDescription json.RawMessage `json:"updateDescription,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *DocumentDBEvent) UnmarshalJSON(b []byte) error {
	type plain DocumentDBEvent // without this method
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	for i := range e.Events {
		e.Events[i].Cluster = e.EventSourceARN
	}
	return nil
}

// DocumentDB works on one change of a document at a time, each once, for events of
// exactly one change (an event source mapping with a batch size of 1). Name is
// cluster, database, collection and document key, Event the resume token, which
// identifies a change in its stream. A change that concerns no single document,
// such as the end of a collection, has a name without one. No Order: AWS does not
// say how tokens compare. The stream itself is in order.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html,
// https://docs.aws.amazon.com/documentdb/latest/developerguide/change_streams.html.
func DocumentDB(ctx context.Context, e DocumentDBEvent) (lock.Key, error) {
	if err := foreign("eventSource", e.EventSource, eventkind.DocumentDB); err != nil {
		return lock.Key{}, err
	}
	return only(ctx, "events", e.Events, DocumentDBRecord, "wrap a handler of one change with middleware.EachDocumentDBRecord")
}

// DocumentDBRecord is [DocumentDB] for one change of a batch.
func DocumentDBRecord(_ context.Context, r DocumentDBEventRecord) (lock.Key, error) {
	c := r.Event
	if c.ID.Data == "" {
		return lock.Key{}, missing("event._id._data")
	}
	document := ""
	if len(c.DocumentKey) > 0 {
		text, err := canonical(c.DocumentKey)
		if err != nil {
			return lock.Key{}, &lock.KeyError{Field: "event.documentKey", Reason: "is not JSON", Err: err}
		}
		document = string(text)
	}
	return lock.Key{Name: named("documentdb", r.Cluster, c.Namespace.Database, c.Namespace.Collection, document), Event: c.ID.Data}, nil
}

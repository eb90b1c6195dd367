package keyfuncs

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// DocumentDBRecord works on one change of a document at a time, each once. Name
// is cluster, database, collection and document key, which is empty for a
// change that is not of a single document. Event is the resume token. No Order:
// AWS does not say how tokens compare.
func DocumentDBRecord(_ context.Context, r awsevents.DocumentDBEventRecord) (lock.Key, error) {
	c := r.Event
	if c.ID.Data == "" {
		return lock.Key{}, keyparts.Missing("event._id._data")
	}
	document := ""
	if len(c.DocumentKey) > 0 {
		text, err := canonical.JSON(c.DocumentKey)
		if err != nil {
			return lock.Key{}, &lock.NoKeyError{Field: "event.documentKey", Reason: "is not JSON", Err: err}
		}
		document = string(text)
	}
	return lock.Key{Name: keyparts.Name("documentdb", r.Cluster, c.Namespace.Database, c.Namespace.Collection, document), Event: c.ID.Data}, nil
}

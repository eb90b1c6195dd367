package keyfuncs

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// DocumentDBRecord works on one change of a document at a time, each once. Name
// is cluster, database, collection and document key, Event the resume token,
// which identifies a change in its stream. For a change that is not of a single
// document, such as the end of a collection, the document key is empty. No
// Order: AWS does not say how tokens compare. The stream itself is in order.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html,
// https://docs.aws.amazon.com/documentdb/latest/developerguide/change_streams.html.
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

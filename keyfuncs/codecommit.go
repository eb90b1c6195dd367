package keyfuncs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// CodeCommitRecord handles each event of a repository's trigger once. Event is
// event id, number of the part and time; Name is the repository and these. The
// time is part of it because events that test a trigger may all have the same
// id. No Order.
func CodeCommitRecord(_ context.Context, r events.CodeCommitRecord) (lock.Key, error) {
	if err := keyparts.ForeignRecord(r); err != nil {
		return lock.Key{}, err
	}
	if err := keyparts.Required("eventSourceARN", r.EventSourceARN, "eventId", r.EventID); err != nil {
		return lock.Key{}, err
	}
	at := time.Time(r.EventTime).UnixMilli()
	return keyparts.Once("codecommit", fmt.Sprintf("%s/%d/%d", r.EventID, r.EventPartNumber, at), r.EventSourceARN), nil
}

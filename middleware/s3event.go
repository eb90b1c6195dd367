package middleware

import (
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// S3Event is an [events.S3Event] whose records are decoded one by one: a malformed
// object key fails its own record, where aws-lambda-go would refuse the whole
// event. It also keeps what the JSON says and an [events.S3Event] does not: that
// the event comes from another source. In a test, write S3Event{S3Event: e}.
type S3Event struct {
	events.S3Event
	broken  map[int]error
	refused *lock.KeyError // the event is not an S3 notification
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts an event of another
// source; [EachS3Record] refuses it, where the refusal can be observed.
func (e *S3Event) UnmarshalJSON(b []byte) error {
	*e = S3Event{broken: map[int]error{}}
	if kind := eventkind.Of(b); kind != "" && kind != eventkind.S3 && kind != eventkind.S3Test {
		e.refused = &lock.KeyError{Field: "the event", Reason: kind.Refusal("")}
		return nil
	}
	var raw struct{ Records []json.RawMessage }
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if len(raw.Records) == 0 {
		if reason := eventkind.NoS3Records(b, ""); reason != "" {
			e.refused = &lock.KeyError{Field: "the event", Reason: reason}
		}
	}
	e.Records = make([]events.S3EventRecord, len(raw.Records))
	for i, r := range raw.Records {
		if err := json.Unmarshal(r, &e.Records[i]); err != nil {
			e.broken[i] = &lock.KeyError{Field: "s3", Reason: "cannot be decoded", Err: err}
		}
	}
	return nil
}

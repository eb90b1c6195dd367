package middleware

import (
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// S3Records is an [events.S3Event] whose records are decoded one by one: a
// malformed object key fails its own record, where aws-lambda-go would refuse
// the whole event. S3Records also notices an event of another source, which
// only the JSON shows. In a test, write S3Records{S3Event: e}.
type S3Records struct {
	events.S3Event
	broken  map[int]error    // by the index of a record that cannot be decoded
	refused *lock.NoKeyError // if the event is not an S3 notification
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts an event of another
// source, so that [EachS3Record] can refuse it and report that.
func (e *S3Records) UnmarshalJSON(b []byte) error {
	*e = S3Records{broken: map[int]error{}}
	if kind := eventkind.Of(b); kind != nil && kind != eventkind.S3 && kind != eventkind.S3Test {
		e.refused = &lock.NoKeyError{Field: "the event", Reason: kind.Refusal(nil)}
		return nil
	}
	var raw struct{ Records []json.RawMessage }
	if err := json.Unmarshal(b, &raw); err != nil && !eventkind.IsArray(b) {
		return err
	}
	if len(raw.Records) == 0 {
		if reason := eventkind.NoS3Records(b, nil); reason != "" {
			e.refused = &lock.NoKeyError{Field: "the event", Reason: reason}
		}
	}
	e.Records = make([]events.S3EventRecord, len(raw.Records))
	for i, r := range raw.Records {
		if err := json.Unmarshal(r, &e.Records[i]); err != nil {
			e.broken[i] = &lock.NoKeyError{Field: "s3", Reason: "cannot be decoded", Err: err}
		}
	}
	return nil
}

package middleware

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// source is what the batches of one source have of their own.
type source[R any] struct {
	group  func(*R) string          // in which a record keeps its place; empty or nil: none
	strict bool                     // OrderByName does not apply
	place  func(r *R, i int) string // of a record in the event; nil: Records[i]
	broken map[int]error            // records that could not be decoded
}

func (s *source[R]) placeOf(r *R, i int) string {
	if s.place != nil {
		return s.place(r, i)
	}
	return fmt.Sprintf("Records[%d]", i)
}

// BatchError says which records of a batch were not completed. It unwraps to each
// record's error. Handlers of sources without a partial answer return it when a record
// failed, the others only when nothing succeeded: no record was completed, or skipped
// because there was nothing left to do for it.
type BatchError struct {
	Records int            // in the batch
	Failed  []*RecordError // in the order of the batch
}

// shown is how many failed records a message names.
const shown = 5

// Error implements error.
func (e *BatchError) Error() string {
	if e.Records == 0 {
		return "lambdalock: the event has no records: it is of another source than the handler expects"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lambdalock: %d of %d records failed", len(e.Failed), e.Records)
	for _, f := range e.Failed[:min(shown, len(e.Failed))] {
		line, _, _ := strings.Cut(f.Error(), "\n") // without the stack of a panic
		b.WriteString("; " + line)
	}
	if more := len(e.Failed) - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// Unwrap gives each record's error.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// RecordError is why one record of a batch was not completed.
type RecordError struct {
	Record string // its place in the event, such as Records[3]
	Err    error
}

// Error implements error.
func (e *RecordError) Error() string { return e.Record + ": " + e.Err.Error() }

// Unwrap gives the cause: the handler's error, or why the handler did not run.
func (e *RecordError) Unwrap() error { return e.Err }

// PanicError is a panic of the handler of one record, of its key function, or of the
// observer or log handler that was told of it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap gives the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// whole is the outcome for a source that takes an error or nothing.
func whole[R any](errs []error, src source[R], records []R) error {
	e := &BatchError{Records: len(records)}
	for i, err := range errs {
		if err != nil {
			e.Failed = append(e.Failed, &RecordError{Record: src.placeOf(&records[i], i), Err: err})
		}
	}
	if e.Records > 0 && len(e.Failed) == 0 {
		return nil
	}
	return e
}

// partial is the outcome for a source that is told which records failed. The list
// is never nil, which Lambda would read as success, like an empty one. A failed
// record that has no name to be called by fails the batch, because Lambda would
// take a list with an empty name for that anyway.
//
// A batch in which nothing succeeded is an error as well: the source delivers the same
// records again as for a list that names all of them, and only an error is counted by
// Lambda's metric Errors.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
func partial[R, F any](errs []error, src source[R], records []R, name func(*R) (F, bool)) ([]F, error) {
	failed := []F{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		f, ok := name(&records[i])
		if !ok {
			return []F{}, whole(errs, src, records)
		}
		failed = append(failed, f)
	}
	if len(failed) == len(records) { // also of an event without records
		return failed, whole(errs, src, records)
	}
	return failed, nil
}

// S3Event is an [events.S3Event] of which each record is decoded for itself: a
// malformed object key fails its own record, where aws-lambda-go would refuse the
// whole event. It also keeps what the JSON says and an [events.S3Event] does not: that
// the event comes from another source. In a test, write S3Event{S3Event: e}.
type S3Event struct {
	events.S3Event
	broken  map[int]error
	refused *lock.KeyError // the event is no S3 notification
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts an event of another source,
// and [EachS3Record] refuses it: only there can it be observed.
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

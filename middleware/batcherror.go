package middleware

import (
	"fmt"
	"strings"
)

// BatchError says which records of a batch were not completed. It unwraps to each
// record's error. A handler for a source without a partial answer returns it if a
// record failed; the others return it only if nothing succeeded, which means that
// no record was completed or skipped.
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

// Unwrap returns each record's error.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// RecordError says why one record of a batch was not completed.
type RecordError struct {
	Record string // its place in the event, such as Records[3]
	Err    error
}

// Error implements error.
func (e *RecordError) Error() string { return e.Record + ": " + e.Err.Error() }

// Unwrap returns the handler's error, or the reason why the handler did not run.
func (e *RecordError) Unwrap() error { return e.Err }

// PanicError is a panic of the handler of one record, of its key function, or of
// the observer or log handler that was told about it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

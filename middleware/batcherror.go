package middleware

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// BatchError says which records of a batch failed. It unwraps to the error of
// each, but to a [*PermanentError] only if each has one. The handler of a
// source that takes a partial answer returns it only if every record failed, or
// if a record that failed has no identifier; the handler of any other source
// returns it if any record failed. An event without records gives it too,
// except with [EachS3Record].
type BatchError struct {
	Records int            // how many the batch has
	Failed  []*RecordError // in the order of the batch
}

// shown is how many failed records a message names.
const shown = 5

// Error implements error.
func (e *BatchError) Error() string {
	if e.Records == 0 {
		return "lambdalock: the event has no records, so it comes from another source than the handler expects: connect the function to that source, or wrap the handler for this one"
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

// Unwrap returns the error of each record. If only some failed with
// [Permanent], it hides that, because the others need the event again.
func (e *BatchError) Unwrap() []error {
	comesAgain := slices.ContainsFunc(e.Failed, func(f *RecordError) bool { return !isPermanent(f) })
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
		if comesAgain && isPermanent(f) {
			errs[i] = unmarked{f}
		}
	}
	return errs
}

// unmarked is an error in which [errors.As] finds everything but a
// [*PermanentError].
type unmarked struct{ error }

func (e unmarked) Is(target error) bool { return errors.Is(e.error, target) }

func (e unmarked) As(target any) bool {
	_, mark := target.(**PermanentError)
	return !mark && errors.As(e.error, target)
}

// RecordError says why one record of a batch failed.
type RecordError struct {
	Record string // where it is in the event, such as Records[3]
	Err    error
}

// Error implements error.
func (e *RecordError) Error() string { return e.Record + ": " + e.Err.Error() }

// Unwrap returns the error of the handler, or why it did not run.
func (e *RecordError) Unwrap() error { return e.Err }

// PanicError reports a panic of the handler of one record, of its key function,
// of what [Around] calls, or of an observer or log handler that was called for
// it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

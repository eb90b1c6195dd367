package middleware

import "errors"

// PermanentError says that handling the event again would fail again. AWS
// Lambda reports it as errorType "PermanentError", whatever type Err has, so
// that a state machine or an alarm can tell it from other failures by name.
type PermanentError struct {
	Err error // what the handler found
}

// Permanent returns err as a [*PermanentError], for a handler of records that
// knows that the record will fail whenever it is delivered, such as an order
// for an article that does not exist. Package redelivery moves such an SQS
// message to a dead-letter queue, and its FIFO message group goes on;
// [OnFailed] may do the same for other sources. Otherwise the record fails like
// any other, and one warning is logged. If err is nil, Permanent returns nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{err}
}

func isPermanent(err error) bool { return errors.As(err, new(*PermanentError)) }

// Error implements error.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PermanentError) Unwrap() error { return e.Err }

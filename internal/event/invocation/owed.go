package invocation

import "fmt"

// OwedError is why work failed although other events, which were acknowledged,
// rely on another run, or may. It hides Err, which may say that the event need
// not be delivered again.
type OwedError struct {
	Key string // digest
	Err error
}

// Error implements error.
func (e *OwedError) Error() string {
	return fmt.Sprintf("lambdalock: key %s: other events rely on another run, or may, so the source has to deliver the event again although the work failed: %v", e.Key, e.Err)
}

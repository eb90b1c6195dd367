package locallambda

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxResponse is the size in bytes of the largest response that Lambda accepts
// unless it is streamed: 6 MB, or as the service counts them 6291556 bytes.
const maxResponse = 6291556

// errorDocument is what runtimes post, and what Lambda answers, for a function
// error.
type errorDocument struct {
	ErrorMessage string          `json:"errorMessage"`
	ErrorType    string          `json:"errorType"`
	StackTrace   json.RawMessage `json:"stackTrace,omitempty"`
}

// encode returns the document as JSON. Only the stack trace could fail to
// encode, and that was decoded from JSON.
func (d errorDocument) encode() []byte {
	document, _ := json.Marshal(d)
	return document
}

// ending is how an invocation ended, with an empty error document if it
// succeeded.
type ending struct {
	outcome     Outcome
	payload     []byte
	contentType string
	errorDocument
}

// endsWith returns an ending whose payload is the error document.
func (d errorDocument) endsWith(o Outcome) ending { return ending{o, d.encode(), contentTypeJSON, d} }

func timedOut(id string, after time.Duration) ending {
	return errorDocument{
		ErrorType:    "Sandbox.Timedout",
		ErrorMessage: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", id, after.Seconds()),
	}.endsWith(TimedOut)
}

// crashed describes a process that ended with the given state, as
// os.ProcessState prints it.
func crashed(id, state string) ending {
	message := "Runtime exited with error: " + state
	if state == "exit status 0" {
		message = "Runtime exited without providing a reason"
	}
	return errorDocument{
		ErrorType:    "Runtime.ExitError",
		ErrorMessage: fmt.Sprintf("RequestId: %s Error: %s", id, message),
	}.endsWith(Crashed)
}

func tooLarge() ending {
	return errorDocument{
		ErrorType:    "Function.ResponseSizeTooLarge",
		ErrorMessage: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse),
	}.endsWith(Failed)
}

// decodeError decodes a posted error document. A runtime may leave out the
// body, or post one that is not JSON; the error type is then the header's.
func decodeError(body []byte, headerType string) errorDocument {
	var d errorDocument
	if json.Unmarshal(body, &d) != nil {
		d = errorDocument{ErrorMessage: string(body)}
	}
	if d.ErrorType == "" {
		d.ErrorType = headerType
	}
	return d
}

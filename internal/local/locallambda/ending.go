package locallambda

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxResponse is the size in bytes of the largest response Lambda accepts
// unless it is streamed: 6 MB, or as the service counts them 6291556 bytes.
const maxResponse = 6291556

// errorDocument is what runtimes post, and what Lambda answers, for a function
// error.
type errorDocument struct {
	ErrorMessage string          `json:"errorMessage"`
	ErrorType    string          `json:"errorType"`
	StackTrace   json.RawMessage `json:"stackTrace,omitempty"`
}

// ending is how an invocation ended. A nil payload of one that did not succeed
// stands for the error document.
type ending struct {
	outcome     Outcome
	payload     []byte
	contentType string
	failure     errorDocument
}

func (e ending) describe(r *Result) {
	r.Outcome = e.outcome
	r.Payload = e.payload
	r.ContentType = e.contentType
	if e.outcome == Succeeded {
		return
	}
	r.FunctionError = "Unhandled"
	r.ErrorType = e.failure.ErrorType
	r.ErrorMessage = e.failure.ErrorMessage
	r.StackTrace = e.failure.StackTrace
	if r.Payload == nil {
		r.Payload = e.failure.encode()
		r.ContentType = contentTypeJSON
	}
}

func (d errorDocument) encode() []byte {
	// The only field that could fail to encode is the stack trace, and that was
	// decoded from JSON.
	document, _ := json.Marshal(d)
	return document
}

func failedWith(errorType, message string) ending {
	return ending{outcome: Failed, failure: errorDocument{ErrorType: errorType, ErrorMessage: message}}
}

func timedOut(id string, after time.Duration) ending {
	return ending{outcome: TimedOut, failure: errorDocument{
		ErrorType:    "Sandbox.Timedout",
		ErrorMessage: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", id, after.Seconds()),
	}}
}

// crashed describes a process that ended with the given state, as
// os.ProcessState prints it.
func crashed(id, state string) ending {
	message := "Runtime exited with error: " + state
	if state == "exit status 0" {
		message = "Runtime exited without providing a reason"
	}
	return ending{outcome: Crashed, failure: errorDocument{
		ErrorType:    "Runtime.ExitError",
		ErrorMessage: fmt.Sprintf("RequestId: %s Error: %s", id, message),
	}}
}

func tooLarge() ending {
	return failedWith("Function.ResponseSizeTooLarge",
		fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse))
}

// readError reads a posted error document. A runtime may leave out the body, or
// post one that is not JSON; the error type is then the header's.
func readError(body []byte, headerType string) errorDocument {
	var d errorDocument
	if json.Unmarshal(body, &d) != nil {
		d = errorDocument{ErrorMessage: string(body)}
	}
	if d.ErrorType == "" {
		d.ErrorType = headerType
	}
	return d
}

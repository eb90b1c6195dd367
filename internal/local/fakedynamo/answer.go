package fakedynamo

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
)

// The namespaces of the service's error types.
const (
	dynamoType   = "com.amazonaws.dynamodb.v20120810#"
	coralType    = "com.amazon.coral.service#"
	validateType = "com.amazon.coral.validate#"
)

// apiError is an answer that reports an error.
type apiError struct {
	status  int
	Kind    string `json:"__type"`
	Message string `json:"message,omitempty"`
	Item    item   `json:",omitempty"` // the old item of a failed condition

	// Of a transaction, whose message has another name than any other:
	CancellationReasons []reason `json:",omitempty"`
	Summary             string   `json:"Message,omitempty"`
}

func (e *apiError) Error() string { return e.Message }

// failure returns the error of that type with status 400, the status of every
// error that the service blames on the request.
func failure(kind, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, Kind: kind, Message: message}
}

// invalid returns a ValidationException.
func invalid(format string, args ...any) error {
	return failure(validateType+"ValidationException", fmt.Sprintf(format, args...))
}

// answer writes a result or an error in the form of the protocol.
func answer(w http.ResponseWriter, res any, err error) {
	status := http.StatusOK
	if e := (*apiError)(nil); errors.As(err, &e) {
		status, res = e.status, e
	}
	out, _ := json.Marshal(res) // of strings, numbers and maps: it cannot fail
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("X-Amzn-Requestid", rand.Text())
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(out)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(out)
}

package fakedynamo

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// The namespaces of the service's error types.
const (
	dynamoType   = "com.amazonaws.dynamodb.v20120810#"
	coralType    = "com.amazon.coral.service#"
	validateType = "com.amazon.coral.validate#"
)

// response is a successful answer: an attributes for UpdateItem, and any value
// that encoding/json can write for the table operations.
type response any

// attributes is the answer to UpdateItem: the returned attributes, if any.
type attributes struct{ item item }

// apiError is an answer that reports an error.
type apiError struct {
	status  int
	kind    string // the error's __type
	message string
	item    item // the old item of a failed condition
}

// refusal is an error in the service's own words, to be put into an apiError.
type refusal string

func (r refusal) Error() string { return string(r) }

func refusalf(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// failure returns the error of that type with status 400, the status of every
// error that the service blames on the request.
func failure(kind, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: kind, message: message}
}

// invalid returns a ValidationException.
func invalid(message string) *apiError {
	return failure(validateType+"ValidationException", message)
}

// serialization returns the error for a body that is not what was expected.
func serialization(err error) *apiError {
	return failure(coralType+"SerializationException", err.Error())
}

// answer writes a response or an error in the form of the protocol.
func answer(w http.ResponseWriter, res response, err *apiError) {
	status := http.StatusOK
	out := make([]byte, 0, 512)
	if err != nil {
		status = err.status
		out = err.append(out)
	} else if a, ok := res.(attributes); ok {
		out = a.append(out)
	} else {
		out = appendJSON(out, res)
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(out)))
	h.Set("X-Amzn-Requestid", requestID())
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(out)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(out)
}

// append writes the error's JSON. AccessDeniedException spells its message
// with a capital letter, as the service's authorization layer does.
func (e *apiError) append(dst []byte) []byte {
	dst = append(dst, `{"__type":`...)
	dst = appendString(dst, e.kind)
	if e.kind == coralType+"AccessDeniedException" {
		dst = append(dst, `,"Message":`...)
	} else {
		dst = append(dst, `,"message":`...)
	}
	dst = appendString(dst, e.message)
	if e.item != nil {
		dst = append(dst, `,"Item":`...)
		dst = e.item.append(dst)
	}
	return append(dst, '}')
}

// append writes the JSON of an UpdateItem answer.
func (a attributes) append(dst []byte) []byte {
	if len(a.item) == 0 {
		return append(dst, `{}`...)
	}
	dst = append(dst, `{"Attributes":`...)
	dst = a.item.append(dst)
	return append(dst, '}')
}

// appendJSON writes v with encoding/json.
func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the table operations answer with strings and numbers only
	}
	return append(dst, text...)
}

// requestID returns a random identifier in the form of the service's.
func requestID() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	var id [52]byte
	var bits uint64
	for i := range id {
		if i%12 == 0 {
			bits = rand.Uint64()
		}
		id[i] = letters[bits&31]
		bits >>= 5
	}
	return string(id[:])
}

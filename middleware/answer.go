package middleware

import (
	"encoding/json"
	"reflect"
)

// answer is what to return instead of running the handler.
type answer struct {
	action   action
	err      error  // why the handler does not run; nil if there is nothing to work on
	response any    // of respond
	result   []byte // of replay
}

// failure returns the error for a handler that has no result.
func (a *answer) failure() error {
	if a.action == fail {
		return a.err
	}
	return nil
}

// bytes returns the answer for a raw handler.
func (a *answer) bytes() ([]byte, error) {
	switch a.action {
	case fail:
		return nil, a.err
	case respond:
		switch r := a.response.(type) {
		case []byte:
			return r, nil
		case json.RawMessage:
			return r, nil
		}
		return json.Marshal(a.response)
	}
	return []byte("null"), nil
}

// values returns the answer for a function.
func (a *answer) values(sig signature) []reflect.Value {
	if a.action == fail && !sig.returnsError {
		panic(a.err) // the only way left to fail; Lambda reports the error's type as usual
	}
	out := make([]reflect.Value, sig.t.NumOut())
	for i := range out {
		out[i] = reflect.Zero(sig.t.Out(i))
	}
	switch a.action {
	case fail:
		out[len(out)-1] = reflect.ValueOf(&a.err).Elem()
	case respond:
		if a.response != nil {
			out[0] = reflect.ValueOf(a.response)
		}
	}
	return out
}

// saysAgain reports whether a result with that JSON form asks the source to
// deliver the event, or a part of it, again: a partial answer with failures, or
// a task of S3 Batch Operations that has failed for now, or is left out and
// counts as such. An event of those has one task.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-invoke-lambda.html
func saysAgain(doc []byte) bool {
	const forNow = "TemporaryFailure"
	var members map[string]json.RawMessage
	_ = json.Unmarshal(doc, &members) // nil unless it is an object
	var failures []json.RawMessage
	var tasks []struct {
		ResultCode string `json:"resultCode"`
	}
	var leftOut string
	_ = json.Unmarshal(members["batchItemFailures"], &failures)
	_ = json.Unmarshal(members["results"], &tasks)
	_ = json.Unmarshal(members["treatMissingKeysAs"], &leftOut)
	for _, t := range tasks {
		if t.ResultCode == forNow {
			return true
		}
	}
	return len(failures) > 0 || len(tasks) == 0 && leftOut == forNow
}

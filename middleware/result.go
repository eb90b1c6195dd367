package middleware

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// encode returns the JSON form of a result: that of the runtime, or that of a
// buffered response for a streaming response without a body.
func encode(result any) ([]byte, error) {
	if head, _ := streamingResponse(result); head != nil {
		return head.encoded(), nil
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(result)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// decode returns a stored result as a value of the handler's result type.
// Numbers in an untyped result keep all their digits, also beyond what a
// float64 can hold.
func decode(stored []byte, result reflect.Type) (reflect.Value, error) {
	v := reflect.New(result)
	if result.Implements(readerType) || result == anyType {
		stream, err := decodeStream(stored, result)
		if err != nil {
			return v.Elem(), err
		}
		if stream != nil {
			v.Elem().Set(reflect.ValueOf(stream))
			return v.Elem(), nil
		}
	}
	d := json.NewDecoder(bytes.NewReader(stored))
	d.UseNumber()
	err := d.Decode(v.Interface())
	return v.Elem(), err
}

// typed returns a result for a callback that takes a T.
func typed[T any](result any) T {
	r, _ := result.(T) // a nil interface stays nil
	return r
}

// reportDropped reports that Replay has no result to return.
func (r *handlerRun) reportDropped(err error) {
	o := lock.Observation{Outcome: lock.OutcomeResultDropped, Key: r.key, Err: err}
	if r.lock != nil {
		lease, _ := lock.FromContext(r.ctx)
		o.Key, o.Fence = lease.Key, lease.Fence
	}
	r.w.report(r.ctx, o)
}

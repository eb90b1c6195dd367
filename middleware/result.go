package middleware

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// encode is the result as it is stored for Replay; nil if it has no JSON form.
func (in *handlerRun) encode(result reflect.Value) []byte {
	body, err := json.Marshal(result.Interface())
	if err != nil {
		in.notStored(err)
		return nil
	}
	return body
}

// notStored reports that Replay will have no result to give.
func (in *handlerRun) notStored(err error) {
	if in.d.completed.kind == replay {
		in.d.report(in.ctx, lock.Observation{Outcome: lock.OutcomeResultDropped, Key: in.key, Fence: in.lock.Lease().Fence, Err: err})
	}
}

// decode gives a stored result its type back. Numbers without a type of their own
// stay as they were written, also beyond what a float64 can hold.
func decode(body []byte, result reflect.Type) (reflect.Value, error) {
	v := reflect.New(result)
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err := d.Decode(v.Interface())
	return v.Elem(), err
}

package middleware

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// encode returns a result as it is stored for Replay, or nil if it has no JSON
// form.
func (r *handlerRun) encode(result reflect.Value) []byte {
	b, err := json.Marshal(result.Interface())
	if err != nil {
		r.reportDropped(err)
		return nil
	}
	return b
}

// decode returns a stored result as a value of the handler's result type.
// Numbers in an untyped result keep all their digits, also beyond what a
// float64 can hold.
func decode(stored []byte, result reflect.Type) (reflect.Value, error) {
	v := reflect.New(result)
	d := json.NewDecoder(bytes.NewReader(stored))
	d.UseNumber()
	err := d.Decode(v.Interface())
	return v.Elem(), err
}

// reportDropped reports that Replay has no result to return.
func (r *handlerRun) reportDropped(err error) {
	o := lock.Observation{Outcome: lock.OutcomeResultDropped, Key: r.key, Err: err}
	if r.lock != nil {
		o.Fence = r.lock.Lease().Fence
	}
	r.w.report(r.ctx, o)
}

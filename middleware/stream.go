package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	errNotStored    = errors.New("lambdalock: a streamed result is not stored for Replay")
	errNotJSON      = errors.New("lambdalock: a streamed result is not JSON")
	errBodyPanicked = errors.New("lambdalock: the body panicked") // nobody sees it, because the panic goes on
)

// stream is a streamed result that ends the lock when it ends.
type stream struct {
	body io.Reader
	lock *lock.Lock
	once sync.Once
}

// stream wraps a result that the runtime reads after the handler returned. It
// reports false for every other result: also for a nil pointer, whatever its
// methods, because the runtime sends that as the JSON null.
func (r *handlerRun) stream(result *reflect.Value) bool {
	v := result.Interface()
	if r.lock == nil || isNil(v) {
		return false
	}
	switch response := v.(type) {
	case *events.LambdaFunctionURLStreamingResponse:
		return r.streamBody(&response.Body)
	case *events.APIGatewayProxyStreamingResponse:
		return r.streamBody(&response.Body)
	case io.Reader:
		r.streamBody(&response)
		*result = reflect.ValueOf(response)
		return true
	}
	return false
}

// streamBody wraps a body, and reports false if it is nil.
func (r *handlerRun) streamBody(body *io.Reader) bool {
	if *body == nil {
		return false
	}
	if r.w.completed.action == replay { // the result is declared as any: others are refused at once
		r.reportDropped(errNotStored)
	}
	*body = &stream{body: *body, lock: r.lock}
	r.streamed = true
	return true
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (n int, err error) {
	err = errBodyPanicked
	defer func() {
		if err != nil {
			s.end(err)
		}
	}()
	n, err = s.body.Read(p)
	return n, err
}

// Close implements [io.Closer]. The runtime calls it after every response that
// can be closed.
func (s *stream) Close() error {
	defer s.end(io.ErrUnexpectedEOF) // does nothing if the body was read to its end
	if c, ok := s.body.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// end completes the event if the body was read to its end, and releases the
// lock.
func (s *stream) end(err error) {
	s.once.Do(func() {
		if errors.Is(err, io.EOF) {
			_ = s.lock.Complete(nil) // package lock has reported the error
		}
		_ = s.lock.Release() // does nothing after Complete
	})
}

// ContentType returns the body's content type, or what the runtime sends for
// bodies that have none.
func (s *stream) ContentType() string {
	if t, ok := s.body.(interface{ ContentType() string }); ok {
		return t.ContentType()
	}
	return "application/octet-stream"
}

// MarshalJSON implements [json.Marshaler]. It decides as the runtime does: a
// result that has a JSON form is sent as JSON, although it could be read; any
// other is streamed.
func (s *stream) MarshalJSON() ([]byte, error) {
	panicked := true
	defer func() {
		if panicked {
			s.end(errBodyPanicked)
		}
	}()
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false) // the runtime's encoder escapes if it was told to
	err := e.Encode(s.body)
	panicked = false
	if err != nil || bytes.HasPrefix(buf.Bytes(), []byte("{}")) {
		return nil, errNotJSON
	}
	s.end(io.EOF)
	return buf.Bytes(), nil
}

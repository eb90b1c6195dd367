package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sync"

	"github.com/aws/aws-lambda-go/events"
)

// stream is a streamed result that settles the lock when it ends.
type stream struct {
	body io.Reader
	in   handlerRun
	once sync.Once
}

// stream wraps a result that the runtime will read after the handler returned. It
// is false for any other result, whatever its declared type: also for a nil pointer,
// whose JSON form null the runtime sends, whatever methods it has.
func (in *handlerRun) stream(result *reflect.Value) bool {
	if !result.CanInterface() {
		return false
	}
	v := *result
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	var body *io.Reader
	switch r := result.Interface().(type) {
	case *events.LambdaFunctionURLStreamingResponse:
		body = &r.Body
	case *events.APIGatewayProxyStreamingResponse:
		body = &r.Body
	case io.Reader:
		in.notStored(errStreamed)
		in.pending = true
		*result = reflect.ValueOf(&stream{body: r, in: *in})
		return true
	}
	if body == nil || *body == nil {
		return false
	}
	in.notStored(errStreamed)
	in.pending = true
	*body = &stream{body: *body, in: *in}
	return true
}

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

// Close is called by the runtime after every response that has it.
func (s *stream) Close() error {
	defer s.end(io.ErrUnexpectedEOF) // does nothing if the end was read before
	if c, ok := s.body.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (s *stream) end(err error) {
	s.once.Do(func() {
		if errors.Is(err, io.EOF) {
			s.in.settle(nil, nil)
		}
		s.in.pending = false
		s.in.leave()
	})
}

// ContentType is the body's own, or what the runtime says of bodies that have none.
func (s *stream) ContentType() string {
	if t, ok := s.body.(interface{ ContentType() string }); ok {
		return t.ContentType()
	}
	return "application/octet-stream"
}

// errStreamed is why Replay keeps nothing of a result that is declared as any.
var errStreamed = errors.New("lambdalock: a streamed result is not kept for replay")

// errBodyPanicked ends a stream whose body panics. Nobody sees it: the panic goes on.
var errBodyPanicked = errors.New("lambdalock: the body panicked")

var errNotJSON = errors.New("lambdalock: a streamed result is not JSON")

// MarshalJSON decides as the runtime does, which sends a result that has a JSON form
// as JSON although it could be read, and streams it otherwise.
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

package middleware

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	errNotStored    = errors.New("lambdalock: only a streaming response of a Function URL or of API Gateway is stored for Replay, no other stream")
	errNotJudged    = errors.New("lambdalock: RememberFor cannot judge a streamed response before it is read, so it is not stored for Replay")
	errTooLong      = errors.New("lambdalock: a streamed response is too long to be stored for Replay")
	errNotStream    = errors.New("lambdalock: the stored result is not a response that can be streamed")
	errNotJSON      = errors.New("lambdalock: a streamed result is not JSON")
	errBodyPanicked = errors.New("lambdalock: the body panicked") // no one sees it, because the panic goes on
)

// longestBody is how much of a streamed body is kept for Replay. Package lock
// stores no result of that length, so nothing that could be stored is lost.
const longestBody = 350 << 10

// stream is a streamed result that ends the lock when it ends.
type stream struct {
	body io.Reader
	run  handlerRun // a copy, so that other runs need no memory on the heap
	// completes reports whether the event is completed when the body has been read
	// to its end. Otherwise only the lock is released.
	completes bool
	head      []byte // of the response, as the handler returned it; nil: it is not stored
	recorded  []byte // what was read of the body
	measured  func() // ends the totals of the invocation
	once      sync.Once
}

// bodyOf returns what the runtime reads after the handler returned v, or nil.
func bodyOf(v any) io.Reader {
	if isNil(v) {
		return nil
	}
	if _, body := streamingResponse(v); body != nil && *body != nil {
		return *body
	}
	reader, _ := v.(io.Reader) // a response without a body can be read once, too
	return reader
}

// closeBody closes a stream, so that a wrapper inside the handler can release
// its lock.
func closeBody(body io.Reader) {
	if c, ok := body.(io.Closer); ok {
		_ = c.Close()
	}
}

// stream wraps a result that the runtime reads after the handler returned. It
// reports false for every other result: also for a nil pointer, whatever its
// methods, because the runtime sends that as the JSON null.
func (r *handlerRun) stream(result *reflect.Value) bool {
	v := result.Interface()
	if isNil(v) {
		return false
	}
	if head, body := streamingResponse(v); head != nil {
		if *body == nil {
			return false
		}
		doc := head.encoded() // now, because the handler may change its maps while the body is read
		r.judge(doc)
		s := &stream{body: *body, run: *r, completes: r.completes(v, doc), measured: keepOpen(r.ctx)}
		switch {
		case !s.completes || !r.storesResult():
		case r.w.rememberFor != nil: // the result is declared as an interface: others are refused immediately
			r.reportDropped(errNotJudged)
		case r.withheld(doc) != nil:
			r.reportDropped(errCookie)
		default:
			s.head = doc
		}
		*body = s
	} else if reader, ok := v.(io.Reader); ok {
		sent := &response{StatusCode: http.StatusOK} // by the runtime
		if head, _ := streamingResponse(embedded(v)); head != nil {
			sent = head
			r.judge(sent.encoded())
		}
		if r.storesResult() { // the result is declared as an interface: others are refused immediately
			r.reportDropped(errNotStored)
		}
		s := &stream{body: reader, run: *r, completes: r.completes(v, sent.encoded()), measured: keepOpen(r.ctx)}
		*result = reflect.ValueOf(s)
	} else {
		return false
	}
	r.streamed = true
	return true
}

// streamingResponse returns the head of a streaming response, and its body. The
// head is nil for every other result. A status of 0 stands for 200: the
// response of a Function URL says so itself, and API Gateway gets none.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode-lambda.html
func streamingResponse(v any) (*response, *io.Reader) {
	switch s := v.(type) {
	case *events.LambdaFunctionURLStreamingResponse:
		if s != nil {
			status := cmp.Or(s.StatusCode, http.StatusOK)
			return &response{StatusCode: status, Headers: s.Headers, Cookies: s.Cookies, Streamed: urlStream}, &s.Body
		}
	case *events.APIGatewayProxyStreamingResponse:
		if s != nil {
			status := cmp.Or(s.StatusCode, http.StatusOK)
			return &response{StatusCode: status, Headers: s.Headers, MultiValueHeaders: s.MultiValueHeaders, Cookies: s.Cookies, Streamed: apiStream}, &s.Body
		}
	}
	return nil, nil
}

// embedded returns the streaming response that a struct of the user's embeds,
// or nil.
func embedded(v any) any {
	s := reflect.Indirect(reflect.ValueOf(v))
	if s.Kind() != reflect.Struct {
		return nil
	}
	for _, t := range []reflect.Type{urlStreamType, apiStreamType} {
		switch f, _ := s.Type().FieldByName(t.Elem().Name()); {
		case !f.Anonymous || len(f.Index) > 1:
		case f.Type == t:
			return s.FieldByIndex(f.Index).Interface()
		case f.Type == t.Elem(): // v is a pointer, because it is a stream
			return s.FieldByIndex(f.Index).Addr().Interface()
		}
	}
	return nil
}

// decodeStream returns a stored response as a streaming response for a handler
// with that result type, or nil if it is to be decoded like any other result.
func decodeStream(stored []byte, result reflect.Type) (any, error) {
	var r response
	err := json.Unmarshal(stored, &r)
	switch result {
	case anyType:
		if err != nil || r.Streamed == notStreamed {
			return nil, nil
		}
	case urlStreamType:
		r.Streamed = urlStream
	case apiStreamType:
		r.Streamed = apiStream
	}
	if string(stored) == "null" {
		return nil, nil
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded && err == nil {
		body, err = base64.StdEncoding.DecodeString(r.Body)
	}
	switch {
	case err != nil || r.Streamed == notStreamed:
		return nil, cmp.Or(err, errNotStream)
	case r.Streamed == apiStream:
		return &events.APIGatewayProxyStreamingResponse{
			StatusCode: r.StatusCode, Headers: r.Headers, MultiValueHeaders: r.MultiValueHeaders, Cookies: r.Cookies, Body: bytes.NewReader(body),
		}, nil
	}
	return &events.LambdaFunctionURLStreamingResponse{
		StatusCode: r.StatusCode, Headers: r.Headers, Cookies: r.Cookies, Body: bytes.NewReader(body),
	}, nil
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
	s.keep(p, n)
	return n, err
}

// keep records the n bytes that were read into p, up to longestBody.
func (s *stream) keep(p []byte, n int) {
	if s.head == nil || n <= 0 || n > len(p) || len(s.recorded) > longestBody {
		return
	}
	s.recorded = append(s.recorded, p[:n]...)
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
		defer s.measured()
		defer func() { _ = s.run.lock.Release() }() // does nothing after Complete
		// Like the runtime, which reports any other error, also one that wraps io.EOF.
		if err == io.EOF && s.completes {
			_ = s.run.lock.CompleteWith(lock.Completion{Result: s.stored()}) // package lock has reported the error
		}
	})
}

// stored returns the response as it is stored for Replay, or nil.
func (s *stream) stored() []byte {
	switch {
	case s.head == nil:
		return nil
	case len(s.recorded) > longestBody:
		s.run.reportDropped(errTooLong)
		return nil
	}
	var whole response
	_ = json.Unmarshal(s.head, &whole) // it is one
	whole.Body, whole.IsBase64Encoded = base64.StdEncoding.EncodeToString(s.recorded), true
	return whole.encoded()
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

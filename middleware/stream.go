package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	errNotStored    = errors.New("lambdalock: only a streaming response of a Function URL or of API Gateway is stored for Replay, no other stream")
	errNotJudged    = errors.New("lambdalock: RememberFor cannot judge a streamed response before it is read, so it is not stored for Replay")
	errTooLong      = errors.New("lambdalock: a streamed response is too long to be stored for Replay")
	errNotJSON      = errors.New("lambdalock: a streamed result is not JSON")
	errBodyPanicked = errors.New("lambdalock: the body panicked") // no one sees it, because the panic goes on
)

// longestBody is how much of a streamed body is kept for Replay. Package lock
// stores no result of that length, so nothing that could be stored is lost.
const longestBody = 350 << 10

// stream returns what takes the place of the body of a result that the runtime
// reads after the handler returned. head is the JSON form of what comes before
// the body.
func (r *handlerRun) stream(result any, body io.Reader, head []byte, storable bool) *stream {
	defer func() {
		if c, ok := body.(io.Closer); ok && !r.streamed { // a callback panicked: a wrapper inside the handler can release its lock
			_ = c.Close()
		}
	}()
	completes, kept, withheld := r.judge(result, head)
	s := &stream{body: body, run: *r, completes: completes}
	switch {
	case !kept, !completes:
	case !storable: // the result is declared as an interface: others are refused immediately
		r.reportDropped(errNotStored)
	case r.w.rememberFor != nil: // the result is declared as an interface: others are refused immediately
		r.reportDropped(errNotJudged)
	case withheld != nil:
		r.reportDropped(withheld)
	default:
		s.head = head
	}
	s.measured = keepOpen(r.ctx) // only now: nobody ends a stream that is not returned, such as after a panic above
	r.streamed = true
	return s
}

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
// lock. A body may fail with Unknown, like a handler.
func (s *stream) end(err error) {
	s.once.Do(func() {
		defer s.measured()
		defer func() { _ = s.run.lock.Fail(err) }() // does nothing after Complete
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
	return s.run.exchange.withBody(s.head, s.recorded)
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
	doc, err := marshal(s.body)
	panicked = false
	if err != nil || bytes.HasPrefix(doc, []byte("{}")) {
		return nil, errNotJSON
	}
	s.end(io.EOF)
	return doc, nil
}

// marshal returns the JSON form of a result as the runtime's encoder does,
// which escapes only if it was told to.
func marshal(result any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(result)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

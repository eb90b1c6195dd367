package fault

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"time"
)

// Transport is an [http.RoundTripper] whose requests meet faults. The plan
// knows them by the names that its dialect gives them.
type Transport struct {
	Next    http.RoundTripper
	Dialect Dialect
	Plan    Plan
	Late    Late // applies the copies
	// Date returns the time that the answers bear. By default it is the
	// server's.
	Date func() time.Time
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	op := t.Dialect.Op(r)
	e := Exchange[*http.Response]{
		Apply: func(ctx context.Context, _ bool) (*http.Response, error) {
			sent := r.Clone(ctx)
			if len(body) > 0 {
				sent.Body = io.NopCloser(bytes.NewReader(body))
				sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			} else if r.Body != nil {
				sent.Body = http.NoBody
			}
			return t.Next.RoundTrip(sent)
		},
		Spoil: func(f Fault, answer *http.Response) (*http.Response, error) { return t.spoil(r, body, f, answer) },
	}
	answer, err := e.Meet(r.Context(), nextOf(t.Plan, op, r.URL.Path+" "+mixed(body)), t.Late)
	if err != nil {
		return nil, err
	}
	answer.Request = r
	if t.Date != nil {
		answer.Header.Set("Date", t.Date().UTC().Format(http.TimeFormat))
	}
	return answer, nil
}

// mixed returns a digest of the bytes of a body, in any order, because the AWS
// SDK writes maps in random order. It tells the requests apart that a client
// sends at the same time.
func mixed(body []byte) string {
	var counts [256]int
	for _, b := range body {
		counts[b]++
	}
	sorted := make([]byte, 0, len(body))
	for b, n := range counts {
		for range n {
			sorted = append(sorted, byte(b))
		}
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(sorted)), 16)
}

func (t *Transport) spoil(r *http.Request, body []byte, f Fault, answer *http.Response) (*http.Response, error) {
	if answer != nil {
		defer answer.Body.Close() // unread, so a real connection is closed with it
	}
	switch f {
	case ApplyThenFail:
		return t.Dialect.refusal(r, body, Fail).response(r), nil
	case Conflict:
		if !t.Dialect.conflicts(r) {
			f = Throttle
		}
		fallthrough
	case Throttle, Deny, Fail:
		return t.Dialect.refusal(r, body, f).response(r), nil
	case Truncate:
		if answer == nil {
			break
		}
		whole, err := io.ReadAll(answer.Body)
		if err != nil || len(whole) == 0 { // it ends in the header
			break
		}
		half := *answer
		half.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
		return &half, nil
	}
	return nil, ErrBroken
}

// InProcess is a server in this process, to be the next of a [Transport]. It
// needs no network, so that it works in fake time.
type InProcess struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (p InProcess) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler: // the server breaks the connection
			answer, err = nil, ErrBroken
			if r.Context().Err() != nil {
				err = r.Context().Err()
			}
		default:
			panic(v)
		}
	}()
	served := r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody // as a server's request has
	}
	for name, values := range r.Header { // some clients write it in lower case
		served.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.ContentLength > 0 { // a client keeps it out of the header
		served.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	served.RequestURI, served.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1"
	w := httptest.NewRecorder()
	p.ServeHTTP(w, served)
	answer = w.Result()
	answer.Request = r
	if answer.Header.Get("Date") == "" {
		answer.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return answer, nil
}

// ErrBroken is what the client of a broken connection gets.
var ErrBroken error = &net.OpError{Op: "read", Net: "tcp", Err: fmt.Errorf("%w (%w)", syscall.ECONNRESET, ErrInjected)}

// broken is the end of a connection in the middle of an answer.
type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, fmt.Errorf("%w (%w)", io.ErrUnexpectedEOF, ErrInjected)
}

// refusal is the answer of a service that refuses or fails.
type refusal struct {
	status int
	header map[string]string
	body   []byte
}

func (a refusal) response(r *http.Request) *http.Response {
	h := http.Header{}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	for name, value := range a.header {
		h.Set(name, value)
	}
	body := a.body
	if r.Method == http.MethodHead {
		body = nil
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(a.body)),
	}
}

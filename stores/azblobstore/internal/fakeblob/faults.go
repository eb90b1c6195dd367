package fakeblob

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
)

// Fault is what happens to a request.
type Fault int

// The faults.
const (
	None          Fault = iota
	Drop                // the connection breaks before the request arrives
	ApplyThenDrop       // the connection breaks before the answer arrives
	ApplyThenCut        // the connection breaks within the answer's body
	Busy                // the service throttles: 503 ServerBusy
	Unavailable         // a proxy answers 502, without a code
	NotFound            // a proxy answers 404, without a code
	Deny                // 403 AuthorizationPermissionMismatch
	Hang                // no answer until the caller gives up
	ApplyThenHang
	Panic // in the client
)

// Fail plans the faults of the next requests of an operation, in their order.
func (s *Service) Fail(op string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[op] = append(s.faults[op], faults...)
}

// Heal forgets the faults that were planned.
func (s *Service) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// Do implements policy.Transporter.
func (s *Service) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	sent := r
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	for name, values := range sent.Header { // which the SDK writes in lower case
		r.Header.Set(name, values[0])
	}
	op, _, _ := operation(r)
	fault := s.next(op)
	switch fault {
	case None, ApplyThenDrop, ApplyThenCut, ApplyThenHang:
		s.ServeHTTP(w, r)
	default:
		s.mu.Lock()
		s.requests = append(s.requests, op)
		s.mu.Unlock()
	}
	switch fault {
	case Busy:
		fail(w, http.StatusServiceUnavailable, "ServerBusy")
	case Unavailable:
		w.WriteHeader(http.StatusBadGateway)
	case NotFound:
		w.WriteHeader(http.StatusNotFound)
	case Deny:
		fail(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
	case Hang, ApplyThenHang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case Drop, ApplyThenDrop:
		return nil, errors.New("connection reset")
	case Panic:
		panic("a panic in the client")
	}
	answer := w.Result()
	answer.Request = sent
	if fault == ApplyThenCut {
		answer.Body = io.NopCloser(io.MultiReader(io.LimitReader(answer.Body, 1), cut{}))
	}
	return answer, nil
}

type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (s *Service) next(op string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	planned := s.faults[op]
	if len(planned) == 0 {
		return None
	}
	s.faults[op] = planned[1:]
	return planned[0]
}

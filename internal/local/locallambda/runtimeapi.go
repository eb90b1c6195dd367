package locallambda

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
)

const (
	apiRoot         = "/2018-06-01/runtime"
	contentTypeJSON = "application/json"
	headerErrorType = "Lambda-Runtime-Function-Error-Type"
)

// refusal is an error answer of the Runtime API.
type refusal struct {
	status             int
	errorType, message string
}

// The types and texts are those of the service.
var (
	unknownRequest = &refusal{http.StatusBadRequest, "InvalidRequestID", "Invalid request ID"}
	wrongMoment    = &refusal{http.StatusForbidden, "InvalidStateTransition", "State transition is not allowed"}
	cutShort       = &refusal{http.StatusBadRequest, "TruncatedHTTPRequest", "HTTP request detected as truncated"}
	oversized      = &refusal{
		http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
		"Exceeded maximum allowed payload size (" + strconv.Itoa(maxResponse) + " bytes).",
	}
)

func (sb *sandbox) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+apiRoot+"/invocation/next", sb.next)
	mux.HandleFunc("POST "+apiRoot+"/invocation/{id}/response", sb.response)
	mux.HandleFunc("POST "+apiRoot+"/invocation/{id}/error", sb.failure)
	mux.HandleFunc("POST "+apiRoot+"/init/error", sb.initFailure)
	return mux
}

// next holds the request open until there is an invocation for it.
func (sb *sandbox) next(w http.ResponseWriter, r *http.Request) {
	assigned, refused := sb.ask()
	if refused != nil {
		refused.write(w)
		return
	}
	select {
	case c := <-assigned:
		sb.writeCall(w, c)
	case <-r.Context().Done():
		sb.withdraw(assigned)
	}
}

// ask records that the environment wants an invocation, which also says that a
// classic one is done with the last.
func (sb *sandbox) ask() (chan *call, *refusal) {
	sb.output.drain() // what was printed before belongs to the last invocation, or to none
	p := sb.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.managed() {
		for _, c := range sb.running {
			if !c.answered {
				return nil, wrongMoment
			}
			sb.release(c)
		}
	}
	if !sb.ready {
		sb.becomeReady()
	}
	assigned := make(chan *call, 1)
	sb.waiting = append(sb.waiting, assigned)
	p.dispatch()
	sb.idle()
	return assigned, nil
}

// becomeReady ends the Init phase.
func (sb *sandbox) becomeReady() {
	sb.ready = true
	sb.initTimer.Stop()
	sb.env.failures = 0
	select {
	case sb.env.first <- nil:
	default: // only the first start is waited for
	}
}

// release frees the place a call has in the environment.
func (sb *sandbox) release(c *call) {
	c.timer.Stop()
	delete(sb.running, c.id)
}

// withdraw forgets a request whose connection is gone. An invocation that had
// been assigned to it ends with the process, or at its deadline.
func (sb *sandbox) withdraw(assigned chan *call) {
	sb.p.mu.Lock()
	defer sb.p.mu.Unlock()
	if i := slices.Index(sb.waiting, assigned); i >= 0 {
		sb.waiting = slices.Delete(sb.waiting, i, i+1)
	}
}

func (sb *sandbox) writeCall(w http.ResponseWriter, c *call) {
	h := w.Header()
	h.Set("Content-Type", contentTypeJSON)
	h.Set("Lambda-Runtime-Aws-Request-Id", c.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", sb.p.functionARN())
	h.Set("Lambda-Runtime-Trace-Id", newTraceID())
	payload := c.in.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	h.Set("Content-Length", strconv.Itoa(len(payload)))
	_, _ = w.Write(payload) // a lost connection shows as the end of the process
}

// begin claims the right to answer a call.
func (sb *sandbox) begin(id string) (*call, *refusal) {
	sb.p.mu.Lock()
	defer sb.p.mu.Unlock()
	c := sb.running[id]
	switch {
	case c == nil:
		return nil, unknownRequest
	case c.posting || c.answered:
		return nil, wrongMoment
	}
	c.posting = true
	return c, nil
}

// finish records a complete answer. One that comes after a managed
// environment's deadline is accepted, as the handler cannot know, but changes
// nothing.
func (sb *sandbox) finish(c *call, end ending) {
	sb.output.drain() // it was printed before the answer was posted
	p := sb.p
	p.mu.Lock()
	defer p.mu.Unlock()
	c.posting = false
	c.answered = true
	p.settle(sb, c, end)
	if p.managed() {
		sb.release(c)
		p.dispatch()
	}
}

// retract gives up an answer whose upload broke off. Usually the process is
// dying, and its end settles the call.
func (sb *sandbox) retract(c *call) {
	sb.p.mu.Lock()
	defer sb.p.mu.Unlock()
	c.posting = false
}

// failure receives a function error.
func (sb *sandbox) failure(w http.ResponseWriter, r *http.Request) {
	c, refused := sb.begin(r.PathValue("id"))
	if refused != nil {
		refused.write(w)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		sb.retract(c)
		cutShort.write(w)
		return
	}
	end := ending{outcome: Failed, failure: readError(body, r.Header.Get(headerErrorType))}
	if json.Valid(body) {
		end.payload = body
		end.contentType = r.Header.Get("Content-Type")
	}
	sb.finish(c, end)
	accept(w)
}

// initFailure receives the reason why the Init phase failed. The process has a
// moment to end by itself.
func (sb *sandbox) initFailure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		cutShort.write(w)
		return
	}
	if !sb.reportInit(readError(body, r.Header.Get(headerErrorType))) {
		wrongMoment.write(w)
		return
	}
	accept(w)
}

// reportInit records a failed Init phase; it returns false when that phase is
// over.
func (sb *sandbox) reportInit(d errorDocument) bool {
	sb.p.mu.Lock()
	defer sb.p.mu.Unlock()
	if sb.ready {
		return false
	}
	sb.initReport = d.ErrorType + ": " + d.ErrorMessage
	sb.initTimer.Reset(drainLimit)
	return true
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", contentTypeJSON)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`+"\n")
}

func (f *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", contentTypeJSON)
	w.WriteHeader(f.status)
	_, _ = w.Write(errorDocument{ErrorType: f.errorType, ErrorMessage: f.message}.encode())
}

package locallambda

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
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
	tooLate        = &refusal{http.StatusGone, "InvokeTimeout", "Invoke timeout"}
	cutShort       = &refusal{http.StatusBadRequest, "TruncatedHTTPRequest", "HTTP request detected as truncated"}
	oversized      = &refusal{
		http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
		"Exceeded maximum allowed payload size (" + strconv.Itoa(maxResponse) + " bytes).",
	}
)

func (proc *process) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+apiRoot+"/invocation/next", proc.next)
	mux.HandleFunc("POST "+apiRoot+"/invocation/{id}/response", proc.answer(readResponse))
	mux.HandleFunc("POST "+apiRoot+"/invocation/{id}/error", proc.answer(readFailure))
	mux.HandleFunc("POST "+apiRoot+"/init/error", proc.initFailure)
	mux.HandleFunc("POST "+extensionRoot+"/register", proc.registerExtension)
	mux.HandleFunc("GET "+extensionRoot+"/event/next", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

// next holds the request open until there is an invocation for it.
func (proc *process) next(w http.ResponseWriter, r *http.Request) {
	assigned, refused := proc.ask()
	if refused != nil {
		reply(w, refused)
		return
	}
	select {
	case c := <-assigned:
		proc.writeCall(w, c)
	case <-r.Context().Done():
		proc.withdraw(assigned)
	}
}

// ask registers a request for an invocation, with which a classic environment
// also says that it has finished the last one.
func (proc *process) ask() (chan *call, *refusal) {
	proc.output.drain() // what was printed before belongs to the last invocation, or to none
	p := proc.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.managed() {
		for _, c := range proc.running {
			if !c.answered {
				return nil, wrongMoment
			}
			proc.release(c)
		}
	}
	if !proc.ready { // the end of the Init phase
		proc.ready = true
		proc.initTimer.Stop()
		if !proc.repeated.IsZero() {
			proc.spent = time.Since(proc.repeated)
		}
		proc.env.failures = 0
		proc.env.reportFirst(nil)
	}
	assigned := make(chan *call, 1)
	proc.waiting = append(proc.waiting, assigned)
	p.dispatch()
	proc.idle()
	return assigned, nil
}

// release frees the place a call has in the environment.
func (proc *process) release(c *call) {
	c.timer.Stop()
	delete(proc.running, c.id)
}

// withdraw forgets a request whose connection is gone. An invocation that was
// assigned to it ends with the process, or at its deadline.
func (proc *process) withdraw(assigned chan *call) {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	proc.waiting = slices.DeleteFunc(proc.waiting, func(c chan *call) bool { return c == assigned })
}

func (proc *process) writeCall(w http.ResponseWriter, c *call) {
	h := w.Header()
	h.Set("Content-Type", contentTypeJSON)
	h.Set("Lambda-Runtime-Aws-Request-Id", c.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", proc.p.functionARN())
	h.Set("Lambda-Runtime-Trace-Id", c.result.TraceID)
	if tenant := proc.p.cfg.Tenant; tenant != "" {
		h.Set("Lambda-Runtime-Aws-Tenant-Id", tenant)
	}
	payload := c.in.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	h.Set("Content-Length", strconv.Itoa(len(payload)))
	_, _ = w.Write(payload) // a lost connection shows as the end of the process
}

// begin claims the right to answer a call.
func (proc *process) begin(id string) (*call, *refusal) {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	c := proc.running[id]
	switch {
	case c == nil:
		return nil, unknownRequest
	case c.posting || c.answered || proc.killed:
		return nil, wrongMoment
	}
	c.posting = true
	return c, nil
}

// finish takes a complete answer. It reports whether the invocation has timed
// out in a managed environment: AWS's own emulator refuses its late answer,
// whereupon aws-lambda-go ends the process.
// https://github.com/aws/aws-lambda-dotnet/pull/2508
func (proc *process) finish(c *call, end ending) (late bool) {
	proc.output.drain() // what was printed before the answer belongs to this invocation
	p := proc.p
	p.mu.Lock()
	defer p.mu.Unlock()
	c.posting = false
	c.answered = true
	p.resolve(proc, c, end)
	if p.managed() {
		proc.release(c)
		p.dispatch()
	}
	return p.managed() && c.expired
}

// retract forgets an answer whose upload broke off. Usually the process is
// dying, and its end resolves the call.
func (proc *process) retract(c *call) {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	c.posting = false
}

// answer receives the end of an invocation, which read reads.
func (proc *process) answer(read func(*call, *http.Request) (ending, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, refused := proc.begin(r.PathValue("id"))
		if c != nil {
			var end ending
			if end, refused = read(c, r); refused == cutShort {
				proc.retract(c)
			} else if proc.finish(c, end) {
				refused = tooLate
			}
		}
		reply(w, refused)
	}
}

// readResponse reads what the function returned. It reads a response that is
// too large to its end as well, so that the runtime gets to see the refusal.
func readResponse(c *call, r *http.Request) (ending, *refusal) {
	payload, err := io.ReadAll(io.TeeReader(r.Body, c))
	streamed := c.in.Stream != nil || r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming"
	switch {
	case err != nil:
		return ending{}, cutShort
	case !streamed && len(payload) > maxResponse:
		return tooLarge(), oversized
	}
	// A runtime that fails after it has begun to stream says so in the trailers,
	// see
	// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming.
	if errorType := r.Trailer.Get(headerErrorType); errorType != "" {
		document, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		return decodeError(document, errorType).endsWith(Failed), nil
	}
	return ending{outcome: Succeeded, payload: payload, contentType: r.Header.Get("Content-Type")}, nil
}

// readFailure reads a function error.
func readFailure(_ *call, r *http.Request) (ending, *refusal) {
	document, body, refused := readError(r)
	if refused != nil {
		return ending{}, refused
	}
	end := document.endsWith(Failed)
	if json.Valid(body) {
		end.payload, end.contentType = body, r.Header.Get("Content-Type")
	}
	return end, nil
}

// readError reads a posted error document, and returns its text as well.
func readError(r *http.Request) (errorDocument, []byte, *refusal) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		return errorDocument{}, nil, cutShort
	}
	return decodeError(body, r.Header.Get(headerErrorType)), body, nil
}

// initFailure receives the reason why the Init phase failed.
func (proc *process) initFailure(w http.ResponseWriter, r *http.Request) {
	document, _, refused := readError(r)
	if refused == nil && !proc.reportInit(document) {
		refused = wrongMoment
	}
	reply(w, refused)
}

// reportInit notes a failed Init phase and gives the process a moment to end by
// itself. It reports false if that phase is over.
func (proc *process) reportInit(d errorDocument) bool {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	if proc.ready {
		return false
	}
	proc.initReport = d.ErrorType + ": " + d.ErrorMessage
	proc.initTimer.Reset(drainLimit)
	return true
}

// reply accepts what a process posted, or refuses it.
func reply(w http.ResponseWriter, refused *refusal) {
	w.Header().Set("Content-Type", contentTypeJSON)
	if refused == nil {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"OK"}`+"\n")
		return
	}
	w.WriteHeader(refused.status)
	_, _ = w.Write(errorDocument{ErrorType: refused.errorType, ErrorMessage: refused.message}.encode())
}

package localtable

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"sync"
)

// Asked is what an invocation asked of an embedded table.
type Asked struct {
	Acquired int  // locks that it got
	Refused  int  // locks that it did not get
	Waited   bool // it asked for one of them again, for the same event
}

// watch sees all requests to an embedded table. It knows from the requests alone
// which invocation got what, so it needs neither the function's log nor the meaning
// of a row.
type watch struct {
	next http.Handler

	mu    sync.Mutex
	asked map[string]map[string]*tries // by invocation, by name and event
}

// tries are the requests of one invocation for one lock.
type tries struct {
	acquired bool
	requests int
}

// holder is how the decorator describes the invocation that wants a lock; only
// requests that acquire have it.
var holder = regexp.MustCompile(` request (\S+) log (\S+)`)

// unknown is the request id of a handler that takes no context.
const unknown = "unknown"

// maxRequest is more than any request of the store has.
const maxRequest = 16 << 20

func (w *watch) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler) // the function died, or sends what it never should
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if id, key := claim(body); id != "" {
		rw = &answer{ResponseWriter: rw, begun: func(code int) { w.note(id, key, code == http.StatusOK) }}
	}
	w.next.ServeHTTP(rw, r)
}

// claim returns the invocation, and name and event, if a request is to acquire a lock;
// else no invocation. An invocation is its request id, or else its log stream.
func claim(body []byte) (id, key string) {
	type text struct{ S string }
	var in struct {
		Key                       map[string]text
		ExpressionAttributeValues map[string]text
	}
	_ = json.Unmarshal(body, &in) // numbers and maps among the values do not matter here
	for _, v := range in.ExpressionAttributeValues {
		if m := holder.FindStringSubmatch(v.S); m != nil {
			if id = m[1]; id == unknown {
				id = m[2]
			}
		}
	}
	for _, v := range in.Key {
		key = v.S
	}
	return id, key + "\n" + in.ExpressionAttributeValues[":event"].S
}

func (w *watch) note(id, key string, acquired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked[id] == nil {
		w.asked[id] = map[string]*tries{}
	}
	t := w.asked[id][key]
	if t == nil {
		t = &tries{}
		w.asked[id][key] = t
	}
	t.requests++
	t.acquired = t.acquired || acquired
}

// Asked returns what an invocation asked since the last call for it. Where its handler
// takes no context it is known by its log stream alone, which it must not share with
// another at the time.
func (t *Table) Asked(requestID, logStream string) Asked {
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	var a Asked
	for _, id := range []string{requestID, logStream} {
		for _, tries := range t.watch.asked[id] {
			if tries.acquired {
				a.Acquired++
			} else {
				a.Refused++
			}
			a.Waited = a.Waited || tries.requests > 1
		}
		delete(t.watch.asked, id)
	}
	return a
}

// answer tells its status before anything of it is sent: the function could otherwise
// be done before it is noted what it got.
type answer struct {
	http.ResponseWriter
	begun func(code int)
}

func (a *answer) WriteHeader(code int) {
	if a.begun != nil {
		a.begun(code)
		a.begun = nil
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.begun != nil {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

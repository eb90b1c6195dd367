package invoke

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/localsqs"
	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// sqsAPI keeps what a function asked SQS for: that a message comes back at
// another time, or not at all, and that another one is sent.
type sqsAPI struct {
	url    string
	server *http.Server

	mu      sync.Mutex
	changed map[string]time.Time // when a message comes back, by receipt handle
	deleted map[string]bool
	sent    map[string]int // messages, by queue
	copies  map[letter]int // that tell why a message failed
}

// letter is what is known of a message that the function sent because it
// failed. A message with the same body may be in another delivery.
type letter struct {
	trace string // the root of the delivery's trace; empty if the request does not tell
	body  string
}

func newSQS() *sqsAPI {
	return &sqsAPI{changed: map[string]time.Time{}, deleted: map[string]bool{}, sent: map[string]int{}, copies: map[letter]int{}}
}

// startSQS serves the API on the loopback interface.
func startSQS() (*sqsAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve a local SQS: %w", err)
	}
	a := newSQS()
	a.url = "http://" + listener.Addr().String()
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }() // ends with close
	return a, nil
}

// serve answers a request of the function.
func (a *sqsAPI) serve(w http.ResponseWriter, r *http.Request) {
	a.handler(r.Header.Get("X-Amzn-Trace-Id")).ServeHTTP(w, r)
}

// handler answers requests that have the tracing header trace. The SDKs send
// that of the invocation, unless a process has several at the same time.
func (a *sqsAPI) handler(trace string) *localsqs.Server {
	locked := func(note func()) {
		a.mu.Lock()
		defer a.mu.Unlock()
		note()
	}
	return &localsqs.Server{
		Change: func(receipt string, d time.Duration) { locked(func() { a.changed[receipt] = time.Now().Add(d) }) },
		Delete: func(receipt string) { locked(func() { a.deleted[receipt] = true }) },
		Send: func(m *sqslimits.Message) {
			locked(func() {
				a.sent[m.Queue]++
				if _, tells := m.Attributes[reasonAttribute]; tells {
					a.copies[letter{root(trace), m.Body}]++
				}
			})
		},
	}
}

// close ends the API, and writes a line for each queue that got messages.
func (a *sqsAPI) close(out io.Writer) {
	_ = a.server.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(a.sent)) {
		fmt.Fprintf(out, "sent: %s to %s\n", plural(a.sent[queue], "message"), oneLine(queue, longestAnswer))
	}
}

// env returns what the function needs to find the API, unless it was told of
// another one.
func (a *sqsAPI) env() []string {
	const variable = "AWS_ENDPOINT_URL_SQS"
	if cmp.Or(os.Getenv(variable), os.Getenv("AWS_ENDPOINT_URL")) != "" {
		return nil
	}
	return []string{variable + "=" + a.url}
}

// comesBack returns when the function wants a message back, if it said so.
func (a *sqsAPI) comesBack(m *record) (time.Time, bool) {
	if a == nil {
		return time.Time{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.changed[m.handle]
	return at, ok
}

// reasonAttribute of a message tells why it failed: redelivery.SQS sends it to
// the dead-letter queue.
const reasonAttribute = "ErrorMessage"

// moved returns the messages of which the function has sent a copy that tells
// why it failed, in the delivery with the tracing header trace. Each copy
// counts once, for the first message with its body.
func (a *sqsAPI) moved(messages []*record, trace string) []*record {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var moved []*record
	for _, m := range messages {
		var body string
		_ = json.Unmarshal(m.body["body"], &body) // not there: ""
		l := letter{root(trace), body}
		if a.copies[l] == 0 {
			l.trace = ""
		}
		if a.copies[l] > 0 {
			a.copies[l]--
			moved = append(moved, m)
		}
	}
	return moved
}

// root returns the part of a tracing header that all requests of an invocation
// have in common: a tracer that wraps the SDK gives each a parent of its own.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
func root(trace string) string {
	for part := range strings.SplitSeq(trace, ";") {
		if id, ok := strings.CutPrefix(strings.TrimSpace(part), "Root="); ok {
			return id
		}
	}
	return ""
}

// isDeleted reports whether the function has deleted a message.
func (a *sqsAPI) isDeleted(m *record) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deleted[m.handle]
}

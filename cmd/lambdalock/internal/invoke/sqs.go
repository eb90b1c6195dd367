package invoke

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/localsqs"
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
}

// startSQS serves the API on the loopback interface.
func startSQS() (*sqsAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve a local SQS: %w", err)
	}
	a := &sqsAPI{url: "http://" + listener.Addr().String(), changed: map[string]time.Time{}, deleted: map[string]bool{}, sent: map[string]int{}}
	a.server = &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }() // ends with close
	return a, nil
}

func (a *sqsAPI) handler() *localsqs.Server {
	locked := func(note func()) {
		a.mu.Lock()
		defer a.mu.Unlock()
		note()
	}
	return &localsqs.Server{
		Change: func(receipt string, d time.Duration) { locked(func() { a.changed[receipt] = time.Now().Add(d) }) },
		Delete: func(receipt string) { locked(func() { a.deleted[receipt] = true }) },
		Send:   func(queue string) { locked(func() { a.sent[queue]++ }) },
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

// isDeleted reports whether the function has deleted a message.
func (a *sqsAPI) isDeleted(m *record) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deleted[m.handle]
}

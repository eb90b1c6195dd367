// Package fakedynamo is a DynamoDB endpoint in memory, for unit tests and for
// demonstrations over loopback where no DynamoDB Local is at hand.
//
// It implements only what the DynamoDB store of this module sends: UpdateItem
// with condition and update expressions on tables with one string partition
// key, and the few table operations that prepare such a table. Whatever else a
// request asks for is refused, so that nothing is silently ignored that the
// real service would have honoured. Within that part its answers, including
// the wording of its errors, are meant to be those of the real service.
//
// Every operation takes effect at one instant under one lock, so the endpoint
// is linearizable. It checks no signature and keeps nothing on disk.
package fakedynamo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// targetPrefix starts the X-Amz-Target header of every DynamoDB request.
const targetPrefix = "DynamoDB_20120810."

// maxRequestBytes is the service's limit on the size of a request.
const maxRequestBytes = 16 << 20

// Server is a DynamoDB endpoint in memory. It is safe for concurrent use.
type Server struct {
	updates    cache[*update]
	conditions cache[*condition]
	requests   atomic.Int64
	onRequest  atomic.Pointer[func(Request) Fault]
	bodies     sync.Pool // of *bytes.Buffer

	mu     sync.Mutex // guards what follows; never held during network I/O
	tables map[string]*table
}

// New returns a server without tables.
func New() *Server {
	return &Server{
		updates:    cache[*update]{parse: parseUpdate},
		conditions: cache[*condition]{parse: parseCondition},
		bodies:     sync.Pool{New: func() any { return new(bytes.Buffer) }},
		tables:     make(map[string]*table),
	}
}

// ServeHTTP answers one request of the DynamoDB JSON 1.0 protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := s.bodies.Get().(*bytes.Buffer)
	defer s.bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxRequestBytes)); err != nil {
		panic(http.ErrAbortHandler) // the client went away, or never meant to stop
	}
	if r.Header.Get("Authorization") == "" {
		answer(w, nil, failure(coralType+"MissingAuthenticationTokenException", "Missing Authentication Token"))
		return
	}
	c := s.newCall(r, body.Bytes())
	res, err := s.fault(c).apply(r.Context(), c)
	answer(w, res, err)
}

// Requests returns the number of UpdateItem requests received so far,
// including those that a fault kept from being applied.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Item returns a copy of the item with that partition key in the form of the
// protocol's JSON, {"name": {"S": "…"}} and so on, or nil if there is none.
func (s *Server) Item(table, key string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[table]
	if t == nil {
		return nil
	}
	it := t.items[key]
	if it == nil {
		return nil
	}
	return it.raw()
}

// call is one request, decoded as far as fault injection needs it.
type call struct {
	operation string
	table     string
	key       string
	n         int
	run       func() (response, *apiError)
}

// newCall decodes the body of a request. A body that cannot be decoded gives a
// call that fails, so that such requests reach the fault hook as well.
func (s *Server) newCall(r *http.Request, body []byte) *call {
	target := r.Header.Get("X-Amz-Target")
	operation := strings.TrimPrefix(target, targetPrefix)
	if operation == target {
		operation = "" // another protocol, or none
	}
	c := &call{operation: operation}
	if operation == "UpdateItem" {
		c.n = int(s.requests.Add(1)) - 1
		in, err := decodeUpdateItem(body)
		c.table, c.key = in.TableName, in.partitionKey()
		c.run = func() (response, *apiError) {
			if err != nil {
				return nil, err
			}
			return s.updateItem(in)
		}
		return c
	}
	c.n = s.Requests()
	run := s.tableOperation(operation)
	if run == nil {
		c.run = func() (response, *apiError) {
			return nil, failure(coralType+"UnknownOperationException", "An unknown operation was requested.")
		}
		return c
	}
	var in tableRequest
	err := json.Unmarshal(body, &in)
	c.table = in.TableName
	c.run = func() (response, *apiError) {
		if err != nil {
			return nil, serialization(err)
		}
		return run(in, r.Host)
	}
	return c
}

// Package fakedynamo is a DynamoDB endpoint in memory, for unit tests and for
// local runs over the loopback interface that should need no DynamoDB Local.
//
// It implements what the DynamoDB store of this module sends: UpdateItem and
// TransactWriteItems with condition and update expressions on tables with one
// string partition key, BatchExecuteStatement with the same in PartiQL, and the
// few table operations that prepare such a table.
// GetItem and Scan are there for looking at its rows, PutItem for the examples'
// own data. It refuses everything else, so that it never silently ignores what
// the real service would have honoured. What the real service refuses of that
// part, it refuses with the real error.
//
// Every operation takes effect at one instant under one lock, so the endpoint
// is linearizable. It checks no signature and keeps nothing on disk.
package fakedynamo

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// targetPrefix starts the X-Amz-Target header of every DynamoDB request.
const targetPrefix = "DynamoDB_20120810."

// maxRequestBytes is the service's limit on the size of a request.
const maxRequestBytes = 16 << 20

// Update is what the OnUpdate hook is told about an UpdateItem request, or a
// statement of BatchExecuteStatement.
type Update struct {
	Key     string // the value of the partition key
	Applied bool   // false: it was refused
	in      *input
	refuser item
}

// assignment is one of an update expression, of a value that the request has.
var assignment = regexp.MustCompile(`(\w+) = (:\w+)`)

// Value returns what the request sets an attribute to, or "" if that is not a
// string of its own.
func (u Update) Value(attribute string) string {
	for _, set := range assignment.FindAllStringSubmatch(u.in.UpdateExpression, -1) {
		if set[1] == attribute {
			return u.in.ExpressionAttributeValues.text(set[2])
		}
	}
	return u.in.Item.text(attribute)
}

// Refuser returns an attribute of the item that refused the request, or "" if
// it is not a string, or the request did not ask for the item.
func (u Update) Refuser(attribute string) string { return u.refuser.text(attribute) }

func (it item) text(attribute string) string {
	if s := it[attribute].S; s != nil {
		return *s
	}
	return ""
}

// Server is a DynamoDB endpoint in memory. It is safe for concurrent use.
type Server struct {
	// OnUpdate is called for every UpdateItem request and for every statement of a
	// batch that was carried out, before the answer, by several goroutines at the
	// same time. It must be set before the first request.
	OnUpdate func(Update)

	requests  atomic.Int64
	onRequest atomic.Pointer[func(Request) Fault]

	mu     sync.Mutex // guards what follows; never held during network I/O
	tables map[string]*table
	tokens tokens
}

// New returns a server without tables.
func New() *Server { return &Server{tables: map[string]*table{}, tokens: tokens{}} }

// ServeHTTP answers one request of the DynamoDB JSON 1.0 protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The whole body is read even if its start is wrong: only then does the HTTP
	// server notice that the client goes away, which Hang waits for.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away, or sent too much
	}
	if r.Header.Get("Authorization") == "" {
		answer(w, nil, failure(coralType+"MissingAuthenticationTokenException", "Missing Authentication Token"))
		return
	}
	in := decode(body)
	in.host = r.Host
	if operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix); ok {
		in.operation = operation
	}
	res, err := s.fault(in).apply(r.Context(), s, in)
	if s.OnUpdate != nil {
		for _, u := range s.updates(in, res, err) {
			s.OnUpdate(u)
		}
	}
	answer(w, res, err)
}

// updates returns what the hook OnUpdate is told about a request.
func (s *Server) updates(in *input, res any, err error) []Update {
	switch {
	case in.operation == "UpdateItem":
		u := Update{Key: in.partitionKey(), Applied: err == nil, in: in}
		if e := (*apiError)(nil); errors.As(err, &e) {
			u.refuser = e.Item
		}
		return []Update{u}
	case in.operation == "BatchExecuteStatement" && err == nil:
		var all []Update
		for i, answer := range res.(map[string]any)["Responses"].([]statementAnswer) {
			one := in.Statements[i].action
			u := Update{Key: s.keyOf(one), Applied: answer.Error == nil, in: one}
			if answer.Error != nil {
				u.refuser = answer.Error.Item
			}
			all = append(all, u)
		}
		return all
	}
	return nil
}

// operations holds the operations by their names. They run under the lock.
var operations = map[string]func(*Server, *input) (any, error){
	"UpdateItem":            (*Server).updateItem,
	"PutItem":               (*Server).putItem,
	"GetItem":               (*Server).getItem,
	"Scan":                  (*Server).scan,
	"TransactWriteItems":    (*Server).transactWriteItems,
	"BatchExecuteStatement": (*Server).batchExecuteStatement,
	"CreateTable":           (*Server).createTable,
	"DescribeTable":         (*Server).describeTable,
	"ListTables":            (*Server).listTables,
	"UpdateTimeToLive":      (*Server).updateTimeToLive,
	"DescribeTimeToLive":    (*Server).describeTimeToLive,
	"DescribeEndpoints":     (*Server).describeEndpoints,
}

// run carries out a request.
func (s *Server) run(in *input) (any, error) {
	operation := operations[in.operation]
	if operation == nil {
		return nil, failure(coralType+"UnknownOperationException", "An unknown operation was requested: the DynamoDB in memory of lambdalock does not have it.")
	}
	if in.err != nil {
		return nil, in.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return operation(s, in)
}

// Requests returns the number of requests to write received so far (UpdateItem,
// PutItem, TransactWriteItems, BatchExecuteStatement), including those that a
// fault kept from being applied.
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
	text, _ := json.Marshal(t.items[key]) // "null" if there is none
	var raw map[string]any
	_ = json.Unmarshal(text, &raw) // leaves nil for null
	return raw
}

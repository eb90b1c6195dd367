package fakedynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Request describes a request to the hook of [Server.OnRequest].
type Request struct {
	// Operation is the operation's name, such as "UpdateItem".
	Operation string
	// Key is the value of the partition key of a request about one item, or "".
	Key string
	// N is the number of requests to write before this one.
	N int
	// Keys are the values of the partition keys of a TransactWriteItems or
	// BatchExecuteStatement request.
	Keys []string
}

// Fault is what goes wrong with one request. The errors are those of
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
type Fault int

const (
	// None applies and answers the request.
	None Fault = iota
	// DropBefore closes the connection before the request is applied.
	DropBefore
	// ApplyThenDrop applies the request and closes the connection without an
	// answer: a lost answer.
	ApplyThenDrop
	// ApplyThen500 applies the request and answers InternalServerError.
	ApplyThen500
	// Throttle answers ProvisionedThroughputExceededException; nothing is applied.
	// A transaction is canceled with ThrottlingError as the reason of each item.
	Throttle
	// Conflict answers TransactionConflictException; nothing is applied. A
	// transaction is canceled with TransactionConflict as the reason of its first
	// item.
	Conflict
	// InProgress answers TransactionInProgressException, as if an earlier copy of
	// the transaction were still being applied; this one is not.
	InProgress
	// ReplicatedConflict answers ReplicatedWriteConflictException, as a table with
	// multi-Region strong consistency does while another Region writes the item;
	// nothing is applied.
	ReplicatedConflict
	// Deny answers AccessDeniedException; nothing is applied.
	Deny
	// DenyKey answers the AccessDeniedException of a caller who may not use the KMS
	// key of the table; nothing is applied.
	DenyKey
	// Hang holds the request until the client goes away; nothing is applied.
	Hang
	// OmitItem leaves the item out of the answer to a failed condition, like a
	// server that does not know ReturnValuesOnConditionCheckFailure.
	OmitItem
)

// OnRequest sets a hook that is called for every authenticated request before
// it is applied, and decides what goes wrong with it. Calls may be concurrent.
// A nil hook, the initial state, means no faults.
//
// After a BatchExecuteStatement, the hook is called for each of its statements,
// with the permission that it needs as the operation, PartiQLInsert or
// PartiQLUpdate. Faults that end a request without an answer are none there.
func (s *Server) OnRequest(f func(Request) Fault) {
	if f == nil {
		s.onRequest.Store(nil)
		return
	}
	s.onRequest.Store(&f)
}

// writes are the operations that are counted.
var writes = map[string]bool{"UpdateItem": true, "PutItem": true, "TransactWriteItems": true, "BatchExecuteStatement": true}

// fault counts a request and asks the hook about it.
func (s *Server) fault(in *input) Fault {
	n := s.Requests()
	if writes[in.operation] {
		n = int(s.requests.Add(1)) - 1
	}
	for i := range in.Statements {
		in.Statements[i].read()
	}
	hook := s.onRequest.Load()
	if hook == nil {
		return None
	}
	r := Request{Operation: in.operation, Key: s.keyOf(in), N: n}
	for _, element := range in.TransactItems {
		if _, one, err := element.action(); err == nil {
			r.Keys = append(r.Keys, s.keyOf(one))
		}
	}
	for i := range in.Statements {
		r.Keys = append(r.Keys, s.keyOf(in.Statements[i].action))
	}
	f := (*hook)(r)
	for i := range in.Statements {
		one := &in.Statements[i]
		one.fault = (*hook)(Request{Operation: one.permission(), Key: r.Keys[i], N: n})
	}
	return f
}

// keyOf returns the value of the partition key, or "" if it is not a string.
func (s *Server) keyOf(in *input) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keyIn(in)
}

// keyIn is keyOf under the lock.
func (s *Server) keyIn(in *input) string {
	if t := s.tables[in.TableName]; t != nil && in.Item[t.key].S != nil {
		return *in.Item[t.key].S
	}
	return in.partitionKey()
}

// apply runs a request with the fault. Faults that end the request without an
// answer panic with http.ErrAbortHandler, which makes the HTTP server close the
// connection.
func (f Fault) apply(ctx context.Context, s *Server, in *input) (any, error) {
	switch f {
	case DropBefore:
		panic(http.ErrAbortHandler)
	case Hang:
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	if err := f.refusal(in); err != nil {
		return nil, err
	}
	res, err := s.run(in)
	switch f {
	case ApplyThenDrop:
		panic(http.ErrAbortHandler)
	case ApplyThen500:
		return nil, internalError()
	case OmitItem:
		if e := (*apiError)(nil); errors.As(err, &e) {
			e.Item = nil
			for i := range e.CancellationReasons {
				e.CancellationReasons[i].Item = nil
			}
		}
	}
	return res, err
}

// Refuse answers a request, which is not applied, as the fault does, or with an
// InternalServerError if the fault refuses nothing.
func (f Fault) Refuse(w http.ResponseWriter, operation string, body []byte) {
	in := decode(body)
	in.operation = operation
	answer(w, nil, cmp.Or(f.refusal(in), internalError()))
}

func internalError() error {
	return &apiError{status: http.StatusInternalServerError, Kind: dynamoType + "InternalServerError", Message: "Internal server error"}
}

// refusal returns the answer of a fault that keeps the request from being
// applied, or nil.
func (f Fault) refusal(in *input) error {
	switch f {
	case Throttle:
		if n := len(in.TransactItems); n > 0 {
			return cancellation(slices.Repeat([]reason{{Code: "ThrottlingError", Message: "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly."}}, n))
		}
		return failure(dynamoType+"ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case Conflict:
		if n := len(in.TransactItems); n > 0 {
			reasons := slices.Repeat([]reason{{Code: "None"}}, n)
			reasons[0] = reason{Code: "TransactionConflict", Message: "Transaction is ongoing for the item"}
			return cancellation(reasons)
		}
		return failure(dynamoType+"TransactionConflictException", "Transaction is ongoing for the item")
	case InProgress:
		return failure(dynamoType+"TransactionInProgressException", "Transaction from previous request is still in progress")
	case ReplicatedConflict:
		return failure(dynamoType+"ReplicatedWriteConflictException", "The request was rejected because one or more items in the request are being modified by a request in another Region.")
	case DenyKey:
		return failure(dynamoType+"AccessDeniedException", "KMS key access denied error: User: arn:aws:sts::123456789012:assumed-role/app/fn is not authorized to perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:123456789012:key/1234abcd because no identity-based policy allows the kms:Decrypt action")
	case Deny:
		action, table := in.operation, in.TableName
		if len(in.Statements) > 0 {
			in.Statements[0].read()
			action, table = in.Statements[0].permission(), in.Statements[0].action.TableName
		}
		if n := len(in.TransactItems); n > 0 { // IAM knows only what a transaction does to each item
			if k, one, err := in.TransactItems[n-1].action(); err == nil {
				action, table = string(k)+"Item", one.TableName
			}
		}
		return failure(coralType+"AccessDeniedException", fmt.Sprintf(
			"User: arn:aws:sts::123456789012:assumed-role/app/fn is not authorized to perform: dynamodb:%[1]s on resource: arn:aws:dynamodb:us-east-1:123456789012:table/%[2]s because no identity-based policy allows the dynamodb:%[1]s action",
			action, table))
	}
	return nil
}

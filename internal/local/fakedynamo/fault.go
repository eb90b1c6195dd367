package fakedynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Request describes a request to the hook of [Server.OnRequest].
type Request struct {
	// Operation is the operation's name, such as "UpdateItem".
	Operation string
	// Key is the value of the partition key of an UpdateItem request, or "".
	Key string
	// N is the number of UpdateItem requests before this one.
	N int
}

// Fault is what goes wrong with one request. Package locktest uses the same
// words.
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
	Throttle
	// Conflict answers TransactionConflictException; nothing is applied.
	Conflict
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
func (s *Server) OnRequest(f func(Request) Fault) {
	if f == nil {
		s.onRequest.Store(nil)
		return
	}
	s.onRequest.Store(&f)
}

// fault counts a request and asks the hook about it.
func (s *Server) fault(in *input) Fault {
	n := s.Requests()
	if in.operation == "UpdateItem" {
		n = int(s.requests.Add(1)) - 1
	}
	hook := s.onRequest.Load()
	if hook == nil {
		return None
	}
	return (*hook)(Request{Operation: in.operation, Key: in.partitionKey(), N: n})
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
	case Throttle:
		return nil, failure(dynamoType+"ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case Conflict:
		return nil, failure(dynamoType+"TransactionConflictException", "Transaction is ongoing for the item")
	case ReplicatedConflict:
		return nil, failure(dynamoType+"ReplicatedWriteConflictException", "The request was rejected because one or more items in the request are being modified by a request in another Region.")
	case DenyKey:
		return nil, failure(dynamoType+"AccessDeniedException", "KMS key access denied error: User: arn:aws:sts::123456789012:assumed-role/app/fn is not authorized to perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:123456789012:key/1234abcd because no identity-based policy allows the kms:Decrypt action")
	case Deny:
		return nil, failure(coralType+"AccessDeniedException", fmt.Sprintf(
			"User: arn:aws:sts::123456789012:assumed-role/app/fn is not authorized to perform: dynamodb:%[1]s on resource: arn:aws:dynamodb:us-east-1:123456789012:table/%[2]s because no identity-based policy allows the dynamodb:%[1]s action",
			in.operation, in.TableName))
	}
	res, err := s.run(in)
	switch f {
	case ApplyThenDrop:
		panic(http.ErrAbortHandler)
	case ApplyThen500:
		return nil, &apiError{status: http.StatusInternalServerError, Kind: dynamoType + "InternalServerError", Message: "Internal server error"}
	case OmitItem:
		if e := (*apiError)(nil); errors.As(err, &e) {
			e.Item = nil
		}
	}
	return res, err
}

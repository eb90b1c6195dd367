package fakedynamo

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// The service's limits on transactions.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
	maxTokenLength      = 36
	tokenLife           = 10 * time.Minute
)

// transactItem is an element of a transaction. One of its members is set.
type transactItem struct{ Put, Update, Delete, ConditionCheck *input }

// action returns the member that is set.
func (i *transactItem) action() (kind, *input, error) {
	var k kind
	var in *input
	n := 0
	for member, of := range map[kind]*input{kindPut: i.Put, kindUpdate: i.Update, kindDelete: i.Delete, kindCheck: i.ConditionCheck} {
		if of != nil {
			k, in = member, of
			n++
		}
	}
	if n != 1 {
		return "", nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return k, in, nil
}

// reason is why an action canceled its transaction.
type reason struct {
	Code    string
	Message string `json:",omitempty"`
	Item    item   `json:",omitempty"`
}

// tokens are the client request tokens of the transactions that were applied
// lately. One that was canceled leaves no trace.
type tokens map[string]transaction

type transaction struct {
	parameters [sha256.Size]byte
	until      time.Time // when the token is forgotten
}

// transactWriteItems carries out TransactWriteItems.
func (s *Server) transactWriteItems(in *input) (any, error) {
	actions, err := s.prepareAll(in)
	if err != nil {
		return nil, err
	}
	parameters, token := in.parameters(), ""
	if in.ClientRequestToken != nil {
		token = *in.ClientRequestToken
	}
	if applied, err := s.tokens.has(token, parameters); applied || err != nil {
		return struct{}{}, err
	}
	reasons := make([]reason, len(actions))
	canceled := false
	for i, a := range actions {
		reasons[i] = reasonOf(a.err())
		canceled = canceled || a.err() != nil
	}
	if canceled {
		return nil, cancellation(reasons)
	}
	for _, a := range actions {
		a.apply()
	}
	s.tokens[token] = transaction{parameters, time.Now().Add(tokenLife)}
	return struct{}{}, nil
}

// prepareAll evaluates all actions, and returns what is wrong with the request
// whatever the items are.
func (s *Server) prepareAll(in *input) ([]*action, error) {
	switch n := len(in.TransactItems); {
	case n == 0:
		return nil, invalid("1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case n > maxActions:
		return nil, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d", maxActions)
	case in.ClientRequestToken != nil && (*in.ClientRequestToken == "" || len(*in.ClientRequestToken) > maxTokenLength):
		return nil, invalid("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member must have length between 1 and %d", *in.ClientRequestToken, maxTokenLength)
	}
	type target struct {
		table *table
		key   string
	}
	seen, size := map[target]bool{}, 0
	var actions []*action
	for _, element := range in.TransactItems {
		k, one, err := element.action()
		if err != nil {
			return nil, err
		}
		if one.ReturnValues != "" {
			return nil, invalid("fakedynamo does not support the member \"ReturnValues\" in a transaction")
		}
		a, err := s.prepare(k, one)
		if err != nil {
			return nil, err
		}
		if a.syntax != nil {
			return nil, a.syntax
		}
		if a.schema == nil {
			if seen[target{a.table, a.key}] {
				return nil, invalid("Transaction request cannot include multiple operations on one item")
			}
			seen[target{a.table, a.key}] = true
		}
		size += max(a.old.size(), a.new.size())
		actions = append(actions, a)
	}
	if size > maxTransactionBytes {
		return nil, invalid("Collection size of items exceeded, which can also be caused by the aggregate size of the items in the transaction exceeding the 4MB limit")
	}
	return actions, nil
}

// parameters identifies what a transaction does, in whatever order its members
// arrive.
func (in *input) parameters() [sha256.Size]byte {
	text, _ := json.Marshal(in.TransactItems) // of strings, numbers and maps: it cannot fail
	return sha256.Sum256(text)
}

// has reports whether a transaction was applied already. Until its token is
// forgotten, the token cannot be used for another one.
func (t tokens) has(token string, parameters [sha256.Size]byte) (bool, error) {
	before, known := t[token]
	if token == "" || !known || !time.Now().Before(before.until) {
		return false, nil
	}
	if before.parameters != parameters {
		return false, failure(dynamoType+"IdempotentParameterMismatchException", "The token was used for a request with other parameters")
	}
	return true, nil
}

// reasonOf returns what an action's error is in the list of reasons.
func reasonOf(err error) reason {
	e := (*apiError)(nil)
	if !errors.As(err, &e) {
		return reason{Code: "None"}
	}
	code := "ValidationError"
	if strings.HasSuffix(e.Kind, "ConditionalCheckFailedException") {
		code = "ConditionalCheckFailed"
	}
	return reason{Code: code, Message: e.Message, Item: e.Item}
}

// cancellation returns the error of a transaction that was canceled.
func cancellation(reasons []reason) *apiError {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := failure(dynamoType+"TransactionCanceledException", "")
	e.CancellationReasons = reasons
	e.Summary = "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
	return e
}

package fakedynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// input is a request. Its exported fields are the members that a body may have;
// a body with any other member is refused. One type serves all operations,
// because the SDK does not mix up their members.
type input struct {
	TableName string

	// UpdateItem, PutItem, GetItem, and what a transaction does to one item
	Key                                 item
	Item                                item
	ConsistentRead                      bool // every read is
	UpdateExpression                    string
	ConditionExpression                 *string // nil for none; an empty one is an error
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           item
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string

	// Scan
	FilterExpression  *string // nil for none; an empty one is an error
	ExclusiveStartKey item
	Limit             *int

	// TransactWriteItems
	TransactItems      []transactItem
	ClientRequestToken *string // nil for none; an empty one is an error

	// BatchExecuteStatement
	Statements []statement

	// CreateTable
	BillingMode          string
	KeySchema            []keyElement
	AttributeDefinitions []attributeDefinition

	// UpdateTimeToLive
	TimeToLiveSpecification timeToLive

	operation string
	host      string // that the client connected to
	err       error  // what is wrong with the body
}

// decode decodes the body of a request. It returns what could be decoded even
// of a wrong body, so that such requests reach the fault hook too.
func decode(body []byte) *input {
	in := new(input)
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	in.err = d.Decode(in)
	if in.err == nil || errors.As(in.err, new(*apiError)) { // such as one about a number
		return in
	}
	// There is no other way to tell this error from the others.
	if member, ok := strings.CutPrefix(in.err.Error(), "json: unknown field "); ok {
		in.err = invalid("fakedynamo does not support the member %s", member)
	} else {
		in.err = failure(coralType+"SerializationException", in.err.Error())
	}
	return in
}

// partitionKey returns the value of the key, or "" if it is not a string.
func (in *input) partitionKey() string {
	for _, v := range in.Key {
		if v.S != nil {
			return *v.S
		}
	}
	return ""
}

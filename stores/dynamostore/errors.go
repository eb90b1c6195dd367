package dynamostore

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/internal/neterror"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// String returns what errors call the store.
func (s *Store) String() string { return "DynamoDB table " + s.table }

// conflicts are the answers of a table to which another client is writing: in a
// transaction, or in another Region of a table with multi-Region strong
// consistency. The SDK repeats neither by itself.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#API_UpdateItem_Errors
var conflicts = map[string]bool{"TransactionConflictException": true, "ReplicatedWriteConflictException": true}

// lastingErrors are the answers that a later try would not change. An error
// that is in no list may be one that passes, and a proxy's.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/CommonErrors.html
var lastingErrors = map[string]bool{
	"AccessDeniedException": true, "NotAuthorized": true, "OptInRequired": true,
	"ConditionalCheckFailedException": true, "ItemCollectionSizeLimitExceededException": true, "ResourceNotFoundException": true,
	"SerializationException": true, "UnknownOperationException": true, "ValidationException": true, "ValidationError": true,
	"TransactionCanceledException": true, "IdempotentParameterMismatchException": true, "DuplicateItemException": true,
	"UnrecognizedClientException": true, "MissingAuthenticationTokenException": true, "MissingAuthenticationToken": true,
	"IncompleteSignatureException": true, "IncompleteSignature": true, "InvalidSignatureException": true,
	"ExpiredTokenException": true, "InvalidClientTokenId": true, "RequestExpired": true,
}

// classify returns the error as a [*driver.Error], which says whether a later
// try would fail, too, and whether the write may have been applied. It may have
// been, unless the answer is a known one.
func (s *Store) classify(err error) error {
	e := &driver.Error{Store: s.String(), Err: err}
	var api smithy.APIError
	if !errors.As(err, &api) {
		switch status := awserror.Status(err); {
		case status == 0:
			e.Hint, e.Err = neterror.Unanswered(err, s.reach())
		case status >= http.StatusMultipleChoices && status < http.StatusInternalServerError && !neterror.Cut(err):
			e.Answered = true
			e.Hint = "this is not an answer of DynamoDB: check AWS_ENDPOINT_URL_DYNAMODB, and the proxies between the function and DynamoDB"
		}
		return e
	}
	code := api.ErrorCode()
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	if throttled || conflicts[code] {
		e.Answered, e.Unapplied, e.Conflict = true, true, conflicts[code]
		return e
	}
	if _, passing := retry.DefaultRetryableErrorCodes[code]; passing || awserror.Status(err) >= http.StatusInternalServerError {
		return e
	}
	e.Answered = true
	if !lastingErrors[code] {
		return e
	}
	e.Unapplied, e.Lasting = true, true
	switch {
	case s.table == "": // the answers to that differ, and none says it
		e.Hint = "the table's name is empty: give dynamostore.New one; if it takes that from an environment variable such as LOCK_TABLE_NAME, set it"
		return e
	case code == "ResourceNotFoundException":
		e.Hint = "the table does not exist in " + s.place() + ": correct its name, for example in LOCK_TABLE_NAME, or create it with `lambdalock create-table`"
		return e
	}
	e.Action, e.Hint = blame(code, api.ErrorMessage())
	return e
}

// place says where the client looks for the table.
func (s *Store) place() string {
	if region := s.region(); region != "" {
		return "this account in " + region
	}
	return "this account and Region"
}

// reach says what to look at if there was no answer.
func (s *Store) reach() string {
	if endpoint := s.clientOptions().BaseEndpoint; endpoint != nil {
		return "can the function reach " + *endpoint + "? The client was given that endpoint, by AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL or BaseEndpoint"
	}
	return "can the function reach DynamoDB? In a VPC it needs a gateway endpoint for DynamoDB or a NAT gateway; check AWS_REGION too"
}

// region returns the client's Region, or "" if it hides it.
func (s *Store) region() string { return s.clientOptions().Region }

// clientOptions returns the client's options, or none if it hides them.
func (s *Store) clientOptions() (o dynamodb.Options) {
	if c, ok := s.client.(interface{ Options() dynamodb.Options }); ok {
		o = c.Options()
	}
	return o
}

// keyHint is what to do about a table with another key.
const keyHint = `the table needs a partition key named "lock" of type String and no sort key`

// blame explains an answer that a retry would not change: the action that was
// denied, if any, and what to do.
func blame(code, message string) (action, hint string) {
	switch code {
	case "AccessDeniedException":
		action = awserror.Denied(message, "dynamodb:UpdateItem")
		if strings.HasPrefix(action, "kms:") {
			return action, awserror.Remedy(message, "the table is encrypted with your own key: allow the function's role, or who else asked, that action on the key")
		}
		return action, awserror.Remedy(message, "allow the function's role, or who else asked, exactly that action on the table; where the permission is limited to a namespace (dynamodb:LeadingKeys), it must be the one that is used")
	case "ValidationException":
		for _, schema := range []string{"does not match the schema", "Type mismatch for key", "Missing the key"} {
			if strings.Contains(message, schema) {
				return "", keyHint
			}
		}
	case "UnrecognizedClientException", "MissingAuthenticationTokenException", "IncompleteSignatureException",
		"InvalidSignatureException", "ExpiredTokenException", "InvalidClientTokenId":
		return "", "check the function's credentials and its clock"
	}
	return "", ""
}

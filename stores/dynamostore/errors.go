package dynamostore

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/lock"
)

func (s *Store) name() string { return "DynamoDB table " + s.table }

// classify says whether a later try may help, and whether the write may have been
// applied. No answer means that it may.
func (s *Store) classify(err error) error {
	se := &lock.StoreError{Store: s.name(), Err: err, Temporary: true}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return se
	}
	code := api.ErrorCode()
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	// The SDK does not repeat this one by itself.
	if throttled || code == "TransactionConflictException" {
		se.Rejected = true
		return se
	}
	if status(err) >= http.StatusInternalServerError {
		return se
	}
	se.Rejected, se.Temporary = true, false
	switch code {
	case "AccessDeniedException":
		se.Action = "dynamodb:UpdateItem"
		se.Hint = "allow exactly that action on the table in the function's role"
	case "ResourceNotFoundException":
		se.Hint = "the table does not exist in this account and Region: create it with `lambdalock create-table`, or correct LOCK_TABLE_NAME"
	case "ValidationException":
		se.Hint = `the table needs a partition key named "lock" of type String and no sort key`
	case "UnrecognizedClientException", "MissingAuthenticationTokenException", "IncompleteSignatureException",
		"InvalidSignatureException", "ExpiredTokenException", "InvalidClientTokenId":
		se.Hint = "check the function's credentials and the clock"
	}
	return se
}

// answered: the error is the server's word, not the lack of one.
func answered(err error) bool { return status(err) != 0 }

func status(err error) int {
	var re *awshttp.ResponseError
	if errors.As(err, &re) && re.Response != nil {
		return re.HTTPStatusCode()
	}
	return 0
}

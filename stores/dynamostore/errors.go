package dynamostore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/lock"
)

func (s *Store) name() string { return "DynamoDB table " + s.table }

// conflicts are answers of a table that is written by somebody else at that moment:
// in a transaction, or in another Region of a table with multi-Region strong
// consistency. The SDK repeats neither by itself.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#API_UpdateItem_Errors
var conflicts = map[string]bool{"TransactionConflictException": true, "ReplicatedWriteConflictException": true}

// classify says whether a later try may help, and whether the write may have been
// applied. No answer means that it may.
func (s *Store) classify(err error) error {
	se := &lock.StoreError{Store: s.name(), Err: err, Temporary: true}
	var api smithy.APIError
	if !errors.As(err, &api) {
		if !answered(err) {
			se.Hint, se.Err = explain(err)
		}
		return se
	}
	code := api.ErrorCode()
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	if throttled || conflicts[code] {
		se.Rejected, se.Conflict = true, conflicts[code]
		return se
	}
	if _, passing := retry.DefaultRetryableErrorCodes[code]; passing || status(err) >= http.StatusInternalServerError {
		return se
	}
	se.Rejected, se.Temporary = true, false
	se.Action, se.Hint = blame(code, api.ErrorMessage())
	return se
}

// denied finds the action in what IAM answers, because it need not be the one that was
// called: DynamoDB uses a key of KMS on the caller's behalf.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
var denied = regexp.MustCompile(`not authorized to perform: ([\w-]+:\w+)`)

// blame says what has to change where the server will answer the same again: the
// action that is missing, if it is one, and what to do.
func blame(code, message string) (action, hint string) {
	switch code {
	case "AccessDeniedException":
		action = "dynamodb:UpdateItem"
		if found := denied.FindStringSubmatch(message); found != nil {
			action = found[1]
		}
		if strings.HasPrefix(action, "kms:") {
			return action, "the table is encrypted with a key of your own: allow the function's role that action on the key"
		}
		return action, "allow exactly that action on the table in the function's role; where the permission is limited to a namespace (dynamodb:LeadingKeys), it must be the one that the function uses"
	case "ResourceNotFoundException":
		return "", "the table does not exist in this account and Region: create it with `lambdalock create-table`, or correct LOCK_TABLE_NAME"
	case "ValidationException":
		for _, schema := range []string{"does not match the schema", "Type mismatch for key", "Missing the key"} {
			if strings.Contains(message, schema) {
				return "", `the table needs a partition key named "lock" of type String and no sort key`
			}
		}
	case "UnrecognizedClientException", "MissingAuthenticationTokenException", "IncompleteSignatureException",
		"InvalidSignatureException", "ExpiredTokenException", "InvalidClientTokenId":
		return "", "check the function's credentials and the clock"
	}
	return "", ""
}

// silence is the lack of an answer, in fewer words than the SDK has for it.
type silence struct {
	text string
	err  error
}

func (e *silence) Error() string { return e.text }
func (e *silence) Unwrap() error { return e.err }

// explain says why there was no answer, and what to look at.
func explain(err error) (hint string, cause error) {
	hint = "is there a way to DynamoDB? A function in a VPC needs a gateway endpoint for DynamoDB or a NAT gateway; check AWS_REGION, too"
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return hint, &silence{"no answer in time", err}
	case errors.Is(err, context.Canceled):
		return "", &silence{"the caller's context ended before there was an answer", err}
	case errors.As(err, &dns):
		return hint, &silence{dns.Error(), err}
	case errors.As(err, &op):
		return hint, &silence{op.Error(), err}
	}
	return "", &silence{"no answer: " + root(err).Error(), err}
}

// root is the first cause: the SDK wraps it in what it does not know (StatusCode: 0).
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
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

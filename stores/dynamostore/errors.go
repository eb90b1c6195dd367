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

	"github.com/lambdalock/lambdalock/lock/driver"
)

func (s *Store) name() string { return "DynamoDB table " + s.table }

// conflicts are the answers of a table to which another client is writing: in a
// transaction, or in another Region of a table with multi-Region strong
// consistency. The SDK repeats neither by itself.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#API_UpdateItem_Errors
var conflicts = map[string]bool{"TransactionConflictException": true, "ReplicatedWriteConflictException": true}

// classify returns the error as a [*driver.Error], which says whether a later
// try may succeed and whether the write may have been applied. Without an
// answer it may have been.
func (s *Store) classify(err error) error {
	e := &driver.Error{Store: s.name(), Err: err, Temporary: true}
	var api smithy.APIError
	if !errors.As(err, &api) {
		if !answered(err) {
			e.Hint, e.Err = explain(err)
		}
		return e
	}
	code := api.ErrorCode()
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	if throttled || conflicts[code] {
		e.Rejected, e.Conflict = true, conflicts[code]
		return e
	}
	if _, passing := retry.DefaultRetryableErrorCodes[code]; passing || status(err) >= http.StatusInternalServerError {
		return e
	}
	e.Rejected, e.Temporary = true, false
	e.Action, e.Hint = blame(code, api.ErrorMessage())
	return e
}

// denied finds the action in IAM's answer. It need not be the action that was
// called: DynamoDB uses a KMS key on the caller's behalf.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
var denied = regexp.MustCompile(`not authorized to perform: ([\w-]+:\w+)`)

// blame explains an answer that a retry would not change: the action that was
// denied, if any, and what to do.
func blame(code, message string) (action, hint string) {
	switch code {
	case "AccessDeniedException":
		action = "dynamodb:UpdateItem"
		if found := denied.FindStringSubmatch(message); found != nil {
			action = found[1]
		}
		if strings.HasPrefix(action, "kms:") {
			return action, "the table is encrypted with your own key: allow the function's role that action on the key"
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
		return "", "check the function's credentials and its clock"
	}
	return "", ""
}

// silence is the error of a request without an answer, in fewer words than the
// SDK's.
type silence struct {
	text string
	err  error
}

func (e *silence) Error() string { return e.text }
func (e *silence) Unwrap() error { return e.err }

// explain returns why there was no answer, and what to check.
func explain(err error) (hint string, cause error) {
	hint = "can the function reach DynamoDB? In a VPC it needs a gateway endpoint for DynamoDB or a NAT gateway; check AWS_REGION too"
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

// root returns the innermost error. The SDK wraps it in details of an answer
// that never came (StatusCode: 0).
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// answered reports whether the server answered at all.
func answered(err error) bool { return status(err) != 0 }

func status(err error) int {
	var re *awshttp.ResponseError
	if errors.As(err, &re) && re.Response != nil {
		return re.HTTPStatusCode()
	}
	return 0
}

package batching

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// answer is what UpdateItem would have returned, or a reason to go on
// otherwise.
type answer struct {
	out *dynamodb.UpdateItemOutput
	err error
}

// answers returns the answer to each of n statements. What is unknown for the
// request is unknown for each of them.
func answers(n int, out *dynamodb.BatchExecuteStatementOutput, err error) []answer {
	if err == nil && len(out.Responses) != n {
		err = fmt.Errorf("%d statements have %d answers", n, len(out.Responses))
	}
	all := make([]answer, n)
	for i := range all {
		if err != nil {
			all[i].err = requestError(err)
			continue
		}
		one := out.Responses[i]
		if one.Error != nil {
			all[i].err = memberError(one.Error)
			continue
		}
		all[i].out = &dynamodb.UpdateItemOutput{Attributes: one.Item}
	}
	return all
}

// requestError returns what the error of the whole request means for each
// member.
func requestError(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "AccessDeniedException", "UnknownOperationException":
		return errDenied
	case "ValidationException":
		return fmt.Errorf("%w: %s", errInvalid, api.ErrorMessage())
	}
	return err
}

// codes are the codes of members whose statement was not applied, with their
// names in the rest of the API. Any other code may be the server's failure.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
var codes = map[types.BatchStatementErrorCodeEnum]string{
	types.BatchStatementErrorCodeEnumItemCollectionSizeLimitExceeded: "ItemCollectionSizeLimitExceededException",
	types.BatchStatementErrorCodeEnumRequestLimitExceeded:            "RequestLimitExceeded",
	types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded:   "ProvisionedThroughputExceededException",
	types.BatchStatementErrorCodeEnumTransactionConflict:             "TransactionConflictException",
	types.BatchStatementErrorCodeEnumThrottlingError:                 "ThrottlingException",
	types.BatchStatementErrorCodeEnumResourceNotFound:                "ResourceNotFoundException",
}

// memberError returns the error of a member as that of an UpdateItem. A refusal
// without the row may come from a name without one, which UPDATE does not
// create, or from a server that does not return rows.
func memberError(e *types.BatchStatementError) error {
	switch e.Code {
	case types.BatchStatementErrorCodeEnumDuplicateItem:
		return errExists
	case types.BatchStatementErrorCodeEnumAccessDenied:
		return errDenied
	case types.BatchStatementErrorCodeEnumValidationError:
		return fmt.Errorf("%w: %s", errInvalid, aws.ToString(e.Message))
	case types.BatchStatementErrorCodeEnumConditionalCheckFailed:
		if len(e.Item) <= 1 {
			return errAlone
		}
		return &types.ConditionalCheckFailedException{Message: e.Message, Item: e.Item}
	}
	code, status := codes[e.Code], http.StatusBadRequest
	if code == "" {
		code, status = "InternalServerError", http.StatusInternalServerError
	}
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: aws.ToString(e.Message)},
	}}
}

// isAllowed reports whether the answer to a write shows that the caller may do
// it. No answer and a throttled write show nothing.
func isAllowed(err error) bool {
	var refused *types.ConditionalCheckFailedException
	return err == nil || errors.As(err, &refused)
}

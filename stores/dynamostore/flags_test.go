package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

var (
	unclear   = driver.Error{}
	passes    = driver.Error{Answered: true}
	throttles = driver.Error{Answered: true, Unapplied: true}
	conflicts = driver.Error{Answered: true, Unapplied: true, Conflict: true}
	lasts     = driver.Error{Answered: true, Unapplied: true, Lasting: true}
)

// answerFlags has what each answer means: its HTTP status, and its code if it
// has one.
var answerFlags = []struct {
	flags   driver.Error
	answers []string
}{
	{throttles, []string{
		"400 Throttling", "400 ThrottlingException", "400 ThrottledException", "400 RequestThrottledException", "400 TooManyRequestsException",
		"400 ProvisionedThroughputExceededException", "400 RequestLimitExceeded", "400 LimitExceededException", "503 SlowDown",
	}},
	{conflicts, []string{"400 TransactionConflictException", "400 ReplicatedWriteConflictException"}},
	{lasts, []string{
		"400 AccessDeniedException", "400 NotAuthorized", "403 OptInRequired", "400 ConditionalCheckFailedException", "400 ItemCollectionSizeLimitExceededException",
		"400 ResourceNotFoundException", "400 SerializationException", "400 UnknownOperationException", "400 ValidationException", "400 ValidationError",
		"400 TransactionCanceledException", "400 IdempotentParameterMismatchException", "400 DuplicateItemException", "400 UnrecognizedClientException",
		"400 MissingAuthenticationTokenException", "403 MissingAuthenticationToken", "400 IncompleteSignatureException", "400 IncompleteSignature",
		"400 InvalidSignatureException", "400 ExpiredTokenException", "403 InvalidClientTokenId", "400 RequestExpired",
	}},
	{unclear, []string{
		"400 RequestTimeout", "408 RequestTimeoutException", "500 InternalServerError", "500 InternalFailure", "503 ServiceUnavailable",
		"500 ValidationException", "599 Unheard", "500", "502", "504", "200", "0",
	}},
	{passes, []string{"400 Unheard", "499 Unheard", "300", "302", "400", "403", "404", "413", "499"}},
}

// memberFlags has what the code of one statement of a batch means. Without
// flags, the request goes on alone.
var memberFlags = map[types.BatchStatementErrorCodeEnum]*driver.Error{
	types.BatchStatementErrorCodeEnumConditionalCheckFailed: nil, types.BatchStatementErrorCodeEnumDuplicateItem: nil,
	types.BatchStatementErrorCodeEnumValidationError: nil, types.BatchStatementErrorCodeEnumAccessDenied: nil,
	types.BatchStatementErrorCodeEnumItemCollectionSizeLimitExceeded: &lasts, types.BatchStatementErrorCodeEnumResourceNotFound: &lasts,
	types.BatchStatementErrorCodeEnumRequestLimitExceeded: &throttles, types.BatchStatementErrorCodeEnumThrottlingError: &throttles,
	types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded: &throttles, types.BatchStatementErrorCodeEnumTransactionConflict: &conflicts,
	types.BatchStatementErrorCodeEnumInternalServerError: &unclear, "Unheard": &unclear,
}

// answered returns the error of the SDK for an answer.
func answered(answer string) error {
	var status int
	var code string
	_, _ = fmt.Sscan(answer, &status, &code)
	err := error(&smithy.GenericAPIError{Code: code, Message: "said"})
	if code == "" {
		err = errors.New("no code")
	}
	if status == 0 {
		return err
	}
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}}
}

// failing is a client whose requests fail: those of several statements as a
// whole, or else the first statement with a code.
type failing struct {
	dynamostore.Client
	err    error
	member types.BatchStatementErrorCodeEnum
}

// errAlone is the error of a request by itself, if those of several have
// another.
var errAlone = answered("400 Alone")

func (c failing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, errAlone
}

func (c failing) BatchExecuteStatement(_ context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out := &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, len(in.Statements))}
	out.Responses[0].Error = &types.BatchStatementError{Code: c.member}
	return out, c.err
}

// failingAlone is a client whose requests by themselves fail.
type failingAlone struct{ failing }

func (c failingAlone) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, c.err
}

// wantFlags compares all flags of an error. Without flags, it is that of a
// request that went on alone.
func wantFlags(t *testing.T, what string, err error, want *driver.Error) {
	t.Helper()
	var e *driver.Error
	if want == nil {
		if !strings.Contains(fmt.Sprint(err), "Alone") {
			t.Errorf("%s: %v, want a request alone", what, err)
		}
		return
	}
	if !errors.As(err, &e) || e.Answered != want.Answered || e.Unapplied != want.Unapplied || e.Lasting != want.Lasting || e.Conflict != want.Conflict {
		t.Errorf("%s: %+v, want %+v", what, e, *want)
	}
}

// TestFlags has what every answer means, to a request alone, to one of several
// statements, and to one of these.
func TestFlags(t *testing.T) { // F2, F8, F9, F57
	t.Parallel()
	for _, c := range answerFlags {
		for _, answer := range c.answers {
			want, err := &c.flags, answered(answer)
			_, _, got := dynamostore.New(failingAlone{failing{err: err}}, table).Acquire(t.Context(), claimOf("n"))
			wantFlags(t, answer+", alone", got, want)
			if slices.Contains([]string{"AccessDeniedException", "UnknownOperationException", "ValidationException"}, answer[min(4, len(answer)):]) {
				want = nil // the name may be the reason, or the server may not know such requests
			}
			synctest.Test(t, func(t *testing.T) {
				f := &companyFixture{store: dynamostore.New(failing{err: err}, table).InBatches()}
				for _, o := range f.acquire(t.Context(), claimsOf("n", 2)...) {
					wantFlags(t, answer+", together", o.err, want)
				}
			})
		}
	}
	for _, code := range append(types.BatchStatementErrorCodeEnum("").Values(), "Unheard") {
		want, known := memberFlags[code]
		if !known {
			t.Errorf("the table lacks the code %s", code)
		}
		synctest.Test(t, func(t *testing.T) {
			f := &companyFixture{store: dynamostore.New(failing{member: code}, table).InBatches()}
			failures := 0
			for _, o := range f.acquire(t.Context(), claimsOf("n", 3)...) {
				if o.err != nil {
					failures++
					wantFlags(t, "a statement, "+string(code), o.err, want)
				}
			}
			if failures != 1 {
				t.Errorf("%s: %d of 3 statements failed", code, failures)
			}
		})
	}
}

package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// failing is a client whose requests fail.
type failing struct{ err error }

func (c failing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, c.err
}

// TestFlags has what every answer means.
func TestFlags(t *testing.T) { // F2, F8, F9, F57
	t.Parallel()
	now := time.Now()
	for _, c := range answerFlags {
		for _, answer := range c.answers {
			_, _, err := dynamostore.New(failing{answered(answer)}, table).Acquire(t.Context(), &driver.Claim{Name: "n", Token: "t", Now: now, Stamp: now, Until: now})
			var e *driver.Error
			if want := c.flags; !errors.As(err, &e) || e.Answered != want.Answered || e.Unapplied != want.Unapplied || e.Lasting != want.Lasting || e.Conflict != want.Conflict {
				t.Errorf("%s: %+v, want %+v", answer, e, want)
			}
		}
	}
}

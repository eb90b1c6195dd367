package batching_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

var (
	alone     = driver.Error{Hint: "alone"}
	unclear   = driver.Error{}
	throttles = driver.Error{Answered: true, Unapplied: true}
	conflicts = driver.Error{Answered: true, Unapplied: true, Conflict: true}
	lasts     = driver.Error{Answered: true, Unapplied: true, Lasting: true}
)

// memberFlags has what the code of one statement of a batch means.
var memberFlags = map[types.BatchStatementErrorCodeEnum]driver.Error{
	types.BatchStatementErrorCodeEnumConditionalCheckFailed: alone, types.BatchStatementErrorCodeEnumDuplicateItem: alone,
	types.BatchStatementErrorCodeEnumValidationError: alone, types.BatchStatementErrorCodeEnumAccessDenied: alone,
	types.BatchStatementErrorCodeEnumItemCollectionSizeLimitExceeded: lasts, types.BatchStatementErrorCodeEnumResourceNotFound: lasts,
	types.BatchStatementErrorCodeEnumRequestLimitExceeded: throttles, types.BatchStatementErrorCodeEnumThrottlingError: throttles,
	types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded: throttles, types.BatchStatementErrorCodeEnumTransactionConflict: conflicts,
	types.BatchStatementErrorCodeEnumInternalServerError: unclear, "Unheard": unclear,
}

// aloneAnswer is that of a request by itself, if several have another.
const aloneAnswer = "400 Alone"

// TestErrorOfARequest shows that every answer to a request means the same for
// each of its members as it does for a request by itself, unless it may be one
// member's own: then each goes alone.
func TestErrorOfARequest(t *testing.T) { // F2, F8, F9, F57
	t.Parallel()
	goesAlone := []string{"400 AccessDeniedException", "400 UnknownOperationException", "400 ValidationException", "500 ValidationException"}
	for _, answer := range append(goesAlone, "400 ThrottlingException", "400 ProvisionedThroughputExceededException", "400 RequestLimitExceeded",
		"400 TransactionConflictException", "400 ReplicatedWriteConflictException", "400 ResourceNotFoundException", "400 UnrecognizedClientException",
		"400 ExpiredTokenException", "400 SerializationException", "400 DuplicateItemException", "400 ValidationError", "500 InternalServerError",
		"503 ServiceUnavailable", "400 Unheard", "599 Unheard", "400", "403", "413", "500", "502") {
		synctest.Test(t, func(t *testing.T) {
			like := answer
			if slices.Contains(goesAlone, answer) {
				like = aloneAnswer
			}
			_, _, want := dynamostore.New(clientOf(refusal(like)), table).Acquire(t.Context(), claimOf("n"))
			f := &fixture{store: storeOf(split(refusal(aloneAnswer), refusal(answer)))}
			for _, o := range f.acquire(t.Context(), claimsOf("n", 2)...) {
				if flagsOf(o.err) != flagsOf(want) {
					t.Errorf("%s: %v, want %v", answer, o.err, want)
				}
			}
		})
	}
}

// flagsOf returns the flags of an error. An answer to a request by itself has
// none.
func flagsOf(err error) driver.Error {
	var e *driver.Error
	if strings.Contains(fmt.Sprint(err), "Alone") || !errors.As(err, &e) {
		return alone
	}
	return driver.Error{Answered: e.Answered, Unapplied: e.Unapplied, Lasting: e.Lasting, Conflict: e.Conflict}
}

// TestErrorOfAMember has what every code of a statement means.
func TestErrorOfAMember(t *testing.T) { // F2, F8, F9, F57
	t.Parallel()
	for _, code := range append(types.BatchStatementErrorCodeEnum("").Values(), "Unheard") {
		want, known := memberFlags[code]
		if !known {
			t.Errorf("the table lacks the code %s", code)
		}
		synctest.Test(t, func(t *testing.T) {
			f := &fixture{store: storeOf(split(refusal(aloneAnswer), memberRefusals(code, "", "")))}
			failures := 0
			for _, o := range f.acquire(t.Context(), claimsOf("n", 3)...) {
				if o.err == nil {
					continue
				}
				failures++
				if got := flagsOf(o.err); got != want {
					t.Errorf("%s: %v, %+v, want %+v", code, o.err, got, want)
				}
			}
			if failures != 1 {
				t.Errorf("%s: %d of 3 statements failed", code, failures)
			}
		})
	}
}

// TestRequestErrors shows that what is unknown for a request is unknown for
// each of its members.
func TestRequestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     fakedynamo.Fault
		unapplied bool
	}{
		"lost answer": {fakedynamo.ApplyThenDrop, false}, "lost request": {fakedynamo.DropBefore, false},
		"failed": {fakedynamo.ApplyThen500, false}, "throttled": {fakedynamo.Throttle, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if r.Operation == "BatchExecuteStatement" {
						return c.fault
					}
					return fakedynamo.None
				})
				claims := claimsOf("name", 25)
				for _, o := range f.acquire(t.Context(), claims...) {
					var e *driver.Error
					if !errors.As(o.err, &e) || e.Lasting || e.Unapplied != c.unapplied {
						t.Errorf("%v, %+v", o.ok, e)
					}
				}
				f.OnRequest(nil)
				f.take()
				f.mustAcquire(t, claims...) // whatever has become of them
				if got := f.take(); slices.Contains(got, "UpdateItem") {
					t.Errorf("then sent %q, want nothing alone", got)
				}
			})
		})
	}
}

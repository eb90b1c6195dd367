package azure

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// lastingCodes are the errors that a retry would not fix.
const lastingCodes = " AccountIsDisabled AuthenticationFailed AuthorizationFailure AuthorizationPermissionMismatch BlobAlreadyExists BlobArchived BlobBeingRehydrated" +
	" BlobImmutableDueToLegalHold BlobImmutableDueToPolicy BlobNotFound ConditionNotMet ContainerNotFound FeatureVersionMismatch" +
	" InsufficientAccountPermissions InvalidAuthenticationInfo InvalidBlobType InvalidHeaderValue InvalidInput InvalidMetadata InvalidQueryParameterValue" +
	" InvalidResourceName InvalidUri LeaseAlreadyPresent LeaseIdMismatchWithBlobOperation LeaseIdMismatchWithLeaseOperation LeaseIdMissing" +
	" LeaseIsBreakingAndCannotBeAcquired LeaseIsBrokenAndCannotBeRenewed LeaseLost LeaseNotPresentWithBlobOperation LeaseNotPresentWithLeaseOperation" +
	" MissingRequiredHeader MissingRequiredQueryParameter NoAuthenticationInformation RequestBodyTooLarge ResourceNotFound ResourceTypeMismatch" +
	" UnauthorizedBlobOverwrite UnsupportedHeader UnsupportedHttpVerb UnsupportedQueryParameter "

// TestFlags has what each answer means. Azure does not rule out that a
// throttled write was applied.
func TestFlags(t *testing.T) { // F2, F8, F9
	t.Parallel()
	lasts := driver.Error{Answered: true, Unapplied: true, Lasting: true}
	check := func(err error, want driver.Error) {
		t.Helper()
		if e := Classify("place", WriteAction, err); e.Answered != want.Answered || e.Unapplied != want.Unapplied || e.Lasting != want.Lasting || e.Conflict {
			t.Errorf("%v: %+v, want %+v", err, e, want)
		}
	}
	for _, code := range slices.Concat(slices.Collect(maps.Keys(lasting)), slices.Collect(maps.Keys(hints))) {
		if !strings.Contains(lastingCodes, " "+string(code)+" ") {
			t.Errorf("the table lacks the code %s", code)
		}
	}
	for _, code := range strings.Fields(lastingCodes) {
		for status, want := range map[int]driver.Error{400: lasts, 499: lasts, 408: {}, 500: {}, 503: {}, 429: {Answered: true}} {
			check(&azcore.ResponseError{StatusCode: status, ErrorCode: code}, want)
		}
	}
	for status, want := range map[int]driver.Error{
		301: {Answered: true}, 400: {Answered: true}, 403: {Answered: true}, 404: {Answered: true}, 409: {Answered: true}, 412: {Answered: true}, 429: {Answered: true},
		408: {}, 500: {}, 502: {}, 503: {}, 504: {},
	} {
		check(&azcore.ResponseError{StatusCode: status}, want)
		check(&azcore.ResponseError{StatusCode: status, ErrorCode: "Unheard"}, want)
		check(&azcore.ResponseError{StatusCode: status, ErrorCode: string(bloberror.ServerBusy)}, driver.Error{Answered: true})
	}
	check(io.EOF, driver.Error{})
	check(errors.Join(io.ErrUnexpectedEOF, errors.New("cut")), driver.Error{})
}

// Package azure says which requests Azure's client repeats, and classifies its
// errors.
package azure

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/lambdalock/lambdalock/internal/neterror"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// The data actions that a role needs. Storage Blob Data Contributor has both.
// https://learn.microsoft.com/azure/role-based-access-control/permissions/storage
const (
	ReadAction  = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"
	WriteAction = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write"
)

// Once returns a context that disables the client's retries.
func Once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}

// Patiently returns a context with which the client repeats a list that fails.
// Package lock, which repeats the requests of locks, does not list.
func Patiently(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{})
}

// Classify returns the error as a [*driver.Error], which says whether a retry
// would fail, too, and whether the write may have been applied. It may have
// been if there was no response, an unknown error, or one of 408, 429, or 500
// and above: Azure's documentation does not rule it out. The action is the data
// action that the request needs.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
// https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes
func Classify(place, action string, err error) *driver.Error {
	e := &driver.Error{Store: place, Err: err}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		if unauthenticated(err) {
			e.Lasting, e.Unapplied = !tokenMayCome(err), true
			e.Hint = "the client's credential got no token, so nothing was sent: check the identity and its settings"
			if !e.Lasting {
				e.Hint = "the client's credential got no token, so nothing was sent: is the identity still valid, and can this computer reach its token service?"
			}
			return e
		}
		e.Hint, e.Err = neterror.Unanswered(err, "can this computer reach the account's blob endpoint? Check the account's name, its network rules and private endpoints")
		return e
	}
	e.Err = &brief{describe(answer), err}
	code, status := bloberror.Code(answer.ErrorCode), answer.StatusCode
	if code == bloberror.ServerBusy || status == http.StatusTooManyRequests {
		e.Answered = true
		return e
	}
	if status >= http.StatusInternalServerError || status == http.StatusRequestTimeout {
		return e
	}
	e.Answered, e.Hint = true, hints[code]
	if e.Hint == "" && !lasting[code] { // it is unknown, and may be a proxy's
		return e
	}
	e.Unapplied, e.Lasting = true, true
	if denied[code] {
		e.Action = action
	}
	return e
}

// denied are the error codes for a request that the identity may not send.
var denied = map[bloberror.Code]bool{
	bloberror.AuthorizationPermissionMismatch: true,
	bloberror.AuthorizationFailure:            true,
	bloberror.InsufficientAccountPermissions:  true,
	bloberror.UnauthorizedBlobOverwrite:       true,
}

const (
	giveRole  = "give the identity the role Storage Blob Data Contributor on the container; a shared access signature needs the permissions read, create, write and list (rcwl)"
	checkKeys = "check the credential, and this computer's clock: the service refuses a request that is dated 15 minutes or more away"
	immutable = "a lock's blob is rewritten all the time: use a container without an immutability policy and without a legal hold"
	archived  = "a lifecycle rule has moved the blob to the archive tier: exclude the prefix of the locks from it"
	leased    = "somebody has leased this blob, which belongs to a lock: break the lease (az storage blob lease break)"
)

// hints are advice for errors that a retry would not fix.
var hints = map[bloberror.Code]string{
	bloberror.AuthorizationPermissionMismatch: giveRole,
	bloberror.InsufficientAccountPermissions:  giveRole,
	bloberror.UnauthorizedBlobOverwrite:       giveRole,
	bloberror.AuthorizationFailure:            giveRole + "; the account's network rules must admit this address",
	bloberror.AuthenticationFailed:            checkKeys,
	bloberror.InvalidAuthenticationInfo:       checkKeys,
	bloberror.NoAuthenticationInformation:     checkKeys,
	bloberror.ContainerNotFound:               "create the container, or correct its name",
	bloberror.BlobNotFound:                    "the blob must exist before it can be protected: upload it, an empty one is enough",
	bloberror.BlobImmutableDueToPolicy:        immutable,
	"BlobImmutableDueToLegalHold":             immutable,
	bloberror.BlobArchived:                    archived,
	bloberror.BlobBeingRehydrated:             archived,
	bloberror.LeaseIDMissing:                  leased,
}

// lasting are the other errors that a retry would not fix.
var lasting = map[bloberror.Code]bool{
	bloberror.AccountIsDisabled: true, bloberror.FeatureVersionMismatch: true,
	bloberror.InvalidBlobType: true, bloberror.InvalidHeaderValue: true, bloberror.InvalidInput: true, bloberror.InvalidMetadata: true,
	bloberror.InvalidQueryParameterValue: true, bloberror.InvalidResourceName: true, bloberror.InvalidURI: true,
	bloberror.MissingRequiredHeader: true, bloberror.MissingRequiredQueryParameter: true, bloberror.RequestBodyTooLarge: true,
	bloberror.ResourceNotFound: true, bloberror.ResourceTypeMismatch: true, bloberror.UnsupportedHeader: true,
	bloberror.UnsupportedHTTPVerb: true, bloberror.UnsupportedQueryParameter: true,
	bloberror.LeaseAlreadyPresent: true, bloberror.LeaseIsBreakingAndCannotBeAcquired: true, bloberror.LeaseIsBrokenAndCannotBeRenewed: true,
	bloberror.LeaseIDMismatchWithBlobOperation: true, bloberror.LeaseIDMismatchWithLeaseOperation: true, bloberror.LeaseLost: true,
	bloberror.LeaseNotPresentWithBlobOperation: true, bloberror.LeaseNotPresentWithLeaseOperation: true,
	bloberror.BlobAlreadyExists: true, bloberror.ConditionNotMet: true,
}

// brief is an SDK error with a shorter text. The SDK's own has ten lines.
type brief struct {
	text string
	err  error
}

func (e *brief) Error() string { return e.text }
func (e *brief) Unwrap() error { return e.err }

// describe returns the status, the code and the first line of the message.
func describe(e *azcore.ResponseError) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", e.StatusCode, e.ErrorCode))
	if e.RawResponse == nil {
		return text
	}
	var said struct{ Message string }
	body, err := runtime.Payload(e.RawResponse) // already read by the SDK
	if err != nil || xml.Unmarshal(body, &said) != nil {
		return text
	}
	if line, _, _ := strings.Cut(said.Message, "\n"); line != "" {
		text += ": " + line
	}
	return text
}

// unauthenticated reports whether the credential returned no token, so that the
// request was not sent.
func unauthenticated(err error) bool {
	var final interface {
		error
		NonRetriable()
	}
	return errors.As(err, &final)
}

// tokenMayCome reports whether the credential may get a token later: the token
// service was out of reach, or overloaded. If the identity is wrong or there is
// none, a retry would fail, too, and an error that says neither may be that of
// a callback without permission. Of several credentials, one is enough.
func tokenMayCome(err error) bool {
	return errors.As(err, new(net.Error)) || overloaded(err)
}

// overloaded reports whether the token service answered that a later request
// may succeed. Errors of azidentity keep the answer in their field RawResponse.
// It is looked up by its name, because this module does not require azidentity.
func overloaded(err error) bool {
	if answer, found := rawResponse(err); found {
		return answer != nil && (answer.StatusCode >= http.StatusInternalServerError ||
			answer.StatusCode == http.StatusRequestTimeout || answer.StatusCode == http.StatusTooManyRequests)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), overloaded)
	}
	inner := errors.Unwrap(err)
	return inner != nil && overloaded(inner)
}

// rawResponse returns the field of that name, if err itself is a struct that
// has one.
func rawResponse(err error) (answer *http.Response, found bool) {
	e := reflect.Indirect(reflect.ValueOf(err))
	if e.Kind() != reflect.Struct {
		return nil, false
	}
	field, found := e.Type().FieldByName("RawResponse")
	if !found {
		return nil, false
	}
	value, failed := e.FieldByIndexErr(field.Index) // of an embedded struct that is nil
	if failed == nil {
		answer, _ = value.Interface().(*http.Response)
	}
	return answer, true
}

// Bare returns a URL without its query, which may contain a signature.
func Bare(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

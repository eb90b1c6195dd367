package s3store

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/internal/neterror"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// conflicts are the error codes for an object that another client is writing.
// Nothing was written.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
var conflicts = map[string]bool{"ConditionalRequestConflict": true, "OperationAborted": true}

// answer is an error response of S3.
type answer struct {
	code, message string
	status        int // zero if there was no response, or if the user's client does not report it
}

func answerOf(err error) answer {
	a := answer{status: awserror.Status(err)}
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code, a.message = api.ErrorCode(), api.ErrorMessage()
	}
	return a
}

// missing is the error code for an object that does not exist. A proxy's 404
// does not have it.
const missing = "NoSuchKey"

// wrongClock is the error code for a request whose date is off by 15 minutes or
// more. The SDK learns S3's time from the response and signs the next request
// with it, so the request can be repeated immediately.
const wrongClock = "RequestTimeTooSkewed"

// classifyGet classifies the error of a read: an object that does not exist is
// [objectstore.ErrNotExist].
func (o *objects) classifyGet(err error) error {
	if answerOf(err).code == missing {
		return fmt.Errorf("%w: %w", objectstore.ErrNotExist, err)
	}
	return o.classify("s3:GetObject", err)
}

// classifyPut classifies the error of a write. The condition failed on 412, on
// 409 while another write is in progress, and on 404 if the object to replace
// no longer exists.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
func (o *objects) classifyPut(err error, version string) error {
	a := answerOf(err)
	if a.status == http.StatusPreconditionFailed || a.code == "PreconditionFailed" || conflicts[a.code] || a.code == missing && version != "" {
		return fmt.Errorf("%w: %w", objectstore.ErrChanged, err)
	}
	return o.classify("s3:PutObject", err)
}

// lasting are the error codes that a retry would not fix. A code that is in no
// list, or none, may be a proxy's or one that passes.
var lasting = map[string]bool{
	"AccessDenied": true, "AccountProblem": true, "AllAccessDisabled": true, "AuthorizationHeaderMalformed": true,
	"EntityTooLarge": true, "ExpiredToken": true, "IllegalLocationConstraintException": true, "InvalidAccessKeyId": true,
	"InvalidArgument": true, "InvalidBucketName": true, "InvalidObjectState": true, "InvalidRequest": true, "InvalidSecurity": true,
	"InvalidToken": true, "InvalidURI": true, "KeyTooLongError": true, "MethodNotAllowed": true, "MissingSecurityHeader": true,
	"NoSuchBucket": true, "NotImplemented": true, "NotSignedUp": true, "PermanentRedirect": true, "RequestExpired": true,
	"SignatureDoesNotMatch": true, "TokenRefreshRequired": true, "UnauthorizedAccess": true, "UnsupportedSignature": true,
}

// classify returns the error of an action as a [*driver.Error], which says
// whether a retry would fail, too, and whether the write may have been applied.
// It may have been if there was no response, an unknown error, or one of 500
// and above: S3 says so of InternalError, and does not rule it out for
// SlowDown.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorBestPractices.html
// https://repost.aws/knowledge-center/s3-resolve-503-slowdown-throttling
func (o *objects) classify(action string, err error) error {
	a := answerOf(err)
	e := &driver.Error{Store: o.String(), Err: err}
	_, throttled := retry.DefaultThrottleErrorCodes[a.code]
	_, passing := retry.DefaultRetryableErrorCodes[a.code]
	switch {
	case a.status == 0 && a.code == "":
		e.Hint, e.Err = neterror.Unanswered(err, "can the function reach S3? In a VPC it needs a gateway endpoint for S3 or a NAT gateway; check AWS_REGION too")
	case a.code == "" && neterror.Cut(err):
	case throttled || a.status == http.StatusTooManyRequests:
		e.Answered = true
	case passing || a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented:
	case lasting[a.code], a.code == wrongClock:
		e.Answered, e.Unapplied = true, true
		e.Lasting, e.Conflict = lasting[a.code], a.code == wrongClock
		e.Action, e.Hint = o.blame(action, a.code, a.message)
	default:
		e.Answered = true
	}
	return e
}

// blame explains an error that a retry would not fix. It returns the action
// that was denied, if any, and what to do.
func (o *objects) blame(called, code, message string) (action, hint string) {
	switch code {
	case "AccessDenied", "AllAccessDisabled":
		action = awserror.Denied(message, called)
		return action, awserror.Remedy(message, o.allow(action))
	case "NoSuchBucket":
		return "", "the bucket does not exist: create it, or correct its name"
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "", "the bucket is in another Region: make the client with that Region"
	case "InvalidObjectState":
		return "", "a lifecycle rule has moved the object to an archive class: restore it (aws s3api restore-object), copy it over itself with the class STANDARD, and exclude the prefix of the locks from the rule"
	case "NotImplemented":
		return "", "the server does not know conditional writes: use a service or version that does, or another store"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", wrongClock, "RequestExpired":
		return "", "check the function's credentials and its clock"
	}
	return "", ""
}

// allow returns advice on how to allow an action that was denied.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
func (o *objects) allow(action string) string {
	switch {
	case strings.HasPrefix(action, "kms:"):
		return "the bucket is encrypted with your own key: allow the function's role, or who else asked, that action on the key"
	case action == "s3:ListBucket":
		return "to list rows, allow it on the bucket; without it, S3 also denies to read an object that does not exist"
	}
	return "allow the function's role, or who else asked, s3:GetObject and s3:PutObject on " + o.bucket + "/" + o.prefix + "*"
}

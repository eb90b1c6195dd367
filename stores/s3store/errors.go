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

// conflicts are the answers of a bucket in which another client is writing the
// object. Nothing was written.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
var conflicts = map[string]bool{"ConditionalRequestConflict": true, "OperationAborted": true}

// answer is what S3 said instead of doing what it was asked.
type answer struct {
	code, message string
	status        int // zero if there was no answer, or if a client of the user's own does not tell
}

func answerOf(err error) answer {
	a := answer{status: awserror.Status(err)}
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code, a.message = api.ErrorCode(), api.ErrorMessage()
	}
	return a
}

// missing is the answer if there is no such object. A 404 of a proxy does not
// say that.
const missing = "NoSuchKey"

// wrongClock is the answer to a request that is dated 15 minutes or more away.
// The SDK learns S3's time from it and signs the next request with that, so it
// may be sent again at once.
const wrongClock = "RequestTimeTooSkewed"

// classifyGet recognises an object that does not exist.
func (o *objects) classifyGet(err error) error {
	if answerOf(err).code == missing {
		return fmt.Errorf("%w: %w", objectstore.ErrNotExist, err)
	}
	return o.classify("s3:GetObject", err)
}

// classifyPut recognises a condition that did not hold: 412; 409 while another
// write is under way; and 404 if the object that should have a version exists
// no longer.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
func (o *objects) classifyPut(err error, version string) error {
	a := answerOf(err)
	if a.status == http.StatusPreconditionFailed || a.code == "PreconditionFailed" || conflicts[a.code] || a.code == missing && version != "" {
		return fmt.Errorf("%w: %w", objectstore.ErrChanged, err)
	}
	return o.classify("s3:PutObject", err)
}

// classify returns the error of an action as a [*driver.Error], which says
// whether a later try may succeed and whether the write may have been applied.
// Without an answer it may have been, and after an answer of 500 or more: S3
// says so of InternalError, and says of SlowDown that writes of one object meet
// it while they are being stored, not that nothing of them is.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorBestPractices.html
// https://repost.aws/knowledge-center/s3-resolve-503-slowdown-throttling
func (o *objects) classify(action string, err error) error {
	a := answerOf(err)
	e := &driver.Error{Store: o.String(), Err: err, Temporary: true}
	_, throttled := retry.DefaultThrottleErrorCodes[a.code]
	_, passing := retry.DefaultRetryableErrorCodes[a.code]
	switch {
	case a.status == 0 && a.code == "":
		e.Hint, e.Err = neterror.Unanswered(err, "can the function reach S3? In a VPC it needs a gateway endpoint for S3 or a NAT gateway; check AWS_REGION too")
	case a.code == "" && neterror.Cut(err):
	case throttled || a.status == http.StatusTooManyRequests:
		e.Answered = true
	case passing || a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented:
	default:
		e.Answered, e.Unapplied = a.code != "", true // without a code it is a proxy's page
		e.Temporary, e.Conflict = a.code == wrongClock, a.code == wrongClock
		e.Action, e.Hint = o.blame(action, a.code, a.message)
	}
	return e
}

// blame explains an answer that a retry would not change: the action that was
// denied, if any, and what to do.
func (o *objects) blame(called, code, message string) (action, hint string) {
	switch code {
	case "AccessDenied", "AllAccessDisabled":
		action = awserror.Denied(message, called)
		return action, o.allow(action)
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

// allow says how to allow an action that was denied.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
func (o *objects) allow(action string) string {
	switch {
	case strings.HasPrefix(action, "kms:"):
		return "the bucket is encrypted with your own key: allow the function's role that action on the key"
	case action == "s3:ListBucket":
		return "to list rows, allow it on the bucket; without it, S3 also denies to read an object that does not exist"
	}
	return "allow s3:GetObject and s3:PutObject on " + o.bucket + "/" + o.prefix + "* in the function's role"
}

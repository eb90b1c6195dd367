package s3store

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// answerFlags has what each answer means: its HTTP status, and its code if it
// has one. S3 does not rule out that a throttled write was applied.
var answerFlags = []struct {
	flags   driver.Error
	answers string
}{
	{driver.Error{Answered: true}, "503 SlowDown; 503 RequestLimitExceeded; 400 ThrottlingException; 429; 429 TooManyRequests; 418 Unheard; 301; 307 TemporaryRedirect; 400; 403; 404; 501"},
	{driver.Error{}, "500 InternalError; 503 ServiceUnavailable; 400 RequestTimeout; 500; 502; 503; 504; 500 Unheard; 0"},
	{driver.Error{Answered: true, Unapplied: true, Conflict: true}, "403 RequestTimeTooSkewed"},
	{driver.Error{Answered: true, Unapplied: true, Lasting: true}, "403 AccessDenied; 403 AccountProblem; 403 AllAccessDisabled; 400 AuthorizationHeaderMalformed; " +
		"400 EntityTooLarge; 400 ExpiredToken; 400 IllegalLocationConstraintException; 403 InvalidAccessKeyId; 400 InvalidArgument; 400 InvalidBucketName; " +
		"403 InvalidObjectState; 400 InvalidRequest; 403 InvalidSecurity; 400 InvalidToken; 400 InvalidURI; 400 KeyTooLongError; 405 MethodNotAllowed; " +
		"400 MissingSecurityHeader; 404 NoSuchBucket; 501 NotImplemented; 403 NotSignedUp; 301 PermanentRedirect; 400 RequestExpired; " +
		"403 SignatureDoesNotMatch; 400 TokenRefreshRequired; 403 UnauthorizedAccess; 403 UnsupportedSignature"},
}

// refusedWrites are the answers after which a row is read again.
const refusedWrites = "412; 412 PreconditionFailed; 409 ConditionalRequestConflict; 409 OperationAborted; 404 NoSuchKey"

// answered returns the SDK's error for each answer of a list.
func answered(answers string) map[string]error {
	all := map[string]error{}
	for answer := range strings.SplitSeq(answers, "; ") {
		var status int
		var code string
		_, _ = fmt.Sscan(answer, &status, &code)
		err := error(&smithy.GenericAPIError{Code: code})
		if code == "" {
			err = errors.New("no code")
		}
		if status > 0 {
			err = &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}}
		}
		all[answer] = err
	}
	return all
}

func TestFlags(t *testing.T) { // F2, F8, F9
	t.Parallel()
	o, known := &objects{bucket: "locks"}, ""
	for _, c := range answerFlags {
		known += c.answers + ";"
		for answer, err := range answered(c.answers) {
			for called, got := range map[string]error{"read": o.classifyGet(err), "write": o.classifyPut(err, "v")} {
				var e *driver.Error
				if !errors.As(got, &e) || e.Answered != c.flags.Answered || e.Unapplied != c.flags.Unapplied || e.Lasting != c.flags.Lasting || e.Conflict != c.flags.Conflict {
					t.Errorf("%s, %s: %+v, want %+v", called, answer, e, c.flags)
				}
			}
		}
	}
	for answer, err := range answered(refusedWrites) {
		read, write, create := o.classifyGet(err), o.classifyPut(err, "v"), o.classifyPut(err, "")
		absent := strings.HasSuffix(answer, missing)
		if !errors.Is(write, objectstore.ErrChanged) || errors.Is(create, objectstore.ErrChanged) == absent || errors.Is(read, objectstore.ErrNotExist) != absent {
			t.Errorf("%s: a read %v, a write %v, a creation %v", answer, read, write, create)
		}
	}
	for code := range lasting {
		if !strings.Contains(known, " "+code+";") {
			t.Errorf("the table lacks the code %s", code)
		}
	}
}

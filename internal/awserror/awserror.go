// Package awserror reads the errors of the AWS SDK, for the stores that use it.
package awserror

import (
	"errors"
	"regexp"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Status returns the HTTP status of the answer, or zero if there was none.
func Status(err error) int {
	var re *awshttp.ResponseError
	if errors.As(err, &re) && re.Response != nil {
		return re.HTTPStatusCode()
	}
	return 0
}

// denied finds the action in IAM's answer. It need not be the action that was
// called: services use a KMS key on the caller's behalf.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
var denied = regexp.MustCompile(`not authorized to perform: ([\w-]+:\w+)`)

// Denied returns the action that the message of an access-denied error names,
// or else the one that was called.
func Denied(message, called string) string {
	if found := denied.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return called
}

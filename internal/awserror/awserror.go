// Package awserror reads the errors of the AWS SDK, for the stores that use it.
package awserror

import (
	"cmp"
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

// deny and lacking find in IAM's answer which kind of policy denies the action,
// or does not allow it. Not every answer tells.
var (
	deny    = regexp.MustCompile(`with an explicit deny(?: in (?:an? |the )?([A-Za-z][A-Za-z -]*[a-z]))?`)
	lacking = regexp.MustCompile(`because no ([A-Za-z][A-Za-z -]*[a-z]) allows`)
)

// Remedy returns what to do about an action that was denied: allow, which is
// about the caller's permission, unless the message says that another policy
// stands against it.
func Remedy(message, allow string) string {
	if found := deny.FindStringSubmatch(message); found != nil {
		return "the " + cmp.Or(found[1], "identity-based or another policy") + " denies it explicitly, whatever else allows it: change that"
	}
	if found := lacking.FindStringSubmatch(message); found != nil && found[1] != "identity-based policy" {
		return "the " + found[1] + " must allow it, too: change that"
	}
	return allow
}

// Denied returns the action that the message of an access-denied error names,
// or else the one that was called.
func Denied(message, called string) string {
	if found := denied.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return called
}

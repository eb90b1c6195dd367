package awserror

import "testing"

// TestRemedy has messages as IAM documents them.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
func TestRemedy(t *testing.T) {
	t.Parallel()
	const begin, deny, lacks = "User: arn:aws:iam::111122223333:user/x is not authorized to perform: s3:PutObject on resource: arn:aws:s3:::locks/a ", "with an explicit deny in ", "because no "
	for message, want := range map[string]string{
		"Access Denied":                 "allow it",
		begin + "with an explicit deny": "the identity-based or another policy denies it explicitly, whatever else allows it: change that",
		begin + lacks + "identity-based policy allows the s3:PutObject action":  "allow it",
		begin + lacks + "resource-based policy allows the s3:PutObject action":  "the resource-based policy must allow it, too: change that",
		begin + lacks + "VPC endpoint policy allows the s3:PutObject action":    "the VPC endpoint policy must allow it, too: change that",
		begin + lacks + "permissions boundary allows the s3:PutObject action":   "the permissions boundary must allow it, too: change that",
		begin + lacks + "service control policy allows the s3:PutObject action": "the service control policy must allow it, too: change that",
		begin + lacks + "session policy allows the s3:PutObject action":         "the session policy must allow it, too: change that",
		begin + deny + "a resource-based policy":                                "the resource-based policy denies it explicitly, whatever else allows it: change that",
		begin + deny + "an identity-based policy":                               "the identity-based policy denies it explicitly, whatever else allows it: change that",
		begin + deny + "a VPC endpoint policy":                                  "the VPC endpoint policy denies it explicitly, whatever else allows it: change that",
		begin + deny + "a permissions boundary":                                 "the permissions boundary denies it explicitly, whatever else allows it: change that",
		begin + deny + "a service control policy: arn:aws:organizations::1:x":   "the service control policy denies it explicitly, whatever else allows it: change that",
		begin + deny + "a resource control policy":                              "the resource control policy denies it explicitly, whatever else allows it: change that",
		begin + deny + "a session policy":                                       "the session policy denies it explicitly, whatever else allows it: change that",
	} {
		if got := Remedy(message, "allow it"); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

package invoke

import "testing"

// TestWhereTheLocksAre: what the demo prints has no part of a password, also
// one with characters that are not percent-encoded.
func TestWhereTheLocksAre(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]string{
		"redis://user:pass@host:6379/0":                   "redis://host:6379/0",
		"rediss://:pass@a,rediss://b,rediss://c":          "rediss://a, rediss://b, rediss://c",
		"unix://:pass@/run/redis.sock?db=1":               "unix:///run/redis.sock",
		"s3://bucket/prefix?region=eu-west-1":             "s3://bucket/prefix",
		"dynamodb://arn:aws:dynamodb:eu-west-1:1:table/t": "dynamodb://",
		"redis://:pa#ss@host":                             "redis://",
		"redis://:pa,ss@host:6379":                        "redis://",
		"redis://:pa,ss@host":                             "redis://",
		"redis://:12,ss@host:6379":                        "redis://",
		"redis://:pa,s,s@host:6379":                       "redis://",
		"redis://a,redis://:12,ss@b:6379,redis://c":       "redis://",
		"unix://:12,ss@/run/redis.sock":                   "unix://",
		":pass@host:6379":                                 "a URL without a scheme",
		"user:pass@host://6379":                           "a URL without a scheme",
		"nowhere":                                         "a URL without a scheme",
	} {
		if got := (&Demo{Store: store}).where(); got != "Lock store: "+want {
			t.Errorf("%s: %s, want %s", store, got, want)
		}
	}
}

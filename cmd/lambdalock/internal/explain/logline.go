package explain

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	// message is what a log line of package lock or middleware says.
	message = regexp.MustCompile(`\blambdalock: [a-z_]+\b`)
	// digest is what stands for the name in such a line, in JSON or in text, and in
	// one of package emf.
	digest = regexp.MustCompile(`\b(?:key|contended)(?:"\s*:\s*"|=)([0-9a-f]{12})\b`)
)

// metricsNamespace is that of package emf in CloudWatch.
const metricsNamespace = "lambdalock"

// LogLine returns the key in a log line of this library, which has one with the
// option LogKeys, or else the digest of its name. What a tool printed before
// the line does not matter. ok is false for any other text.
func LogLine(text []byte) (e *Event, keyDigest string, ok bool) {
	var line struct {
		Message string `json:"message"` // in the format of Lambda
		Msg     string `json:"msg"`
		Name    string `json:"name"`
		Event   string `json:"event"`
		AWS     struct {
			CloudWatchMetrics []struct{ Namespace string }
		} `json:"_aws"`
	}
	if i := bytes.IndexByte(text, '{'); i > 0 && json.Valid(text[i:]) {
		text = text[i:]
	}
	said, metrics := string(text), false
	if json.Unmarshal(text, &line) == nil || json.Valid(text) { // an event may have other members of these names
		all := line.AWS.CloudWatchMetrics
		metrics = len(all) > 0 && all[0].Namespace == metricsNamespace
		said = line.Message + line.Msg
		if !metrics && !strings.HasPrefix(said, "lambdalock: ") {
			return nil, "", false
		}
	}
	if !metrics && !message.MatchString(said) {
		return nil, "", false
	}
	if line.Name != "" {
		return OfKey(lock.Key{Name: line.Name, Event: line.Event}), "", true
	}
	if found := digest.FindSubmatch(text); found != nil {
		keyDigest = string(found[1])
	}
	return nil, keyDigest, true
}

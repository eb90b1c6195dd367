package explain

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	// message is what a log line of package lock or middleware says.
	message = regexp.MustCompile(`\blambdalock: [a-z_]+\b`)
	// digest is what stands for the name in such a line, in JSON or in text, and in
	// one of package emf.
	digest = regexp.MustCompile(`\b(?:key|contended)(?:"\s*:\s*"|=)([0-9a-f]{12})\b`)
	// attribute is one of those of a line in text that say what was refused.
	attribute = regexp.MustCompile(`\b(error|source|record)=("(?:[^"\\]|\\.)*"|\S+)`)
)

// noKey begins the text of a *lock.NoKeyError.
const noKey = "lambdalock: no key: "

// metricsNamespace is that of package emf in CloudWatch.
const metricsNamespace = "lambdalock"

// Line is a log line of this library. All are zero if it is about no key.
type Line struct {
	Event   *Event // the key, which lines have with the option LogKeys
	Digest  string // of the key's name, if Event is nil
	Refused string // what had no key, and why
}

// LogLine returns what a log line of this library is about. What a tool printed
// before the line does not matter. ok is false for any other text.
func LogLine(text []byte) (l Line, ok bool) {
	var line struct {
		Message string `json:"message"` // in the format of Lambda
		Msg     string `json:"msg"`
		Name    string `json:"name"`
		Event   string `json:"event"`
		Error   string `json:"error"`
		Source  string `json:"source"`
		Record  string `json:"record"`
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
			return Line{}, false
		}
	} else {
		said := attributes(text)
		line.Error, line.Source, line.Record = said["error"], said["source"], said["record"]
	}
	if !metrics && !message.MatchString(said) {
		return Line{}, false
	}
	if reason, ok := strings.CutPrefix(line.Error, noKey); ok {
		return Line{Refused: refusal(line.Source, line.Record, reason)}, true
	}
	if line.Name != "" {
		return Line{Event: OfKey(lock.Key{Name: line.Name, Event: line.Event})}, true
	}
	if found := digest.FindSubmatch(text); found != nil {
		l.Digest = string(found[1])
	}
	return l, true
}

// attributes returns what a line in text says of what was refused.
func attributes(text []byte) map[string]string {
	all := map[string]string{}
	for _, found := range attribute.FindAllSubmatch(text, -1) {
		value := string(found[2])
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		all[string(found[1])] = value
	}
	return all
}

// refusal says which record of which source was refused and why, and where to
// read what ends that. What has no id is named by the reason, which begins with
// its place.
func refusal(source, record, reason string) string {
	what := "an event"
	if record != "" {
		what = "record " + record
	}
	if source != "" {
		what += " of " + source
	}
	return what + " was refused, and its handler did not run: " + reason + ". Its lock was not asked, so complete and exec do not end it: see docs/OPERATIONS.md#it-is-refused"
}

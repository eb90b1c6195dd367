package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	// message is what a log line of package lock or middleware says.
	message = regexp.MustCompile(`\blambdalock: [a-z_]+\b`)
	// digest is the attribute of such a line that stands for the name, in JSON or
	// in text.
	digest = regexp.MustCompile(`\bkey(?:"\s*:\s*"|=)([0-9a-f]{12})\b`)
)

// LogLine returns the key in a log line of this library, which has one with the
// option LogKeys. If the line has only a digest, the error says so. Both are
// nil for any other text.
func LogLine(text []byte) (*Event, error) {
	var line struct {
		Message string `json:"message"` // in the format of Lambda
		Msg     string `json:"msg"`
		Name    string `json:"name"`
		Event   string `json:"event"`
	}
	said := string(text)
	if json.Unmarshal(text, &line) == nil || json.Valid(text) { // an event may have other members of these names
		said = line.Message + line.Msg
		if !strings.HasPrefix(said, "lambdalock: ") {
			return nil, nil
		}
	}
	found := digest.FindSubmatch(text)
	switch {
	case !message.MatchString(said):
		return nil, nil
	case line.Name != "":
		return OfKey(lock.Key{Name: line.Name, Event: line.Event}), nil
	case found != nil:
		return nil, fmt.Errorf("this is a log line of lambdalock, and no event: for the row that it speaks of, lambdalock show --digest %s", found[1])
	}
	return nil, errors.New("this is a log line of lambdalock, and no event")
}

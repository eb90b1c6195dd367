package middleware

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

var errCookie = errors.New("lambdalock: the response sets a cookie, and the request came without credentials or its key compares none, so it is not stored for Replay: anybody with the key would get the cookie; name the caller in keyfuncs.HeaderKey, or beside what is compared with keyfuncs.Caller, or else set the cookie outside of the wrapper")

// withheld returns why a response must not be replayed to the sender of the
// request, or nil. A client without credentials, or whose credentials the key
// does not compare, may be anybody who has the key, and a cookie would log it
// in. One whose credentials could not be read may get none of the responses to
// others.
func (r *request) withheld(doc []byte) error {
	switch {
	case r.unread && r.gateway != eventkind.NoGateway:
		return errUnread
	case r.nobody && setsCookie(doc):
		return errCookie
	}
	return nil
}

// setsCookie reports whether a response sets a cookie, in any of the fields in
// which one of the gateways takes them. JSON without a status is the body of a
// response.
func setsCookie(doc []byte) bool {
	var r struct {
		StatusCode                 json.RawMessage
		Headers, MultiValueHeaders map[string]json.RawMessage
		Cookies                    []json.RawMessage
	}
	_ = json.Unmarshal(doc, &r) // goes on after a field of another type
	for _, headers := range []map[string]json.RawMessage{r.Headers, r.MultiValueHeaders} {
		for name := range headers {
			if strings.EqualFold(name, "Set-Cookie") {
				return r.StatusCode != nil
			}
		}
	}
	return len(r.Cookies) > 0 && r.StatusCode != nil
}

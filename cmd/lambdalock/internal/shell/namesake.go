package shell

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// longestLook bounds the time that a command waits for a warning.
const longestLook = time.Second

// warnOfNamesake says that the key is the stored name of another lock, as list
// prints it: namespace, slash, name. The other commands find that lock by it.
// This one cannot, because the same text is a good name, which runs that are
// scheduled lock. A look that fails does not matter.
func (r *guardedRun) warnOfNamesake(ctx context.Context, store driver.Store, refusal error) {
	reader, ok := store.(driver.Inspector)
	if !ok || refusal != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	if flags := inspect.Namesake(ctx, reader, r.Key, "--key"); flags != "" {
		r.say("warning: %q is another lock than the one that list prints by this name: for that one, give %s", r.Key, flags)
	}
}

// syntaxHint is what to add about a command that is not there.
func syntaxHint(command string) string {
	if strings.ContainsFunc(command, unicode.IsSpace) {
		return "; for shell syntax: sh -c"
	}
	return ""
}

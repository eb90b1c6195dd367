package lock_test

import (
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/stored"
)

func TestStoredName(t *testing.T) {
	t.Parallel()
	prefix := stored.Prefix("a/b")
	longest := strings.Repeat("x", 2048-len(prefix))
	for name, c := range map[string]struct{ name, want string }{
		"unchanged":     {"s3/pictures/cat.png", "a%2Fb/s3/pictures/cat.png"},
		"longest":       {longest, "a%2Fb/" + longest},
		"too long":      {longest + "x", "a%2Fb/sha256:Ze5l8LpGqQErUi6Mwi6UP_MUTSHlu5CGOOeP0x6aOj0"},
		"invalid UTF-8": {"\xff", "a%2Fb/sha256:qBAK5qoZQNC2Y7sxzUZhQuu9vVGHExuS2TgYmHgy64k"},
		"like a hash":   {"sha256:x", "a%2Fb/sha256:_o65q5g2vPljwES2-E63HAids5mHb0XnKmwhtIjaJsQ"},
		"like a slot":   {"slot:2:x", "a%2Fb/sha256:yctGJ0ucfa5x40_DHB9GqyTm79BXoxxVR2_gLXe_yio"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stored.Name(prefix, c.name); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestStoredEvent shows that an event that a row cannot hold unchanged is
// hashed, and that nobody can choose an event that is the hash of another.
func TestStoredEvent(t *testing.T) { // F27, F46
	t.Parallel()
	longest := strings.Repeat("x", 50)
	hash := stored.Event(longest + "x")
	for name, c := range map[string]struct {
		event  string
		hashed bool
	}{
		"unchanged":     {"e1", false},
		"longest":       {longest, false},
		"too long":      {longest + "x", true},
		"invalid UTF-8": {"\xff", true},
		"a hash":        {hash, true},
		"like a slot":   {"slot:2:x", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := stored.Event(c.event)
			if hashed := got != c.event; hashed != c.hashed || len(got) > 50 {
				t.Errorf("got %q, hashed %v", got, hashed)
			}
		})
	}
}

// TestStoredPayload shows that only a digest of a payload is kept, and that
// none stays none.
func TestStoredPayload(t *testing.T) { // F29, F37
	t.Parallel()
	if got := stored.Payload(""); got != "" {
		t.Errorf("no payload became %q", got)
	}
	one, other := stored.Payload("1 EUR"), stored.Payload("2 EUR")
	if one == other || len(one) != 22 || len(other) != 22 {
		t.Errorf("got %q and %q, want different digests of 22 bytes", one, other)
	}
}

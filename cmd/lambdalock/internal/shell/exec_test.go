package shell

import (
	"errors"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/lock"
)

// TestExecHolder: what others write cannot break the line.
func TestExecHolder(t *testing.T) {
	for name, c := range map[string]struct {
		held lock.HeldError
		want string
	}{
		"unknown": {lock.HeldError{Key: lock.Key{Name: "k"}}, `lambdalock: "k" is held by somebody`},
		"cooling": {lock.HeldError{Key: lock.Key{Name: "k"}, Cooldown: true}, `lambdalock: "k" stays held, because of the --hold-at-least of the last command`},
		"control": {lock.HeldError{Key: lock.Key{Name: "k\n"}, Holder: "x\n\x1b[31m"}, `lambdalock: "k\n" is held by x ?[31m`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := "lambdalock: " + console.Printable(describeHeld(&c.held)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestExecRefused: every mistake has the status of a mistake.
func TestExecRefused(t *testing.T) {
	event := "e1"
	r := &guardedRun{Exec: &Exec{Key: "k", Event: &event, ConflictExitCode: 1}}
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"held":      {&lock.HeldError{}, 1},
		"completed": {&lock.CompletedError{}, 0},
		"config":    {&lock.ConfigError{}, 64},
		"key":       {&lock.NoKeyError{}, 64},
		"store":     {&lock.StoreError{}, 69},

		"interrupted": {&lock.InterruptedError{}, 76},
		"lost":        {&lock.LostError{}, 69},
		"unknown":     {errors.New("unknown"), 69},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.refused(c.err); got != console.ExitStatus(c.status) {
				t.Errorf("%v, want %d", got, c.status)
			}
		})
	}
}

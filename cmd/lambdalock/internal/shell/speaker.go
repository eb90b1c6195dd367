package shell

import (
	"fmt"
	"os"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
)

// unread is how many lines wait for their reader. More are dropped.
const unread = 64

// speaker prints lines in the order in which they are said. Saying one does not
// wait for its reader: a full pipe, or a terminal that Ctrl-S stopped, must not
// keep a command from being ended.
type speaker struct {
	lines chan line
	quiet bool
}

// line is one to print, or asks to be told when those before it were printed.
type line struct {
	text    string
	printed chan struct{}
}

func newSpeaker(quiet bool) speaker {
	s := speaker{make(chan line, unread), quiet}
	go func() {
		for l := range s.lines {
			if l.printed != nil {
				close(l.printed)
				continue
			}
			console.Say("%s", l.text)
		}
	}()
	return s
}

// tell says what is neither an error nor a warning, unless --quiet is given.
func (s speaker) tell(format string, args ...any) {
	if !s.quiet {
		s.say(format, args...)
	}
}

func (s speaker) say(format string, args ...any) {
	select {
	case s.lines <- line{text: fmt.Sprintf(format, args...)}:
	default:
	}
}

// fail says why there is no command, or none any more, and returns the status.
func (s speaker) fail(status int, format string, args ...any) error {
	s.say(format, args...)
	return console.ExitStatus(status)
}

// finish waits until everything was printed, or a signal comes that ends this
// process.
func (s speaker) finish(signals <-chan os.Signal) {
	printed := make(chan struct{})
	for lines := s.lines; ; {
		select {
		case lines <- line{printed: printed}:
			lines = nil
		case <-printed:
			return
		case s := <-signals:
			switch handlingOf(s) {
			case stops:
				stopSelf()
			case ends, passes:
				return
			case leaves, informs, continues, ignores:
			}
		}
	}
}

package console

import (
	"fmt"
	"os"
	"strings"
	"unicode"
)

// The exit statuses of wrong arguments, and of a store that cannot be used, as
// in sysexits(3).
const (
	StatusUsage       = 64 // EX_USAGE
	StatusUnavailable = 69 // EX_UNAVAILABLE
)

// Say prints one line.
func Say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "lambdalock:", Printable(fmt.Sprintf(format, args...)))
}

// Plain is an error's text for a line that begins with our name already. The
// errors that it wraps begin with the name too.
func Plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), ": lambdalock: ", ": "), "lambdalock: ")
}

// Printable keeps what others wrote from breaking the line or the terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

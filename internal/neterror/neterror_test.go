package neterror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/lambdalock/lambdalock/internal/neterror"
)

func TestUnanswered(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return fmt.Errorf("PUT https://host/?sig=secret, StatusCode: 0: %w", err) }
	for name, c := range map[string]struct {
		err        error
		text, hint string
	}{
		"deadline":   {context.DeadlineExceeded, "no answer in time", "hint"},
		"caller":     {context.Canceled, "the caller's context ended before there was an answer", ""},
		"name":       {&net.DNSError{Err: "no such host", Name: "host"}, "lookup host: no such host", "hint"},
		"connection": {&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}, "dial tcp: refused", "hint"},
		"in half":    {io.ErrUnexpectedEOF, "no answer: unexpected EOF", ""},
	} {
		hint, err := neterror.Unanswered(wrapped(c.err), "hint")
		if err.Error() != c.text || hint != c.hint || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, hint %q, want %q, %q", name, err, hint, c.text, c.hint)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for want, errs := range map[bool][]error{
		true:  {io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: net.ErrClosed}, context.DeadlineExceeded, context.Canceled},
		false: {io.EOF, errors.New("invalid character '<'"), nil},
	} {
		for _, err := range errs {
			if got := neterror.Cut(fmt.Errorf("StatusCode: 400: %w", err)); got != want {
				t.Errorf("%v: cut %v", err, got)
			}
		}
	}
}

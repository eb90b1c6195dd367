// Package neterror explains the errors of requests that got no answer, or not
// all of it.
package neterror

import (
	"context"
	"errors"
	"io"
	"net"
)

// silence is the error of a request without an answer, in fewer words than an
// SDK's. An SDK's text may also show a URL with its signature.
type silence struct {
	text string
	err  error
}

func (e *silence) Error() string { return e.text }
func (e *silence) Unwrap() error { return e.err }

// Unanswered returns why there was no answer. If the network may be the cause,
// it returns hint too.
func Unanswered(err error, hint string) (string, error) {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return hint, &silence{"no answer in time", err}
	case errors.Is(err, context.Canceled):
		return "", &silence{"the caller's context ended before there was an answer", err}
	case errors.As(err, &dns):
		return hint, &silence{dns.Error(), err}
	case errors.As(err, &op):
		return hint, &silence{op.Error(), err}
	}
	return "", &silence{"no answer: " + root(err).Error(), err}
}

// Cut reports whether the connection ended in the middle of an answer, whose
// status was known by then. The client may have closed it: the AWS SDK closes a
// request's body as soon as it has the status. If the transport looks for the
// end of that body only then, it gets an error from it, and gives up the
// connection (https://github.com/aws/smithy-go/pull/218).
func Cut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError)) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// root returns the innermost error. SDKs wrap it in details of an answer that
// never came (StatusCode: 0).
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// statusNo says that there is no such row, event or holder, or that it is in
// the way. The other statuses of the commands for rows are those of exec.
const statusNo = 1

// statusError is an error with the status with which kong ends the program.
type statusError struct {
	status int
	err    error
}

// Error implements error.
func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// ExitCode returns the exit status.
func (e *statusError) ExitCode() int { return e.status }

// no returns the error of a question whose answer is no.
func no(format string, args ...any) error { return &statusError{statusNo, fmt.Errorf(format, args...)} }

// wrongUse returns the error of arguments or input that make no sense.
func wrongUse(format string, args ...any) error {
	return &statusError{console.StatusUsage, fmt.Errorf(format, args...)}
}

// trouble returns err with its exit status, unless it has one.
func trouble(err error) error {
	status := console.StatusUnavailable
	switch {
	case err == nil, errors.As(err, new(*statusError)):
		return err
	case errors.As(err, new(*inspect.NotFoundError)):
		status = statusNo
	case errors.As(err, new(*driver.ConfigError)):
		status = console.StatusUsage
	}
	return &statusError{status, err}
}

// inspector opens the store for a command that looks at its rows, and leaves
// out those that cannot be read.
func inspector(ctx context.Context, f *console.StoreFlags) (driver.Inspector, error) {
	store, err := openInspector(ctx, f)
	if err != nil {
		return nil, err
	}
	return inspect.Readable(store, sayUnreadable), nil
}

func openInspector(ctx context.Context, f *console.StoreFlags) (driver.Inspector, error) {
	store, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	return inspect.Inspector(store)
}

func sayUnreadable(name string, err error) {
	console.Say("skipped %s, which cannot be read: %s", inspect.Safe(name), console.Plain(err))
}

package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
)

// ExitStatus ends the program. What there is to say has been said.
type ExitStatus int

func (s ExitStatus) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// Rest is what follows the first arguments of exec, all of it for the command
// that it runs. Kong's time grows with the square of their number.
type Rest []string

// mostFlags is how many arguments of exec are before Rest, and more than all of
// its flags.
const mostFlags = 100

// Run runs the command that the arguments of the process name, and reports its
// error. It ends the process unless the command succeeds.
func Run(commands any, options ...kong.Option) {
	var ctx context.Context // of a command that asks for one; exec passes signals on
	args, rest := os.Args[1:], Rest(nil)
	if len(args) > mostFlags && args[0] == "exec" {
		args, rest = args[:mostFlags], args[mostFlags:]
	}
	parser := kong.Must(commands, append([]kong.Option{
		kong.Name("lambdalock"),
		kong.Description("Distributed locks and idempotency for Go Lambda handlers."),
		kong.ShortUsageOnError(),
		kong.Exit(exit),
		kong.KindMapper(reflect.String, kong.MapperFunc(asTyped)),
		kong.Bind(rest),
		kong.Vars{"storeForms": storeurl.Forms},
		kong.BindSingletonProvider(func() context.Context {
			ctx = untilInterrupted()
			return ctx
		}),
	}, options...)...)
	app, err := parser.Parse(args)
	if err != nil {
		parser.Stdout = os.Stderr // the usage, which was not asked for
		parser.FatalIfErrorf(err)
	}
	err = app.Run()
	if status := ExitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil && ctx != nil && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled)) {
		err = context.Cause(ctx)
	}
	if err != nil {
		app.FatalIfErrorf(spoken{err})
	}
}

// spoken is an error that is printed after the program's name.
type spoken struct{ error }

func (e spoken) Error() string { return Plain(e.error) }
func (e spoken) Unwrap() error { return e.error }

// asTyped keeps all bytes of a text. Kong's own mapper goes through JSON, which
// cannot hold bytes that are not UTF-8: two file names became one.
func asTyped(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(fmt.Sprint(t.Value))
	}
	return err
}

// untilInterrupted returns a context that ends with the first signal that asks
// this process to end; its cause is an interruption. The second one ends the
// process. SIGHUP, of a terminal that is closed, stays ignored under nohup.
func untilInterrupted() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ends...)
	go func() {
		s := <-signals
		signal.Stop(signals)
		end(interruption{s})
	}()
	return ctx
}

// exit ends the program. A wrong flag has the status of sysexits(3), instead of
// kong's.
func exit(status int) {
	if status == 80 {
		status = StatusUsage
	}
	os.Exit(status)
}

// interruption is the error of a run that a signal ended. Shells expect 128
// plus the number of the signal as the status, which for Ctrl-C is 130.
type interruption struct{ signal os.Signal }

func (interruption) Error() string { return "interrupted" }

// ExitCode returns the status with which kong ends the program.
func (i interruption) ExitCode() int { return 128 + int(i.signal.(syscall.Signal)) }

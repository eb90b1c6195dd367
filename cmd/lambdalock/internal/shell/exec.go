// Package shell runs a command under a lock, and ends it with everything that
// it started before the lock ends.
package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// Exec runs a command under a lock. It never runs one without it.
type Exec struct {
	console.StoreFlags
	Key              string        `required:"" short:"k" placeholder:"NAME" help:"What to lock: at most one command runs for a name. A slash is a part of the name: a namespace is given with --namespace only."`
	Wait             time.Duration `type:"wait" short:"w" default:"0s" placeholder:"DURATION" help:"How long to wait if somebody else holds the name, or the store does not answer: a duration, seconds, or forever (not at all)."`
	Nonblock         bool          `short:"n" help:"Do not wait: the default, as flock spells it."`
	Quiet            bool          `short:"q" help:"Print errors and warnings only, and nothing if the name is held or the event has succeeded before: the status says so."`
	Limit            int           `default:"1" placeholder:"N" help:"How many commands may run for a name at the same time (${default}). Give the same in all of them; not with --event."`
	Lease            time.Duration `default:"30s" help:"How long the name stays held if this process dies, 4s to 24h; renewed at a third of it (${default})."`
	HoldAtLeast      time.Duration `default:"0" help:"How long the name stays held at least, whatever becomes of the command, so that hosts whose clocks differ run a job once; less than the time between two runs (${default}). If this process dies, it is as long as --lease."`
	Event            *string       `placeholder:"ID" help:"Run the command once for this event: once it has succeeded, later runs for the same key and event do nothing."`
	Remember         time.Duration `default:"24h" help:"How long an event that succeeded is not run again (${default})."`
	OnInterrupted    string        `enum:"run,skip,fail" default:"run" help:"What to do if an earlier run for this event was interrupted, so that nobody knows whether it was done: run, skip (it counts as done) or fail (status 76) (${default})."`
	Holder           string        `placeholder:"TEXT" env:"LAMBDALOCK_HOLDER" help:"What others are told of who holds the name (the command, the host and the process id)."`
	ConflictExitCode int           `short:"E" default:"1" help:"The status if somebody else holds the name (${default})."`
	UnsureExitCode   int           `default:"0" help:"The status if the command succeeded and the store did not confirm the record of its event, so that the event may run again (${default})."`
	Command          []string      `arg:"" passthrough:"partial" help:"The command with its arguments."`

	// Base is the context of a run, for tests that are patient with the store.
	// Nil: the background.
	Base context.Context `kong:"-"`
}

// The statuses of exec itself; sysexits(3) has the first one.
const (
	statusLost        = 75 // EX_TEMPFAIL
	statusUnknown     = 76
	statusCannotRun   = 126
	statusNotFound    = 127
	statusSignal      = 128 // plus the signal's number
	statusInterrupted = statusSignal + int(syscall.SIGINT)
)

const (
	longestLease  = 24 * time.Hour
	longestHolder = 256 // bytes, of a row of 1 KB
	// forever is how long --wait forever waits: a time that a clock can reach.
	forever = 100 * 366 * 24 * time.Hour
)

// DecodeWait takes a duration, a number of seconds as sleep, timeout and flock
// do, or the word forever.
func DecodeWait(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	wait, err := time.ParseDuration(text)
	if err != nil {
		wait, err = time.ParseDuration(text + "s")
	}
	if text == "forever" {
		wait, err = forever, nil
	}
	if err != nil {
		return fmt.Errorf("%q is neither a duration, such as 90s or 5m, nor a number of seconds, nor forever", text)
	}
	target.SetInt(int64(wait))
	return nil
}

// Help returns what --help adds.
func (c *Exec) Help() string {
	return `While the command runs, the lease is renewed. The lock is released when the command ends, whatever it leaves in the background. The command gets LAMBDALOCK_KEY, LAMBDALOCK_EVENT, LAMBDALOCK_NAMESPACE, LAMBDALOCK_FENCE and LAMBDALOCK_RUN (different in each run). The fence rises with every acquisition of the name: a database that refuses a write with a smaller one than it has is safe even from a command that went on too long. With --limit, each of the places has fences of its own.

If the lease is lost (the store did not answer in time, or somebody used lambdalock release), the command and everything that it started get SIGTERM, and SIGKILL a tenth of the lease later, 2 s before the lease ends. On Linux that is everything, whatever group, session or parent it has; on other Unix systems it is the command's process group, and those whose parents still run. Signals are passed on: INT, TERM, HUP, QUIT, ABRT, ALRM and XCPU to everything that the command started, and if one of them ends the command, that is ended too before the lock is released; USR1, USR2, WINCH, real-time and other signals to the command and its process group. TSTP, TTIN and TTOU stop all of that, and CONT continues it. As process 1 of a container it removes processes that have ended.

Where there is a terminal the command stays in the process group of lambdalock, so that Ctrl-C, Ctrl-Z, bg, fg and pipelines work as without it; elsewhere it has a group of its own. In the foreground the terminal sends INT, QUIT and WINCH to the command itself, so lambdalock does not pass them on: to end the command from elsewhere, send TERM to lambdalock. A command that is stopped for longer than the lease is ended when it goes on, within some milliseconds: check the fence where that matters.

If lambdalock is killed with -9, the command is killed with its process group, if that is its own, and on Linux with everything that has LAMBDALOCK_RUN in its environment. That does not reach what left the group with an empty environment. If lambdalock alone is stopped (kill -STOP), it cannot stop the command in time. A command that runs as another user cannot be signalled: write sudo lambdalock exec …, not lambdalock exec … sudo. What other programs start on behalf of the command (at, systemd-run, docker run) is not ended.

On Windows, no signal is passed on. If the lease is lost, the command alone is ended, at once, and what it started goes on beside the next holder. If lambdalock is killed, the command goes on, too.

The status is that of the command. If a signal ends the command, or the wait, lambdalock ends by the same signal: to a shell, the status is 128 plus its number. Otherwise it is
  1    somebody else holds the name (--conflict-exit-code)
  64   a flag, the store's URL or the environment is wrong
  69   the store does not answer or refuses the request
  75   the lease was lost, and the command was ended
  76   an earlier run for the event was interrupted (--on-interrupted fail)
  126  the command cannot be executed
  127  there is no such command
Credentials are searched for once, whatever --wait is. If there are none yet, as on a machine that is starting, or STS throttles, the status is 64, too.
The command may end with any of these itself: let --conflict-exit-code be a status that it does not use. With 64, 69, 76, 126 or 127 a line says why the command did not run, but other lines begin with "lambdalock: ", too. With --quiet no line says that the name is held. An event that succeeded before is a success: one line on stderr, and status 0. A command that fails is run again for the same event. So may one that succeeds if the store does not confirm the record of its event: then a line says so, and the status is that of --unsure-exit-code.

With --on-interrupted skip or fail, a command runs at most once for an event unless it ends with a status of its own: if lambdalock or the machine dies, the lease is lost, or a signal ends the command, nobody knows whether the work was done. A status above 128 after INT, TERM or another signal that ends counts as that signal. lambdalock complete and forget decide. Give it to every run for the event.

Examples:
  lambdalock exec --key nightly -- ./report.sh                        # one at a time; held: one line, status 1
  lambdalock exec --key deploy --wait forever -- ./deploy.sh          # waits for its turn
  lambdalock exec --key import --event 2026-11-22 -- ./import.sh      # once for this event
  lambdalock exec --key deploy --holder "$CI_JOB_URL" -- ./deploy.sh  # says who holds it`
}

// Run runs the command, and returns its status as a [console.ExitStatus].
func (c *Exec) Run(rest console.Rest) error {
	c.Command = append(c.Command, rest...)
	r := &guardedRun{Exec: c, wall: wallClock, speaker: newSpeaker(c.Quiet)}
	err := r.run()
	r.finish(r.signals)
	var status console.ExitStatus
	_ = errors.As(err, &status) // it always is one
	if r.signaled || int(status) == statusInterrupted && inForeground() {
		dieOf(int(status) - statusSignal)
	}
	return err
}

func (r *guardedRun) run() error {
	if err := r.check(); err != nil {
		return r.fail(console.StatusUsage, "%v", err)
	}
	path, err := exec.LookPath(r.Command[0])
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // as in a shell, PATH may name the current folder
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return r.fail(statusNotFound, "%s: there is no such command%s", r.Command[0], syntaxHint(r.Command[0]))
	default:
		return r.fail(statusCannotRun, "%v", err)
	}
	if r.Base == nil {
		r.Base = context.Background()
	}
	ctx, cancel := context.WithCancel(r.Base)
	defer cancel()
	r.path, r.signals = path, catchSignals()
	lk, err := r.acquire(ctx, cancel)
	if err != nil {
		return err
	}
	return r.under(lk)
}

func (c *Exec) check() error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	switch shortest := lock.DefaultGrace + 2*time.Second; {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("name the command: lambdalock exec --key NAME -- COMMAND [ARGUMENT…]")
	case c.Key == "":
		return errors.New("--key is empty: name what to lock; if it came from a variable, that is not set")
	case c.Event != nil && *c.Event == "":
		return errors.New("--event is empty: give the event's identity, or leave it out; if it came from a variable, that is not set")
	case c.Event == nil && c.OnInterrupted != onInterruptedRun:
		return fmt.Errorf("--on-interrupted %s needs --event: without one there are no runs for the same event", c.OnInterrupted)
	case c.Limit < 1 || c.Limit > lock.MaxLimit:
		return fmt.Errorf("--limit %d: 1 to %d", c.Limit, lock.MaxLimit)
	case c.Limit > 1 && c.Event != nil:
		return errors.New("--limit and --event exclude each other: another run for the same event would only take another of the places")
	case c.Lease < shortest:
		return fmt.Errorf("--lease %v: at least %v, because the command must end 2s before the lease does", c.Lease, shortest)
	case c.Lease > longestLease:
		return fmt.Errorf("--lease %v: at most %v, because nobody gets the name for so long if this machine dies; a lease is renewed while the command runs", c.Lease, longestLease)
	case c.Wait < 0:
		return fmt.Errorf("--wait %v: zero or more", c.Wait)
	case c.Nonblock && c.Wait > 0:
		return errors.New("--nonblock and --wait exclude each other")
	case c.HoldAtLeast < 0:
		return fmt.Errorf("--hold-at-least %v: zero or more", c.HoldAtLeast)
	case c.Remember < time.Second:
		return fmt.Errorf("--remember %v: at least 1s", c.Remember)
	case c.ConflictExitCode < 0 || c.ConflictExitCode > 255:
		return fmt.Errorf("--conflict-exit-code %d: 0 to 255", c.ConflictExitCode)
	case c.UnsureExitCode < 0 || c.UnsureExitCode > 255:
		return fmt.Errorf("--unsure-exit-code %d: 0 to 255", c.UnsureExitCode)
	case len(c.Holder) > longestHolder:
		return fmt.Errorf("--holder: %d bytes, at most %d", len(c.Holder), longestHolder)
	}
	return nil
}

// stopTime is how long the command may take to end after SIGTERM if the lease
// is lost.
func (c *Exec) stopTime() time.Duration { return c.Lease / 10 }

func (c *Exec) key() lock.Key {
	key := lock.Key{Name: c.Key}
	if c.Event != nil {
		key.Event = *c.Event
	}
	return key
}

// guardedRun is one run of a command under a lock.
type guardedRun struct {
	*Exec
	speaker
	path    string // of the command
	signals <-chan os.Signal
	wall    func() time.Time // the wall clock, without the monotonic one

	skipped  bool // an earlier run counts as done, and that was said
	signaled bool // a signal ended the command, or the wait for the lock

	mu       sync.Mutex
	storeErr error // of the last renewal, if it failed
}

func wallClock() time.Time { return time.Now().Round(0) }

// options returns those of an acquisition that may wait so long.
func (r *guardedRun) options(wait time.Duration) *lock.Options {
	host, _ := os.Hostname() // the command's name still describes a host without one
	holder := cmp.Or(r.Holder, fmt.Sprintf("%s on %s pid %d", filepath.Base(r.Command[0]), host, os.Getpid()))
	return &lock.Options{
		OnInterrupted: r.decideInterrupted(),
		Namespace:     r.Namespace, MaxWait: wait, Remember: r.Remember, HoldAtLeast: r.HoldAtLeast,
		// The lease counts as lost early enough for the command to end 2 s before it.
		Lease: lock.Heartbeat(r.Lease), Grace: lock.DefaultGrace + r.stopTime(),
		Holder:  func(context.Context) string { return holder },
		Logger:  slog.New(slog.DiscardHandler),
		Observe: r.observe,
	}
}

// onInterruptedRun is the default of --on-interrupted.
const onInterruptedRun = "run"

// decideInterrupted returns what --on-interrupted asks for.
func (r *guardedRun) decideInterrupted() func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
	switch r.OnInterrupted {
	case "skip":
		return func(ctx context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
			r.skipped = true
			r.tell("%q: the run for the event %q that began at %s by %s was interrupted, and counts as done", r.Key, *r.Event, inspect.Stamp(i.Since), i.Holder)
			return lock.SkipInterrupted(ctx, i)
		}
	case "fail":
		return lock.FailInterrupted
	}
	return nil
}

// observe keeps what the line on a lost lease needs, and reports the loss of
// another run.
func (r *guardedRun) observe(_ context.Context, o lock.Observation) {
	switch o.Outcome {
	case lock.OutcomeTakenOver:
		r.tell("%q was not released by %s, whose lease has ended", r.Key, o.Holder)
	case lock.OutcomeStoreFailed, lock.OutcomeRenewed:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.storeErr = o.Err
	}
}

// under runs the command under the lock and ends the lock.
func (r *guardedRun) under(lk *lock.Lock) error {
	w := &watch{guardedRun: r, lock: lk}
	if w.untilStop() <= r.stopTime() {
		_ = lk.Fail(invocation.ErrUnbegun)
		return r.fail(console.StatusUnavailable, "%q: the lease ended before the command was started, because lambdalock could not run", r.Key)
	}
	orphans := adopt()
	child, err := r.start(r.process(lk.Lease()))
	if err != nil {
		_ = lk.Fail(invocation.ErrUnbegun) // otherwise it ends with its lease
		return r.fail(statusCannotRun, "%v", console.ExplainStart(r.path, err))
	}
	child.orphans, w.child = orphans, child
	w.untilEnd()
	child.guard.stop()
	if w.lost {
		_ = lk.Fail(lock.ErrUnknown) // the command was ended; without an answer the lease ends by itself
		return console.ExitStatus(statusLost)
	}
	r.signaled = child.signaled()
	return r.end(lk, console.ExitStatus(child.status()), w.failure())
}

// process describes the process of the command.
func (r *guardedRun) process(lease lock.Lease) *exec.Cmd {
	return &exec.Cmd{
		Path: r.path, Args: r.Command, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: append(os.Environ(),
			"LAMBDALOCK_KEY="+r.Key,
			"LAMBDALOCK_EVENT="+lease.Key.Event,
			"LAMBDALOCK_NAMESPACE="+r.Namespace,
			"LAMBDALOCK_FENCE="+strconv.FormatInt(lease.Fence, 10),
			runVariable+"="+rand.Text()),
	}
}

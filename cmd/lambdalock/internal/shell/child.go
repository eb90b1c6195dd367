package shell

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/lock"
)

const (
	// clockCheck is how often the wall clock is looked at. Timers stand still while
	// the machine sleeps, and the lease does not.
	clockCheck = 500 * time.Millisecond
	// groupCheck is how often to look whether a process group has ended, which
	// nothing reports.
	groupCheck = 20 * time.Millisecond
)

// child is the command's process.
type child struct {
	cmd      *exec.Cmd
	ownGroup bool          // signals go to all processes that it started
	ended    chan struct{} // closed when it has
	guard    *guard        // nil: none
	orphans  *orphans      // nil: this process is not their parent
}

// start starts the command, and says so if nothing guards it.
func (r *guardedRun) start(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, ended: make(chan struct{})}
	c.ownGroup = prepareProcess(cmd)
	guard, unguarded := startGuard()
	c.guard = guard
	started := make(chan error)
	go func() {
		// The system kills the command when the thread ends that started it.
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil && c.guard != nil {
			unguarded = c.guard.protect(cmd)
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // cmd.ProcessState has the status
			close(c.ended)
		}
	}()
	err := <-started
	switch {
	case err != nil:
		c.guard.stop()
	case unguarded != nil && !errors.Is(unguarded, errors.ErrUnsupported):
		r.say(outlives, unguarded)
	}
	return c, err
}

// outlives says what a command without a guard may do.
const outlives = "what the command starts may outlive lambdalock if that is killed: %v"

// watch waits for the end of a command that runs under a lock.
type watch struct {
	*guardedRun
	lock  *lock.Lock
	child *child

	lost      bool // the lease, before the command ended
	ending    bool // the command was told to end by a signal
	replaced  bool // a guard was
	unguarded bool // for a while, which was said
	kill      <-chan time.Time
}

// untilEnd passes signals on and ends the command if the lease is lost. If a
// signal ended the command, what it started may take some time to end too.
func (w *watch) untilEnd() {
	clock, group := time.NewTicker(clockCheck), time.NewTicker(groupCheck)
	defer clock.Stop()
	defer group.Stop()
	ended, lost, empty := w.child.ended, w.lock.Context().Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-ended:
			if !w.lost && !w.endedBySignal() {
				return
			}
			if w.kill == nil {
				w.kill = time.After(w.stopTime())
			}
			ended, empty = nil, group.C
		case s := <-w.signals:
			w.pass(s)
		case <-lost:
			lost = nil
			w.lose()
		case <-clock.C:
			w.checkClock()
			w.child.reap()
			if w.child.guard.missing() {
				_ = w.replaceGuard() // otherwise next time
			}
		case <-w.child.guard.ended():
			w.guardEnded()
		case <-w.kill:
			w.child.kill(os.Kill)
			w.kill = nil
			if ended == nil {
				return
			}
		case <-empty:
			if w.child.allEnded() {
				return
			}
		}
	}
}

// endedBySignal reports whether the command ended because of a signal to it and
// to what it started, which may still be at work. That of Ctrl-C may come here
// after the command has ended.
func (w *watch) endedBySignal() bool {
	status := w.child.status()
	return w.ending && status != 0 || status == statusInterrupted && inForeground()
}

// failure returns an error if a signal ended the command: then it did not say
// how far it had come. A JVM and docker run, for example, make a status of the
// signal themselves.
func (w *watch) failure() error {
	if w.child.signaled() || w.endedBySignal() && w.child.status() > statusSignal {
		return lock.ErrUnknown
	}
	return nil
}

// pass passes a signal on to the command.
func (w *watch) pass(s os.Signal) {
	send := w.child.signalAll
	switch handlingOf(s) {
	case stops:
		w.stop()
		return
	case continues:
		// The lease may have ended meanwhile: then nothing may go on.
		w.checkClock()
		if w.untilStop() <= 0 {
			w.child.kill(os.Kill)
		}
		w.child.signalTree(s)
		return
	case leaves, ignores:
		return
	case ends:
		w.ending, send = true, w.child.end
	case passes, informs:
	}
	if w.child.takes(s) && !send(s) {
		w.say("%q: the signal %q was not passed on: %s", w.Key, s, notAllowed)
	}
}

// stop stops the command and this process.
func (w *watch) stop() {
	w.child.stop()
	var later []os.Signal
	for len(w.signals) > 0 {
		if s := <-w.signals; handlingOf(s) != stops { // several may come for one Ctrl-Z
			later = append(later, s)
		}
	}
	stopSelf()
	for _, s := range later {
		w.pass(s)
	}
}

// notAllowed says why a command goes on that should end.
const notAllowed = "the command goes on, because it runs as another user; as that user, run lambdalock itself (sudo lambdalock exec …, not lambdalock exec … sudo …)"

// checkClock notices by the wall clock that the lease is about to end, also
// while what was told to end has still time to do so.
func (w *watch) checkClock() {
	left := w.untilStop()
	if left <= w.stopTime() {
		w.lose()
	}
	if left <= 0 && w.kill != nil {
		w.kill = time.After(0)
	}
}

// untilStop is how long the command may still run if the lease is not renewed.
// Afterwards another owner may start, whose clock may be ahead of ours.
func (w *watch) untilStop() time.Duration {
	return w.lock.Lease().Until.Sub(w.wall()) - lock.DefaultGrace
}

// lose ends the command because the lease was lost.
func (w *watch) lose() {
	select {
	case <-w.child.ended:
		return
	default:
	}
	if w.lost {
		return
	}
	w.lost = true
	left, consequence := w.untilStop(), "the command is being ended"
	send, with := w.child.end, os.Signal(syscall.SIGTERM)
	if left <= 0 {
		send, with = w.child.kill, os.Kill
	}
	if !send(with) {
		consequence = notAllowed
	}
	w.kill = time.After(min(left, w.stopTime()))
	w.say("%q: %s", w.Key, w.whyLost(left, consequence))
}

// guardEnded replaces a guard that has ended. If that was one that replaced
// another and has ended at once, the next look at the clock does.
func (w *watch) guardEnded() {
	again := w.replaced && w.child.guard.endedEarly()
	w.child.guard.stop()
	w.child.guard, w.replaced = nil, true
	if again {
		return
	}
	if w.replaceGuard() == nil {
		w.tell("the guard has ended, which ends what the command started if lambdalock is killed; another one was started")
	}
}

// replaceGuard starts a guard. The first failure is said.
func (w *watch) replaceGuard() error {
	guard, err := startGuard()
	if err == nil {
		w.child.guard, err = guard, guard.protect(w.child.cmd)
	}
	if err != nil && !w.unguarded {
		w.unguarded = true
		w.say(outlives, err)
	}
	return err
}

// whyLost says why the lease was lost while so much of it was left.
func (w *watch) whyLost(left time.Duration, consequence string) string {
	if left > w.stopTime() {
		return "the lock was lost, because somebody else released or took it, or the store lost its data: " + consequence
	}
	cause := "the store has not answered, or lambdalock could not run"
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.storeErr != nil {
		cause = console.Plain(w.storeErr)
	}
	return "the lease could not be renewed in time: " + consequence + ": " + cause
}

//go:build unix

package shell

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hasTerminal reports whether this process has a terminal.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err == nil {
		_ = tty.Close()
	}
	return err == nil
}

// inForeground reports whether the terminal, if there is one, sends its signals
// to this process.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// canGoOn reports whether a shell continues this process after it was stopped.
// None does if the process group is that of the terminal's session, as in a
// container.
func canGoOn() bool {
	session, err := unix.Getsid(0)
	return !hasTerminal() || err == nil && session != unix.Getpgrp()
}

// prepareProcess reports whether the command gets a process group of its own.
// It gets none where there is a terminal: a shell stops, continues and
// interrupts whole groups, and only one of them may read from the terminal.
func prepareProcess(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !hasTerminal()}
	endWithParent(cmd.SysProcAttr)
	return cmd.SysProcAttr.Setpgid
}

// dieOf ends this process by the signal that ended the command. No exit status
// tells a shell to end the loop or the script too, and a service manager that a
// service was stopped. Go's runtime keeps handlers of its own for most signals,
// which only exec(2) resets. It returns where there is no shell.
func dieOf(signal int) {
	// Process 1 of a container survives. The core, if any, is that of the command.
	const script = `ulimit -c 0; kill -"$1" $$; exit "$((128 + $1))"`
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script, "sh", strconv.Itoa(signal)}, nil)
}

// takes reports whether a signal has to be passed on. In the foreground, the
// terminal sends its own to the command as well.
func (c *child) takes(s os.Signal) bool {
	return c.ownGroup || !fromTerminal(s) || !inForeground()
}

// signalAll sends a signal to the command, and to its group if that is its own.
// A process that has ended gets none. It reports whether this user may send it.
func (c *child) signalAll(s os.Signal) bool {
	if c.ownGroup {
		return syscall.Kill(-c.cmd.Process.Pid, s.(syscall.Signal)) != syscall.EPERM
	}
	return !errors.Is(c.cmd.Process.Signal(s), syscall.EPERM)
}

// signalTree sends a signal to the command and to everything that it started,
// in whatever group or session. It reports as signalAll does.
func (c *child) signalTree(s os.Signal) bool {
	allowed := c.signalAll(s)
	for _, p := range c.others() {
		// What gets a signal twice may give up what the first one began.
		reached := p.pid == c.cmd.Process.Pid
		if c.ownGroup {
			reached = p.group == c.cmd.Process.Pid
		}
		if !reached {
			_ = syscall.Kill(p.pid, s.(syscall.Signal)) // it may have ended
		}
	}
	return allowed
}

// end asks all of them to end, as signalTree does, even those that are stopped:
// a command may have tried to read from a terminal in whose background it is.
func (c *child) end(s os.Signal) bool {
	allowed := c.signalTree(s)
	c.signalTree(syscall.SIGCONT)
	return allowed
}

// kill kills the command and everything that it started, also what is started
// meanwhile. It returns once they are gone, or do not go.
func (c *child) kill(os.Signal) bool {
	allowed := c.signalTree(os.Kill)
	for range time.Second / groupCheck {
		if c.allEnded() {
			break
		}
		time.Sleep(groupCheck)
		c.signalTree(os.Kill)
	}
	return allowed
}

// allEnded reports whether nothing is left of what the command started. The
// command itself may be left where it has no group of its own.
func (c *child) allEnded() bool {
	// Orphans that were not reaped are still in the group. EPERM: there are
	// processes, of another user.
	if c.ownGroup && c.orphans == nil && !errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH) {
		return false
	}
	return !slices.ContainsFunc(c.others(), func(p running) bool { return p.pid != c.cmd.Process.Pid })
}

// leaveTime is how long processes that the terminal stops may take to leave it
// in order, as editors do.
const leaveTime = 500 * time.Millisecond

// stop stops the command and everything that it started.
func (c *child) stop() {
	for range leaveTime / groupCheck {
		runs := func(p running) bool { return p.group == unix.Getpgrp() && p.state != 'T' }
		if c.ownGroup || !slices.ContainsFunc(c.others(), runs) {
			break
		}
		time.Sleep(groupCheck)
	}
	c.signalTree(syscall.SIGSTOP)
}

// stopSelf stops this process, which gets a SIGCONT before it goes on. It may
// return before this process is stopped.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// signaled reports whether a signal ended the command.
func (c *child) signaled() bool { return c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() }

// status is the command's status as a shell reports it.
func (c *child) status() int {
	if w := c.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return statusSignal + int(w.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

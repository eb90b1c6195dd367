//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// catchSignals returns the signals that the command gets. Those that this
// process was started to ignore, as by nohup, stay ignored.
func catchSignals() <-chan os.Signal {
	var caught []os.Signal
	for _, s := range []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGPIPE, // nobody reads our messages any more: the command still has to be watched
	} {
		if !signal.Ignored(s) {
			caught = append(caught, s)
		}
	}
	if !inForeground() && !signal.Ignored(syscall.SIGTSTP) {
		caught = append(caught, syscall.SIGTSTP, syscall.SIGCONT)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, caught...)
	return signals
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) }

func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }

func isContinue(s os.Signal) bool { return s == syscall.SIGCONT }

// endsProcess reports whether a signal is meant to end a command.
func endsProcess(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
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

// prepareProcess reports whether the command gets a process group of its own.
// In the foreground of a terminal it gets none, or it could not read from the
// terminal.
func prepareProcess(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !inForeground()}
	endWithParent(cmd.SysProcAttr)
	return cmd.SysProcAttr.Setpgid
}

// guard is a process that kills the command's group when this process dies,
// because the system can only end the command itself and not what it started.
// The guard's input ends with this process.
type guard struct {
	process *exec.Cmd
	input   io.WriteCloser
}

// startGuard starts the guard before the command, so that hardly any time
// passes between the start of the command and that of its protection.
func startGuard() (*guard, error) {
	g := &guard{process: exec.Command("/bin/sh", "-c", `read -r group || exit; read -r _; kill -s KILL -- "-$group"`, "guard of lambdalock")}
	g.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to our group are not for it
	var err error
	if g.input, err = g.process.StdinPipe(); err == nil {
		err = g.process.Start()
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// protect tells the guard which group it is for.
func (g *guard) protect(group int) error {
	_, err := fmt.Fprintln(g.input, group)
	return err
}

func (g *guard) stop() {
	if g == nil {
		return
	}
	_ = g.process.Process.Kill()
	_ = g.input.Close()
	_ = g.process.Wait()
}

// takes reports whether a signal has to be passed on. In the foreground, the
// terminal sends its own to the command as well.
func (c *child) takes(s os.Signal) bool {
	return s != syscall.SIGPIPE && (c.ownGroup || (s != syscall.SIGINT && s != syscall.SIGQUIT))
}

// signalAll sends a signal to the command and to what it started. One that has
// ended gets none. It reports whether this user may send it.
func (c *child) signalAll(s os.Signal) bool {
	if c.ownGroup {
		return syscall.Kill(-c.cmd.Process.Pid, s.(syscall.Signal)) != syscall.EPERM
	}
	return !errors.Is(c.cmd.Process.Signal(s), syscall.EPERM)
}

// end asks the command to end, as signalAll does, even one that is stopped:
// it may have tried to read from a terminal in whose background it is.
func (c *child) end(s os.Signal) bool {
	allowed := c.signalAll(s)
	c.signalAll(syscall.SIGCONT)
	return allowed
}

// stopWithUs stops the command and this process, which gets a SIGCONT before it
// goes on. It may return before this process is stopped.
func (c *child) stopWithUs() {
	c.signalAll(syscall.SIGSTOP)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

func (c *child) groupIsEmpty() bool {
	// EPERM: there are processes, of another user.
	return !c.ownGroup || errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH)
}

// status is the command's status as a shell reports it.
func (c *child) status() int {
	if w := c.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return statusSignal + int(w.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

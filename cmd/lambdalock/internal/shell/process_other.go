//go:build !unix

package shell

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// catchSignals returns the signals that must not end this process before the
// command.
func catchSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	return signals
}

func signalNumber(os.Signal) int { return int(syscall.SIGINT) }

func handlingOf(os.Signal) handling { return ends }

func prepareProcess(*exec.Cmd) bool { return false }

type guard struct{}

// startGuard fails: the command ends with the console.
func startGuard() (*guard, error) { return nil, errors.ErrUnsupported }

func (*guard) protect(*exec.Cmd) error { return errors.ErrUnsupported }

func (*guard) missing() bool { return false }

func (*guard) ended() <-chan struct{} { return nil }

func (*guard) endedEarly() bool { return false }

func (*guard) stop() {}

// takes reports false: Windows sends Ctrl-C to all processes of the console.
func (c *child) takes(os.Signal) bool { return false }

func (c *child) signalAll(os.Signal) bool {
	return !errors.Is(c.cmd.Process.Kill(), os.ErrPermission)
}

func (c *child) signalTree(s os.Signal) bool { return c.signalAll(s) }

func (c *child) end(os.Signal) bool { return c.signalAll(os.Kill) }

func (c *child) kill(os.Signal) bool { return c.signalAll(os.Kill) }

func (c *child) allEnded() bool { return true }

func (c *child) stop() {}

func stopSelf() {}

type orphans struct{}

func adopt() *orphans { return nil }

func (c *child) reap() {}

func inForeground() bool { return false }

func dieOf(int) {}

const runVariable = "LAMBDALOCK_RUN"

// signaled reports whether a signal ended the command.
func (c *child) signaled() bool { return false }

func (c *child) status() int { return c.cmd.ProcessState.ExitCode() }

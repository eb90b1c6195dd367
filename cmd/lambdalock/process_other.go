//go:build !unix

package main

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

func isStop(os.Signal) bool { return false }

func isContinue(os.Signal) bool { return false }

func endsProcess(os.Signal) bool { return true }

func prepareProcess(*exec.Cmd) bool { return false }

type guard struct{}

// startGuard is not called: no command gets a group of its own.
func startGuard() (*guard, error) { return nil, errors.ErrUnsupported }

func (*guard) protect(int) error { return errors.ErrUnsupported }

func (*guard) stop() {}

// takes reports false: Windows sends Ctrl-C to all processes of the console.
func (c *child) takes(os.Signal) bool { return false }

func (c *child) signalAll(os.Signal) bool {
	return !errors.Is(c.cmd.Process.Kill(), os.ErrPermission)
}

func (c *child) end(os.Signal) bool { return c.signalAll(os.Kill) }

func (c *child) stopWithUs() {}

func (c *child) groupIsEmpty() bool { return true }

func (c *child) status() int { return c.cmd.ProcessState.ExitCode() }

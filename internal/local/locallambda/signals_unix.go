//go:build unix

package locallambda

import (
	"os/exec"
	"syscall"
)

const (
	killSignal      = syscall.SIGKILL
	terminateSignal = syscall.SIGTERM
	freezeSignal    = syscall.SIGSTOP
	thawSignal      = syscall.SIGCONT
)

var platformUnsupported error

// ownGroup gives a process a group of its own, so that what it starts in turn
// is frozen and killed with it. Should the caller die without Close, the kernel
// sends the then orphaned group SIGHUP if it is frozen; a running one ends when
// it finds its Runtime API gone.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signalGroup signals a process group. Every sender expects that the group may
// have ended already.
func signalGroup(pid int, signal syscall.Signal) {
	_ = syscall.Kill(-pid, signal)
}

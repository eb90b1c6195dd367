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

// signalGroup signals a process group. That the group has ended already is no
// error: every sender is prepared for that.
func signalGroup(pid int, signal syscall.Signal) {
	_ = syscall.Kill(-pid, signal)
}

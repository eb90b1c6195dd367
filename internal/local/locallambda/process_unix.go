//go:build unix

package locallambda

import (
	"errors"
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

// readNow reads from a descriptor that does not block what is there at the
// moment; more is false at its end.
func readNow(fd uintptr, piece []byte) (n int, more bool) {
	for {
		n, err := syscall.Read(int(fd), piece)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, true
		}
		return max(n, 0), n > 0
	}
}

// signalGroup signals a process group. That the group has ended already is no
// error: every sender is prepared for that.
func signalGroup(pid int, signal syscall.Signal) {
	_ = syscall.Kill(-pid, signal)
}

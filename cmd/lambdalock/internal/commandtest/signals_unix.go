//go:build unix

package commandtest

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Detach takes the terminal, if there is one, away from a process.
func Detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// dontIgnoreSignals makes the processes of the tests start with the system's
// handling of signals, also under nohup and in the background of a script: what
// a process ignores, its children ignore too, unlike what it catches.
func dontIgnoreSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

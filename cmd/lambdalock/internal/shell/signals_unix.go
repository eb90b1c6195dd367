//go:build unix

package shell

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// handled has every signal of a system with a name: those of
// https://man7.org/linux/man-pages/man7/signal.7.html, of macOS and of the BSDs.
var handled = map[string]handling{
	"SIGHUP":  ends,
	"SIGINT":  ends,
	"SIGQUIT": ends,
	"SIGTERM": ends,
	"SIGABRT": ends, // of the watchdog of systemd, for example
	"SIGIOT":  ends, // its name on FreeBSD
	"SIGALRM": ends, // perl -e 'alarm 60; exec @ARGV': exec(2) keeps an alarm
	"SIGXCPU": ends, // a batch system's, when the time of a job is used up

	"SIGUSR1": passes, "SIGUSR2": passes, "SIGVTALRM": passes, "SIGIO": passes, "SIGPWR": passes,

	"SIGWINCH": informs, "SIGINFO": informs,

	"SIGTSTP": stops, // Ctrl-Z
	"SIGTTIN": stops, // from the background of a terminal: something of its process group reads,
	"SIGTTOU": stops, // or writes under stty tostop, or changes the settings
	"SIGCONT": continues,

	"SIGPIPE": ignores, // nobody reads our messages any more: the command still has to be watched
	"SIGXFSZ": ignores, // the file that has them is full

	// No process can catch these.
	"SIGKILL": leaves, "SIGSTOP": leaves,
	// A fault ends this process, and then the guard ends the command.
	"SIGILL": leaves, "SIGTRAP": leaves, "SIGBUS": leaves, "SIGFPE": leaves, "SIGSEGV": leaves, "SIGSYS": leaves,
	"SIGSTKFLT": leaves, "SIGEMT": leaves,
	// Go's runtime, or a library, uses these for itself.
	"SIGCHLD": leaves, "SIGURG": leaves, "SIGPROF": leaves, "SIGTHR": leaves, "SIGLIBRT": leaves,
}

// Real-time signals have no names. The C libraries of Linux use those before
// the first one for themselves.
const (
	firstRealTime = syscall.Signal(35)
	lastSignal    = syscall.Signal(64)
)

func handlingOf(s os.Signal) handling {
	if s.(syscall.Signal) >= firstRealTime {
		return passes
	}
	return handled[unix.SignalName(s.(syscall.Signal))]
}

// catchSignals returns the signals that this process handles. SIGHUP and SIGINT
// stay ignored if it was started to ignore them, as by nohup. Go's runtime does
// not say which others are ignored.
func catchSignals() <-chan os.Signal {
	var caught []os.Signal
	jobs := canGoOn()
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		switch handlingOf(s) {
		case leaves:
			continue
		case stops, continues:
			if !jobs {
				continue
			}
		}
		if !signal.Ignored(s) {
			caught = append(caught, s)
		}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, caught...)
	return signals
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) }

// fromTerminal reports whether a terminal sends such a signal to the processes
// in its foreground.
func fromTerminal(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || handlingOf(s) == informs
}

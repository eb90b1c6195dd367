//go:build unix

package shell

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runVariable marks everything that a command starts: its value is different in
// each run. The guard finds by it what has left the command's group.
const runVariable = "LAMBDALOCK_RUN"

// guard is a process that kills what the command started when this process
// dies, because the system ends at most the command itself. The guard's input
// ends with this process.
type guard struct {
	process *exec.Cmd
	input   io.WriteCloser
	started time.Time
	gone    chan struct{} // closed when it has ended
}

// guardScript reads the target of kill, which is a group or a process, and the
// mark. Only Linux shows what is marked, in the folders of /proc. What is sent
// to all processes, of a unit or of a user, does not end the guard, nor what it
// starts. It needs the status of these.
const guardScript = `
signal=1
while [ $signal -le 64 ]; do
	command trap '' $signal
	signal=$((signal + 1))
done 2>/dev/null
trap - CHLD
read -r target mark || exit
read -r _
kill -s KILL -- "$target"
[ "$mark" ] || exit
while marked=$(grep -lsF -- "$mark" /proc/[0-9]*/environ); [ "$marked" ]; do
	for file in $marked; do
		process=${file#/proc/}
		kill -s KILL "${process%/environ}"
	done
	sleep 0.02 # until they are gone
done`

// guardPath is where the guard looks for programs. In a unit or a small image,
// PATH may name the folder of the command alone.
func guardPath() string { return strings.TrimPrefix(os.Getenv("PATH")+":/usr/bin:/bin", ":") }

// findGrep returns an error if the guard cannot find what has left the
// command's group. It loses nothing but a pause if there is no sleep.
func findGrep(path string) error {
	for _, folder := range filepath.SplitList(path) {
		if _, err := exec.LookPath(folder + "/grep"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("install grep, or add its folder to PATH: it is not in %s", path)
}

// startGuard starts the guard before the command, so that hardly any time
// passes between the start of the command and that of its protection.
func startGuard() (*guard, error) {
	g := &guard{process: exec.Command("/bin/sh", "-c", guardScript, "guard of lambdalock"), started: time.Now(), gone: make(chan struct{})}
	g.process.Env = []string{"PATH=" + guardPath()}            // without the mark of a run around this one
	g.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to our group are not for it
	var err error
	if g.input, err = g.process.StdinPipe(); err == nil {
		err = g.process.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		_ = g.process.Wait()
		close(g.gone)
	}()
	return g, nil
}

// protect tells the guard which command it is for. An error says that it cannot
// kill all that the command starts.
func (g *guard) protect(cmd *exec.Cmd) error {
	target, mark := strconv.Itoa(cmd.Process.Pid), ""
	if cmd.SysProcAttr.Setpgid {
		target = "-" + target
	}
	for _, variable := range cmd.Env {
		if strings.HasPrefix(variable, runVariable+"=") {
			mark = variable
		}
	}
	if _, err := fmt.Fprintln(g.input, target, mark); err != nil {
		return err
	}
	return findGrep(guardPath())
}

// pid returns the process id of the guard, or 0 if there is none.
func (g *guard) pid() int {
	if g == nil {
		return 0
	}
	return g.process.Process.Pid
}

func (g *guard) missing() bool { return g == nil }

// ended is closed when the guard has ended.
func (g *guard) ended() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.gone
}

// endedEarly reports whether a guard that has ended was just started.
func (g *guard) endedEarly() bool { return time.Since(g.started) < clockCheck }

func (g *guard) stop() {
	if g == nil {
		return
	}
	_ = g.process.Process.Kill()
	_ = g.input.Close()
	<-g.gone
}

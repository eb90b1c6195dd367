package shell

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// orphans are processes of the command whose parent has ended.
type orphans struct {
	before map[int]string // when the processes began that did before the command, by pid
	ended  chan os.Signal // a child of this process did
	seen   map[int]bool   // at the last look: processes whose status no one had asked for
}

// adopt makes this process the parent of those that lose theirs, so that they
// can be found. It is for the moment before the command is started. Nil: the
// system cannot. Process 1 of a container is their parent anyway.
func adopt() *orphans {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return nil
	}
	o := &orphans{before: map[int]string{}, ended: make(chan os.Signal, 1)}
	signal.Notify(o.ended, syscall.SIGCHLD)
	for _, p := range processes() {
		o.before[p.pid] = p.began
	}
	return o
}

// include reports whether a process is an orphan of the command. What a script
// has started before it became this process by exec is not.
func (o *orphans) include(p running) bool {
	return o != nil && p.parent == os.Getpid() && o.before[p.pid] != p.began
}

// reap removes the processes that have ended and whose status no one asks for:
// a parent would have done so since the last look.
func (c *child) reap() {
	if c.orphans == nil {
		return
	}
	select {
	case <-c.orphans.ended:
	default:
		if len(c.orphans.seen) == 0 {
			return
		}
	}
	now := map[int]bool{}
	for _, p := range processes() {
		switch {
		case p.parent != os.Getpid() || !p.ended() || p.pid == c.cmd.Process.Pid || p.pid == c.guard.pid():
		case c.orphans.seen[p.pid]:
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		default:
			now[p.pid] = true
		}
	}
	c.orphans.seen = now
}

// processes returns those that run on this machine, as far as /proc shows them,
// see https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html.
func processes() []running {
	var all []running
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		name := strings.LastIndexByte(string(text), ')') // which may hold anything
		fields := strings.Fields(string(text[name+1:]))
		if name < 0 || len(fields) < 20 {
			continue
		}
		p := running{state: fields[0][0], began: fields[19]}
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		p.parent, _ = strconv.Atoi(fields[1])
		p.group, _ = strconv.Atoi(fields[2])
		all = append(all, p)
	}
	return all
}

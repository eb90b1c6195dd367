//go:build unix

package shell

import "slices"

// running is a process of this machine.
type running struct {
	pid, parent, group int
	state              byte   // as ps shows it
	began              string // on Linux: tells it from others that had its pid
}

// ended reports whether only the status of a process is left.
func (p running) ended() bool { return p.state == 'Z' || p.state == 'X' }

// others returns what the command started, and the command itself, as far as
// they run. Processes whose parent has ended belong to it if this process
// adopts them. The guard does not, nor what this process had before.
func (c *child) others() []running {
	found, left := []running(nil), processes()
	parents := []int{c.cmd.Process.Pid}
	left = slices.DeleteFunc(left, func(p running) bool {
		command := p.pid == c.cmd.Process.Pid
		if command || c.orphans.include(p) && p.pid != c.guard.pid() {
			found, parents = append(found, p), append(parents, p.pid)
			return true
		}
		return p.pid == c.guard.pid()
	})
	for len(parents) > 0 {
		parent := parents[0]
		parents = parents[1:]
		left = slices.DeleteFunc(left, func(p running) bool {
			if p.parent != parent {
				return false
			}
			found, parents = append(found, p), append(parents, p.pid)
			return true
		})
	}
	return slices.DeleteFunc(found, running.ended)
}

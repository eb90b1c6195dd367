//go:build linux || freebsd

package shell

import "syscall"

// endWithParent makes the system kill the command when this process is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// lock locks the file at path, waiting for it if need be. The system releases
// the lock when the process ends, so a crash does not leave it locked.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil
}

// dieWithParent makes the system kill the child when this process dies without
// cleaning up, as a test binary does at its timeout.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// haveAttributes returns an error if files in dir cannot have extended
// attributes.
func haveAttributes(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "attributes-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := syscall.Setxattr(f.Name(), "user.lambdalock", []byte("yes"), 0); err != nil {
		return fmt.Errorf("the file system of %s has no extended attributes (%w): clone the repository to one that has, such as ext4 or XFS", dir, err)
	}
	return nil
}

func (p *process) pause() error     { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error    { return p.cmd.Process.Signal(syscall.SIGCONT) }
func (p *process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

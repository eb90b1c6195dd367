//go:build !linux

package servers

import (
	"errors"
	"os/exec"
)

// No product runs on this system. These functions let the package build, so
// that its tests can skip.

func lock(string) (unlock func(), err error) {
	return nil, errors.ErrUnsupported
}

func dieWithParent(*exec.Cmd) {}

func haveAttributes(string) error { return errors.ErrUnsupported }

func (*process) pause() error     { return errors.ErrUnsupported }
func (*process) resume() error    { return errors.ErrUnsupported }
func (*process) terminate() error { return errors.ErrUnsupported }

//go:build !linux

package servers

import (
	"errors"
	"os/exec"
)

// No product runs here; these let the package build so that tests can skip.

func lock(string) (unlock func(), err error) {
	return nil, errors.ErrUnsupported
}

func dieWithParent(*exec.Cmd) {}

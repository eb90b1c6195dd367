//go:build !unix

package commandtest

import "os/exec"

// Detach does nothing.
func Detach(*exec.Cmd) {}

func dontIgnoreSignals() {}

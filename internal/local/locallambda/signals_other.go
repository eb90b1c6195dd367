//go:build !unix

package locallambda

import (
	"errors"
	"os/exec"
	"runtime"
)

const (
	killSignal = iota
	terminateSignal
	freezeSignal
	thawSignal
)

var platformUnsupported = errors.New("locallambda: not supported on " + runtime.GOOS +
	": execution environments are frozen and killed by signals to a Unix process group; use Linux, macOS or WSL")

func ownGroup(*exec.Cmd) {}

func signalGroup(int, int) {}

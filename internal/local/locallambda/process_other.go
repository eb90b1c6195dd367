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
	": freezing and killing execution environments takes Unix process groups")

func ownGroup(*exec.Cmd) {}

func readNow(uintptr, []byte) (int, bool) { return 0, false }

func signalGroup(int, int) {}

package console

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// ExplainStart says what to do about a program that the system does not start.
func ExplainStart(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s needs %s, which is not on this machine: %w", name, interpreter(name), err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s does not run here: %s (%w)", name, notExecutable(name), err)
	}
	return err
}

func notExecutable(name string) string {
	here := fmt.Sprintf("build it with GOOS=%s GOARCH=%s to run it on this machine", runtime.GOOS, runtime.GOARCH)
	if f, err := elf.Open(name); err == nil {
		defer func() { _ = f.Close() }()
		return fmt.Sprintf("it is a Linux program for %s, and this machine is %s/%s; %s", f.Machine, runtime.GOOS, runtime.GOARCH, here)
	}
	switch start := beginning(name); {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return "it is an archive: unzip it, and name the bootstrap in it"
	case bytes.ContainsRune(start, 0):
		return "it is not a program for this system: " + here
	}
	return "if it is a script, its first line must name its interpreter, like #!/bin/sh"
}

// interpreter returns what the first line of a script names, or says what a
// program that is not a script may lack.
func interpreter(name string) string {
	if script, ok := bytes.CutPrefix(beginning(name), []byte("#!")); ok {
		line, _, _ := bytes.Cut(script, []byte("\n"))
		return strings.TrimSpace(string(line))
	}
	return "a loader or library (CGO_ENABLED=0 builds a program that needs none)"
}

// beginning returns the first bytes of a file, or fewer if it cannot be read.
func beginning(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	start, _ := io.ReadAll(io.LimitReader(f, 256))
	return start
}

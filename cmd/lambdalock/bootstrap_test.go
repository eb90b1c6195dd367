package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestBootstrapWithoutASlash: unlike for a shell, bootstrap means ./bootstrap.
func TestBootstrapWithoutASlash(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, "invoke", "bootstrap", s3Event(t, "cat.png"))
	expect.Must(t, os.Symlink(os.Args[0], filepath.Join(c.Dir, "bootstrap")))
	execute(t, c).Expect(t, 0, "ran")
}

func TestBootstrapThatDoesNotRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		name = filepath.Join(folder, name)
		expect.Must(t, os.WriteFile(name, []byte(text), mode))
		return name
	}
	program := expect.Value(os.ReadFile(os.Args[0]))(t)
	foreign := slices.Clone(program)
	foreign[18], foreign[19] = 21, 0 // PowerPC, as an ELF file says
	elf := bytes.HasPrefix(program, []byte("\x7fELF"))
	for name, c := range map[string]struct {
		bootstrap string
		within    []string
		skip      bool
	}{
		"an event":        {s3Event(t, "cat.png"), []string{"chmod +x", "go build"}, false},
		"a folder":        {folder, []string{"is a folder"}, false},
		"nothing":         {filepath.Join(folder, "none"), []string{"go build"}, false},
		"an archive":      {write("function.zip", "PK\x03\x04", 0o700), []string{"unzip"}, false},
		"empty":           {write("empty", "", 0o700), []string{"is empty"}, false},
		"a script":        {write("script", "echo", 0o700), []string{"#!/bin/sh"}, false},
		"no interpreter":  {write("python", "#!/nowhere/python\n", 0o700), []string{"/nowhere/python"}, false},
		"an architecture": {write("foreign", string(foreign), 0o700), []string{"EM_PPC64", "GOARCH="}, !elf},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.skip {
				t.Skip("this system's programs are not in ELF")
			}
			command(t, nil, "invoke", c.bootstrap, s3Event(t, "cat.png")).Expect(t, 1, append(c.within, c.bootstrap)...)
		})
	}
}

// TestScript: a function may be a script that starts the program.
func TestScript(t *testing.T) {
	t.Parallel()
	script := file(t, "bootstrap", "#!/bin/sh\nexec '"+os.Args[0]+"'\n")
	expect.Must(t, os.Chmod(script, 0o700))
	command(t, nil, "invoke", script, s3Event(t, "cat.png")).Expect(t, 0, "ran")
}

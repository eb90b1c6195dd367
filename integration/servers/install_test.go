package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestInstallFetchesOnce(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	root := filepath.Join(t.TempDir(), "servers")
	var fetched atomic.Int32
	p := &product{folder: "fake-1", fetch: func(_ context.Context, dir string) error {
		fetched.Add(1)
		return os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := p.installIn(t.Context(), root)
			if err != nil || !exists(filepath.Join(dir, "file")) {
				t.Errorf("installed in %q, error %v", dir, err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

func TestInstallLeavesNothingAfterFailure(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	root, tries := t.TempDir(), 0
	p := &product{folder: "fake-1", fetch: func(context.Context, string) error {
		tries++
		return errors.New("no network")
	}}
	if _, err := p.installIn(t.Context(), root); err == nil || err.Error() != "no network" || tries != 2 {
		t.Errorf("got error %v after %d tries, want the fetch's own after 2", err, tries)
	}
	for _, name := range []string{"fake-1", "fake-1.partial"} {
		if exists(filepath.Join(root, name)) {
			t.Errorf("%s was left behind", name)
		}
	}
}

// TestInstallFetchesAgain: a download that breaks off is begun once more, in an
// empty folder.
func TestInstallFetchesAgain(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	tries := 0
	p := &product{folder: "fake-1", fetch: func(_ context.Context, dir string) error {
		if tries++; tries == 1 {
			return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), errors.New("connection reset"))
		}
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	}}
	dir, err := p.installIn(t.Context(), t.TempDir())
	if err != nil || exists(filepath.Join(dir, "half")) || !exists(filepath.Join(dir, "whole")) {
		t.Errorf("in %s after %d tries, error %v", dir, tries, err)
	}
}

// TestInstallEndsWithItsCaller: only the caller says how long a fetch may take,
// and there is no second try after that.
func TestInstallEndsWithItsCaller(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	tooLong := errors.New("too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	tries := 0
	p := &product{folder: "fake-1", fetch: func(ctx context.Context, dir string) error {
		if _, limited := ctx.Deadline(); limited {
			t.Error("the fetch has a limit that its caller did not set")
		}
		tries++
		cancel(tooLong)
		return runTool(ctx, dir, nil, "sleep", "600")
	}}
	if _, err := p.installIn(ctx, t.TempDir()); !errors.Is(err, tooLong) || tries != 1 {
		t.Errorf("error %v after %d tries", err, tries)
	}
}

func TestStartReportsOutputOfExitedServer(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	p := &product{command: func(_, _, _ string) *exec.Cmd {
		return exec.Command("sh", "-c", "echo cannot serve; exit 3")
	}}
	_, err := p.start("", t.TempDir(), nil)
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "cannot serve") {
		t.Errorf("got error %v, want the server's output", err)
	}
}

// TestAttributes needs the kernel's own file system, which has none.
func TestAttributes(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	if err := haveAttributes("/proc/self"); err == nil {
		t.Error("a file system without extended attributes was accepted")
	}
}

func TestServerOfTheMachine(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]struct{ output, version, err string }{
		"new enough": {"Redis server v=7.0.15 sha=0", "7.0.15", ""},
		"newer":      {"Valkey server v=8.1.1 sha=0", "8.1.1", ""},
		"too old":    {"Redis server v=6.2.14 sha=0", "", "is older than version 7"},
		"no version": {"hello", "", "names no version"},
		"fails":      {"", "", "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "usr", "bin")
			script := "#!/bin/sh\necho '" + c.output + "'\n[ -n '" + c.output + "' ]\n"
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a-server"), []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			for _, in := range []string{"", filepath.Join(dir, "..", "..")} {
				version, err := keyValueVersion("a-server", in)
				if version != c.version || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("in %q: version %q, error %v; want %q, %q", in, version, err, c.version, c.err)
				}
			}
		})
	}
}

func TestToolErrors(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := fetchDynamoDBLocal(t.Context(), t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), "mvn not found: install Maven") {
		t.Errorf("got error %v, want advice on mvn", err)
	}
	for name, fetch := range map[string]func(context.Context, string) error{"dynoxide": fetchDynoxide, "Azurite": fetchAzurite} {
		if err := fetch(t.Context(), t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "npm not found: install Node.js") {
			t.Errorf("%s: got error %v, want advice on npm", name, err)
		}
	}
	if err := redis.check(); err == nil || !strings.HasPrefix(err.Error(), "apt-get not found: install redis-server") {
		t.Errorf("got error %v, want advice on redis-server", err)
	}
	if err := moto.check(); err == nil || !strings.HasPrefix(err.Error(), "python3 not found: install Python 3") {
		t.Errorf("got error %v, want advice on python3", err)
	}
	if err := versityGW.check(); err == nil || !strings.HasPrefix(err.Error(), "go not found: put the go command") {
		t.Errorf("got error %v, want advice on go", err)
	}
}

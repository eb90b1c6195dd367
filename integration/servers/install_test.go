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
	p := &product{folder: "fake", version: "1", fetch: func(_ context.Context, dir string) error {
		fetched.Add(1)
		return os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := p.installIn(root)
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
	root := t.TempDir()
	p := &product{folder: "fake", version: "1", fetch: func(context.Context, string) error {
		return errors.New("no network")
	}}
	if _, err := p.installIn(root); err == nil || err.Error() != "no network" {
		t.Errorf("got error %v, want the fetch's own", err)
	}
	for _, name := range []string{"fake-1", "fake-1.partial"} {
		if exists(filepath.Join(root, name)) {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestStartReportsOutputOfExitedServer(t *testing.T) {
	if err := onLinuxAMD64(); err != nil {
		t.Skip(err)
	}
	p := &product{command: func(_, _ string) *exec.Cmd {
		return exec.Command("sh", "-c", "echo cannot serve; exit 3")
	}}
	_, _, err := p.start("")
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "cannot serve") {
		t.Errorf("got error %v, want the server's output", err)
	}
}

func TestToolErrors(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := fetchDynamoDBLocal(t.Context(), t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), "mvn not found: install Maven") {
		t.Errorf("got error %v, want advice on mvn", err)
	}
	err = fetchDynoxide(t.Context(), t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), "npm not found: install Node.js") {
		t.Errorf("got error %v, want advice on npm", err)
	}
}

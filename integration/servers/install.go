package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	modulePath = "github.com/lambdalock/lambdalock/integration"
	// testFetchLimit is how long a test may fetch. It is below the ten minutes that
	// a test binary has by default. A program fetches as long as its caller waits.
	testFetchLimit = 8 * time.Minute
	// fetchTries is for a download that breaks off.
	fetchTries = 2
)

// serversFolder returns the module's .servers folder. It looks upwards from the
// working directory, which for a test is its package's folder.
func serversFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+modulePath) {
			return filepath.Join(dir, ".servers"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside module " + modulePath)
		}
		dir = parent
	}
}

// installIn returns the product's folder below root, and fetches it if need be.
// The lock lets simultaneous test binaries fetch once; the rename makes sure
// that a folder with its final name is complete, even if a fetch was
// interrupted.
func (p *product) installIn(ctx context.Context, root string) (string, error) {
	dir := filepath.Join(root, p.folder)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) {
		return dir, nil
	}
	for try := 1; ; try++ {
		if err = p.fetchTo(ctx, dir); err == nil || try == fetchTries || ctx.Err() != nil {
			return dir, err
		}
	}
}

// fetchTo fetches into a folder beside dir and renames it to dir. The caller
// holds the lock, so an existing partial folder is left from an interrupted
// fetch.
func (p *product) fetchTo(ctx context.Context, dir string) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return err
	}
	if err := p.fetch(ctx, partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return os.Rename(partial, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

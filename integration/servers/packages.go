package servers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// PythonPackages fetches the packages that the file of requirements pins, and
// returns the Python interpreter that sees them. If they are unavailable, the
// test fails: it is one that was asked for by name.
func PythonPackages(tb testing.TB, requirements string) string {
	tb.Helper()
	dir := fetchPackages(tb, "python", requirements, func(ctx context.Context, dir, file string) error {
		if err := haveTool("python3", "install Python 3 with its module venv (python3-venv), or put python3 on the PATH"); err != nil {
			return err
		}
		if err := runTool(ctx, dir, nil, "python3", "-m", "venv", "."); err != nil {
			return err
		}
		return runTool(ctx, dir, nil, motoPython(dir), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", file)
	})
	return motoPython(dir)
}

// NodePackages fetches the packages of a package-lock.json, which lies beside
// its package.json, and returns the folder node_modules. It ends the test if
// they are unavailable.
func NodePackages(tb testing.TB, lockFile string) string {
	tb.Helper()
	dir := fetchPackages(tb, "node", lockFile, func(ctx context.Context, dir, file string) error {
		if err := haveTool("npm", npmAdvice); err != nil {
			return err
		}
		for _, f := range []string{file, filepath.Join(filepath.Dir(file), "package.json")} {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o644); err != nil {
				return err
			}
		}
		return runTool(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	return filepath.Join(dir, "node_modules")
}

// fetchPackages returns the folder with what a lock file pins, which is
// another one when the file changes.
func fetchPackages(tb testing.TB, language, lockFile string, fetch func(ctx context.Context, dir, file string) error) string {
	tb.Helper()
	file, err := filepath.Abs(lockFile)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	root, err := serversFolder()
	if err != nil {
		tb.Fatal(err)
	}
	p := product{
		folder: fmt.Sprintf("packages-%s-%.6x", language, sha256.Sum256(text)),
		fetch:  func(ctx context.Context, dir string) error { return fetch(ctx, dir, file) },
	}
	ctx, cancel := context.WithTimeout(tb.Context(), testFetchLimit)
	defer cancel()
	dir, err := p.installIn(ctx, root)
	if err != nil {
		tb.Fatalf("packages of %s: %v", lockFile, err)
	}
	return dir
}

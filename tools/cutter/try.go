package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// try makes the cuts, and notes which of them the tests notice.
func try(ctx context.Context, root string, cuts []*cut) error {
	suites, err := dependents(ctx, root, cuts)
	if err != nil {
		return err
	}
	for _, s := range suites {
		if s.work, err = os.MkdirTemp("", "cutter"); err != nil {
			return err
		}
		began := time.Now()
		met, err := s.try(ctx, unnoticed(cuts))
		os.RemoveAll(s.work)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", s.path, err)
		default:
			fmt.Fprintf(os.Stderr, "%s: %d cuts met, %d survive, %.1f s\n", s.path, len(met), len(unnoticed(met)), time.Since(began).Seconds())
		}
	}
	return nil
}

func unnoticed(cuts []*cut) []*cut {
	return slices.DeleteFunc(slices.Clone(cuts), func(c *cut) bool { return c.noticed })
}

// suite is the tests of a package.
type suite struct {
	dir, path string
	far       int    // how many packages it depends on
	work      string // a folder
	limit     time.Duration
	slow      string // matches tests that take long
}

// dependents returns the packages whose tests can reach a cut, nearest first.
func dependents(ctx context.Context, root string, cuts []*cut) (suites []*suite, err error) {
	matching, err := regexp.Compile(*packages)
	if err != nil {
		return nil, err
	}
	mods, err := command(ctx, root, "git", "ls-files", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, c := range cuts {
		paths[c.file.path] = true
	}
	for _, mod := range strings.Fields(mods) {
		out, err := command(ctx, filepath.Join(root, filepath.Dir(mod)), "go", "list", "-e", "-test", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .Deps \"\t\"}}", "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // what it requires was not downloaded
		}
		for line := range strings.Lines(out) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			path, isTest := strings.CutSuffix(fields[0], ".test")
			reaches := slices.ContainsFunc(fields, func(dep string) bool {
				dep, _, _ = strings.Cut(dep, " ") // of "path [path.test]"
				return paths[dep]
			})
			if far := len(fields); isTest && reaches && matching.MatchString(path) {
				if paths[path] {
					far = 0
				}
				suites = append(suites, &suite{dir: fields[1], path: path, far: far, limit: time.Hour})
			}
		}
	}
	slices.SortStableFunc(suites, func(s, t *suite) int { return s.far - t.far })
	return suites, nil
}

// try makes cuts, several at a time. It returns those that the tests reach.
func (s *suite) try(ctx context.Context, cuts []*cut) ([]*cut, error) {
	files := map[string]string{}
	for _, c := range cuts {
		files[c.file.name] = chosen(c.file, cuts)
		files[filepath.Join(filepath.Dir(c.file.name), "cut_chosen.go")] = "package " + c.file.syntax.Name.Name + chooser
	}
	program := filepath.Join(s.work, "all.test")
	err := s.build(ctx, program, files)
	if err == nil {
		cuts, err = s.measure(ctx, program, cuts)
	}
	if err != nil {
		return nil, err
	}
	var workers sync.WaitGroup
	jobs := make(chan *cut)
	for range *parallel {
		workers.Go(func() {
			for c := range jobs {
				c.met, c.noticed = append(c.met, s.path), s.isNoticed(ctx, program, c) && ctx.Err() == nil
			}
		})
	}
	for _, c := range cuts {
		jobs <- c
	}
	close(jobs)
	workers.Wait()
	return cuts, nil
}

// build builds the tests with other texts of files.
func (s *suite) build(ctx context.Context, program string, files map[string]string) error {
	dir, err := os.MkdirTemp(s.work, "")
	replaced := map[string]string{}
	for name, text := range files {
		replaced[name] = filepath.Join(dir, fmt.Sprint(len(replaced))+".go")
		err = cmp.Or(err, os.WriteFile(replaced[name], []byte(text), 0o600))
	}
	text, _ := json.Marshal(map[string]any{"Replace": replaced})
	overlay := filepath.Join(dir, "overlay.json")
	if err = cmp.Or(err, os.WriteFile(overlay, text, 0o600)); err == nil {
		_, err = command(ctx, s.dir, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay="+overlay, "-o", program, ".")
	}
	return err
}

var passed, failed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\S+)\)`), regexp.MustCompile(`(?m)^--- FAIL: \w+`)

// measure runs the tests without a cut. It returns the cuts that they reach.
func (s *suite) measure(ctx context.Context, program string, cuts []*cut) ([]*cut, error) {
	began, out := time.Now(), &bytes.Buffer{}
	if err := s.run(ctx, program, "CUTS="+s.work, out, "-test.v"); err != nil {
		return nil, fmt.Errorf("%w: %q", err, failed.FindAllString(out.String(), 3))
	}
	took := time.Since(began)
	s.limit = 3*took + 10*time.Second // of a cut that hangs
	var slow []string
	for _, m := range passed.FindAllStringSubmatch(out.String(), -1) {
		if t, err := time.ParseDuration(m[2]); err == nil && t > max(took/50, 50*time.Millisecond) {
			slow = append(slow, m[1])
		}
	}
	s.slow = "^(" + strings.Join(slow, "|") + ")$"
	return slices.DeleteFunc(cuts, func(c *cut) bool {
		_, err := os.Stat(filepath.Join(s.work, fmt.Sprint(c.id)))
		return c.fn != nil && err != nil
	}), nil
}

// isNoticed makes one cut, and reports whether a test notices it. The slow
// tests are the last.
func (s *suite) isNoticed(ctx context.Context, program string, c *cut) bool {
	if c.fn == nil {
		program += fmt.Sprint(c.id)
		defer os.Remove(program)
		if s.build(ctx, program, map[string]string{c.file.name: c.between(0, len(c.file.text))}) != nil {
			return true
		}
	}
	env := "CUT=" + fmt.Sprint(c.id)
	return s.run(ctx, program, env, io.Discard, "-test.skip="+s.slow) != nil || s.run(ctx, program, env, io.Discard, "-test.run="+s.slow) != nil
}

// run runs tests with a cut. They have a limit of memory, where the shell can
// set one, and no process outlives them.
func (s *suite) run(ctx context.Context, program, env string, out io.Writer, flag string) error {
	ctx, stop := context.WithTimeout(ctx, s.limit+10*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 16000000 2>/dev/null; exec "$@"`, "sh",
		program, "-test.failfast", "-test.short", "-test.timeout="+s.limit.String(), flag)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict says what the tests made of a change.
type verdict string

const (
	killed    verdict = "killed"
	hung      verdict = "hung"
	lived     verdict = "LIVED"
	unreached verdict = "unreached"
)

const (
	longestTest = 10 * time.Second
	// longestRun is how long the tests of one change may take. A change that makes
	// a loop endless is noticed by that.
	longestRun = time.Minute
)

// suite is the test binary of a package, and what its tests reach.
type suite struct {
	dir, work string // the folder of the tests, and that of the changed files
	tests     []measured
}

type measured struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

func (s *suite) binary() string { return filepath.Join(s.work, "package.test") }

func (s *suite) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary(), "-overlay="+filepath.Join(s.work, overlayName), ".")
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// run runs tests with one change, or none if id is negative.
func (s *suite) run(ctx context.Context, id int, notes, tests string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.binary(), "-test.failfast", "-test.short", "-test.timeout="+longestRun.String(), "-test.run", tests)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id), "MUTANT_NOTES="+notes)
	if os.Getenv("LAMBDALOCK_SEEDS") == "" {
		cmd.Env = append(cmd.Env, "LAMBDALOCK_SEEDS=20")
	}
	return cmd.CombinedOutput()
}

// measure runs each test by itself, without any change. Tests that fail, such
// as those that count allocations, and slow ones are left out.
func (s *suite) measure(ctx context.Context, changes int) error {
	list := exec.CommandContext(ctx, s.binary(), "-test.list", "^(Test|Example)")
	list.Dir = s.dir
	names, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(names)) {
		notes := filepath.Join(s.work, name)
		began := time.Now()
		out, err := s.run(ctx, -1, notes, "^"+name+"$")
		m := measured{name: name, took: time.Since(began), reaches: map[int]bool{}}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Printf("left out  %s, which fails without a change: %s\n", name, firstLine(out))
			continue
		case m.took > longestTest:
			fmt.Printf("left out  %s, which takes %v\n", name, m.took.Round(time.Second))
			continue
		}
		reached, _ := os.ReadFile(notes) // none: the test reaches nothing
		for line := range strings.FieldsSeq(string(reached)) {
			if id, err := strconv.Atoi(line); err == nil && id < changes {
				m.reaches[id] = true
			}
		}
		s.tests = append(s.tests, m)
	}
	slices.SortFunc(s.tests, func(a, b measured) int { return int(a.took - b.took) })
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line)
}

// try runs the tests that reach a change: the quickest ones first, then the
// others.
func (s *suite) try(ctx context.Context, id int) verdict {
	var quick, slow []string
	spent := time.Duration(0)
	for _, t := range s.tests {
		if !t.reaches[id] {
			continue
		}
		if spent += t.took; spent < longestTest/5 {
			quick = append(quick, t.name)
		} else {
			slow = append(slow, t.name)
		}
	}
	if len(quick)+len(slow) == 0 {
		return unreached
	}
	for _, tests := range [][]string{quick, slow} {
		if len(tests) == 0 {
			continue
		}
		out, err := s.run(ctx, id, "", "^("+strings.Join(tests, "|")+")$")
		switch {
		case bytes.Contains(out, []byte("panic: test timed out")):
			return hung
		case err != nil:
			return killed
		}
	}
	return lived
}

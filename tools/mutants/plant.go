package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// limit is how long the tests of a package may run. A bug that makes them hang
// is not noticed well: a developer waits for the limit and learns nothing.
const limit = 4 * time.Minute

// outcome says what became of a planted bug.
type outcome string

const (
	caught   outcome = "caught"
	survived outcome = "SURVIVED"
	hung     outcome = "HANGS"
	excused  outcome = "survived, as expected"
	broken   outcome = "ERROR"
)

// bad reports whether somebody has to do something about the outcome.
func (o outcome) bad() bool { return o == survived || o == hung || o == broken }

// result is the outcome of one bug.
type result struct {
	outcome outcome
	why     string // which tests noticed it, or what is wrong
	output  []byte // of the tests
	took    time.Duration
}

func (r *result) print(m mutant, verbose bool) {
	fmt.Printf("%-8s %5.1fs %s: %s [%s]\n", r.outcome, r.took.Seconds(), m.file, m.bug, m.breaks)
	if r.why != "" {
		fmt.Printf("                %s\n", r.why)
	}
	if verbose && r.outcome.bad() {
		fmt.Printf("%s\n", r.output)
	}
}

// single plants one bug that no bundle can hold.
func single(ctx context.Context, root, work string, m mutant) result {
	overlay, err := write(root, work, m)
	if err != nil {
		return result{outcome: broken, why: err.Error()}
	}
	return judge(m, func(tests string) ([]byte, bool) { return test(ctx, root, overlay, m, tests) })
}

// judge runs the tests that should notice a bug and, if they do not, all tests
// of the package.
func judge(m mutant, run func(tests string) (output []byte, passed bool)) (r result) {
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	r = result{outcome: survived}
	for _, tests := range slices.Compact([]string{m.by, ""}) {
		out, passed := run(tests)
		r.output = out
		switch failed := failures(out); {
		case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
			r.outcome, r.why = broken, "it does not compile"
			return r
		case passed && tests != "" && bytes.Contains(out, []byte("no tests to run")):
			r.outcome, r.why = broken, "there is no test "+tests
			return r
		case !passed && m.survives != "":
			r.outcome, r.why = broken, "it is caught, so it needs no reason to survive: "+failed
			return r
		case bytes.Contains(out, []byte("panic: test timed out")):
			r.outcome, r.why = hung, "the tests hang instead of failing, so bound what they wait for: "+running(out)
			return r
		case !passed:
			r.outcome, r.why = caught, failed
			if tests != m.by {
				r.why += " (and not by " + m.by + ")"
			}
			return r
		}
	}
	if m.survives != "" {
		r.outcome, r.why = excused, m.survives
	}
	return r
}

// write writes the file with the bug, and returns the overlay that puts it in
// place of the right one.
func write(root, work string, m mutant) (overlay string, err error) {
	name := filepath.Join(root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("the text to replace is in the file %d times: %q", n, m.old)
	}
	dir, err := os.MkdirTemp(work, "")
	if err != nil {
		return "", err
	}
	planted := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(planted, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{name: planted}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// folder returns the folder of the tests, from the root.
func (m *mutant) folder() string { return cmp.Or(m.in, path.Dir(m.file)) }

// test runs tests of the package that should notice the bug.
func test(ctx context.Context, root, overlay string, m mutant, tests string) (output []byte, passed bool) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-failfast", "-timeout="+limit.String(), "-overlay="+overlay, "-run", pattern(tests), ".")
	cmd.Dir = filepath.Join(root, filepath.FromSlash(m.folder()))
	return finish(cmd)
}

func pattern(tests string) string {
	if tests == "" {
		return "."
	}
	return "^(" + tests + ")$"
}

func finish(cmd *exec.Cmd) ([]byte, bool) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	return out, err == nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^(panic: .*)|^(fatal error: .*)`)

// failures returns the tests that failed, and how.
func failures(output []byte) string {
	var names []string
	for _, found := range failure.FindAllSubmatch(output, -1) {
		name := cmp.Or(string(found[1]), string(found[2]), string(found[3]))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names[:min(len(names), 3)], ", ")
}

// inTime matches the list of tests that a time-out of go test prints.
var inTime = regexp.MustCompile(`(?m)^\t\t(Test\S+) \(`)

// running returns the tests that ran at a time-out.
func running(output []byte) string {
	var names []string
	for _, found := range inTime.FindAllSubmatch(output, 3) {
		names = append(names, string(found[1]))
	}
	return strings.Join(names, ", ")
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// limit is how long the tests may run. A bug that makes them hang is not
// noticed well: a developer waits for the limit and learns nothing.
const limit = 4 * time.Minute

// outcome says what became of a planted bug.
type outcome string

const (
	noticed  outcome = "noticed"
	survived outcome = "SURVIVED"
	hung     outcome = "HANGS"
	broken   outcome = "ERROR"
)

// result is the outcome of one bug.
type result struct {
	outcome outcome
	why     string // which tests noticed it, or what is wrong
	output  []byte // of the tests
	took    time.Duration
}

func (res *result) print(r *row, verbose bool) {
	fmt.Printf("%-8s %5.1fs %s: %s [%s]\n", res.outcome, res.took.Seconds(), r.file, r.bug, r.breaks)
	if res.outcome == noticed {
		fmt.Printf("                %s\n", res.why)
		return
	}
	fmt.Printf("                %s: %s\n", r.at, res.why)
	if verbose {
		fmt.Printf("%s\n", res.output)
	}
}

// passWithout checks that the tests pass without a bug, so that a failure
// means that they notice one.
func passWithout(ctx context.Context, root string, rows []row) error {
	var folders []string
	tests := map[string]string{}
	for _, r := range rows {
		if tests[r.in] == "" {
			folders = append(folders, r.in)
			tests[r.in] = r.tests
		} else {
			tests[r.in] += "|" + r.tests
		}
	}
	for _, in := range folders {
		if out, err := test(ctx, root, in, tests[in]); err != nil {
			return fmt.Errorf("tests in %s fail without a bug: %w\n%s", in, err, out)
		}
	}
	return nil
}

// plant plants one bug and runs the tests that should notice it.
func plant(ctx context.Context, root, work string, r *row) (res result) {
	began := time.Now()
	defer func() { res.took = time.Since(began) }()
	err := r.check(root)
	if err != nil {
		return result{outcome: broken, why: err.Error()}
	}
	overlay, err := r.write(root, work)
	if err != nil {
		return result{outcome: broken, why: err.Error()}
	}
	out, err := test(ctx, root, r.in, r.tests, "-failfast", "-overlay="+overlay)
	return judge(r, out, err == nil)
}

// judge says what the tests' output means.
func judge(r *row, out []byte, passed bool) result {
	res := result{outcome: noticed, why: failures(out), output: out}
	switch {
	case passed:
		res.outcome, res.why = survived, "not noticed by "+r.tests
	case bytes.Contains(out, []byte("panic: test timed out")):
		res.outcome, res.why = hung, "the tests hang instead of failing, so bound what they wait for: "+running(out)
	case res.why == "":
		res.outcome, res.why = broken, "it does not compile, or the tests do not begin"
	}
	return res
}

// write writes the file with the bug, and returns the overlay that puts it in
// place of the right one.
func (r *row) write(root, work string) (overlay string, err error) {
	text, err := r.planted(root)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(work, "")
	if err != nil {
		return "", err
	}
	name := filepath.Join(root, filepath.FromSlash(r.file))
	file := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{name: file}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// test runs tests of one folder.
func test(ctx context.Context, root, in, tests string, flags ...string) (output []byte, err error) {
	flags = append([]string{"test", "-vet=off", "-timeout=" + limit.String(), "-run=^(" + tests + ")$"}, flags...)
	cmd := exec.CommandContext(ctx, "go", flags...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(in))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.CombinedOutput()
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

package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var only = flag.String("only", "none", "plant the bugs of whose rows the first line matches `regexp`, or where they are")

// limit is how long the tests may run. A bug that makes them hang is not
// noticed well: a developer waits for the limit and learns nothing.
const limit = 4 * time.Minute

// TestPlanted plants the bugs that -only names, one at a time. It fails if one
// survives, if one makes the tests hang instead of failing, and if the tests
// fail without any.
func TestPlanted(t *testing.T) {
	if *only == "none" {
		t.Skip("make mutants plants the bugs")
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.DeleteFunc(load(t), func(r row) bool {
		return !slices.ContainsFunc([]string{r.at, r.file, r.in, r.tests, r.breaks, r.bug}, wanted.MatchString)
	})
	if len(rows) == 0 {
		t.Fatalf("no row matches %q, so nothing was planted: give a part of the first line of one, or of where it is", *only)
	}
	tests := map[string][]string{}
	for _, r := range rows {
		tests[r.in] = append(tests[r.in], r.tests)
	}
	for in, names := range tests {
		if out, err := run(t, in, strings.Join(names, "|")); err != nil {
			t.Fatalf("tests in %s fail without a bug: %v\n%s", in, err, out)
		}
	}
	for _, r := range rows {
		t.Run(r.at, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, r.in, r.tests, "-failfast", "-overlay="+r.plant(t))
			by, err := judge(out, err == nil)
			if err != nil {
				t.Fatalf("%s: %s [%s]: %v: %s\n%s", r.file, r.bug, r.breaks, err, r.tests, out)
			}
			t.Logf("%s: %s [%s]: noticed by %s", r.file, r.bug, r.breaks, by)
		})
	}
}

// plant writes the file with the bug, and returns the overlay that puts it in
// place of the right one, which is not changed.
func (r *row) plant(t *testing.T) (overlay string) {
	t.Helper()
	text, err := r.planted()
	dir, name := t.TempDir(), filepath.Join(root, r.file)
	file := filepath.Join(dir, filepath.Base(name))
	overlay = filepath.Join(dir, "overlay.json")
	replaced, _ := json.Marshal(map[string]any{"Replace": map[string]string{name: file}})
	if err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// run runs tests of one folder.
func run(t *testing.T, in, tests string, flags ...string) (output []byte, err error) {
	t.Helper()
	flags = append([]string{"test", "-vet=off", "-timeout=" + limit.String(), "-run=^(" + tests + ")$"}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", flags...)
	cmd.Dir = filepath.Join(root, in)
	return cmd.CombinedOutput()
}

// failure matches a test that failed, and how a program ended; inTime what a
// time-out says of a test that ran.
var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^(panic: .*)|^(fatal error: .*)`)
	inTime  = regexp.MustCompile(`(?m)^\t\t(Test\S+) \(`)
)

// judge returns which tests noticed a bug by what they print, or why none did.
func judge(out []byte, passed bool) (noticed string, err error) {
	names := func(in *regexp.Regexp) string {
		var all []string
		for _, m := range in.FindAllSubmatch(out, 9) {
			all = append(all, string(bytes.Join(m[1:], nil))) // one of the alternatives
		}
		return strings.Join(slices.Compact(all), ", ")
	}
	noticed = names(failure)
	switch {
	case passed:
		err = errors.New("it SURVIVES")
	case bytes.Contains(out, []byte("panic: test timed out")):
		err = errors.New("the tests hang instead of failing, so bound what they wait for: " + names(inTime))
	case noticed == "":
		err = errors.New("it does not compile, or the tests do not begin")
	}
	return noticed, err
}

// TestHangIsNotNoticed: a bug that makes the tests hang is not one that they
// notice, whatever else fails by then; nor is one that does not compile.
func TestHangIsNotNoticed(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"ok\n":                        "it SURVIVES",
		"--- FAIL: TestA (0.01s)\n":   "",
		"panic: nil\n\ngoroutine 1\n": "",
		"--- FAIL: TestA (0.01s)\npanic: test timed out after 4m0s\n\trunning tests:\n\t\tTestB/c (4m0s)\n\ngoroutine 1": ": TestB/c",
		"./a.go:3:4: undefined: x\nFAIL\ta [build failed]\n":                                                             "compile",
	} {
		by, err := judge([]byte(output), output == "ok\n")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || want == "" && by == "" {
			t.Errorf("%q, %v after %q, want %q", by, err, output, want)
		}
	}
}

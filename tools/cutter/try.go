package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// try makes the cuts, and notes which of them the tests notice.
func try(ctx context.Context, root string, cuts []*cut) error {
	work, err := os.MkdirTemp("", "cutter")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	matching, err := regexp.Compile(*packages)
	if err != nil {
		return err
	}
	suites, err := dependents(ctx, root, cuts)
	for _, s := range suites {
		left := slices.DeleteFunc(slices.Clone(cuts), func(c *cut) bool { return c.noticed })
		if !matching.MatchString(s.path) || len(left) == 0 {
			continue
		}
		s.work = work
		began := time.Now()
		met, err := s.measure(ctx, left)
		if err == nil && len(met) > 0 {
			err = s.try(ctx, met)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", s.path, err)
		default:
			survive := slices.DeleteFunc(slices.Clone(met), func(c *cut) bool { return c.noticed })
			fmt.Fprintf(os.Stderr, "%s: %d cuts met, %d survive, %.1f s\n", s.path, len(met), len(survive), time.Since(began).Seconds())
		}
	}
	return err
}

// suite is the tests of a package.
type suite struct {
	dir, path string
	far       int    // how many packages it depends on
	cover     string // the packages with cuts
	work      string // a folder
	limit     time.Duration
	slow      []string // tests that take long
	mu        sync.Mutex
	keen      []string // the tests that noticed cuts before
}

// dependents returns the packages whose tests can reach a cut, nearest first.
func dependents(ctx context.Context, root string, cuts []*cut) (suites []*suite, err error) {
	mods, err := command(ctx, root, "git", "ls-files", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, c := range cuts {
		paths[c.file.path] = true
	}
	cover := strings.Join(slices.Sorted(maps.Keys(paths)), ",")
	for _, mod := range strings.Fields(mods) {
		out, err := command(ctx, filepath.Join(root, filepath.Dir(mod)), "go", "list", "-e", "-test", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .Deps \"\t\"}}", "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // what it requires was not downloaded
		}
		for line := range strings.Lines(out) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			path, isTest := strings.CutSuffix(fields[0], ".test")
			s := &suite{dir: fields[1], path: path, far: len(fields), cover: cover}
			reaches := slices.ContainsFunc(fields, func(dep string) bool {
				dep, _, _ = strings.Cut(dep, " ") // of "path [path.test]"
				return paths[dep]
			})
			if paths[path] {
				s.far = 0
			}
			if isTest && reaches {
				suites = append(suites, s)
			}
		}
	}
	slices.SortFunc(suites, func(s, t *suite) int { return cmp.Or(cmp.Compare(s.far, t.far), cmp.Compare(s.path, t.path)) })
	return suites, nil
}

var (
	total = regexp.MustCompile(`(?m)^ok\s+\S+\s+(\S+s)`)
	timed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\S+)\)`)
)

// measure runs the tests without a cut. It returns the cuts whose line they
// reach.
func (s *suite) measure(ctx context.Context, cuts []*cut) ([]*cut, error) {
	profile := filepath.Join(s.work, "cover.out")
	args := []string{"test", "-count=1", "-v", fmt.Sprintf("-short=%t", *short), "-vet=off", "-coverprofile=" + profile, "-coverpkg=" + s.cover, "."}
	out, err := command(ctx, s.dir, "go", args...)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, strings.Join(failures(out), ", "))
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	var took time.Duration
	if m := total.FindStringSubmatch(out); m != nil {
		took, _ = time.ParseDuration(m[1])
	}
	s.limit = 3*took + 10*time.Second
	for _, m := range timed.FindAllStringSubmatch(out, -1) {
		if t, err := time.ParseDuration(m[2]); err == nil && t > max(took/50, 50*time.Millisecond) {
			s.slow = append(s.slow, m[1])
		}
	}
	blocks := block.FindAllStringSubmatch(string(text), -1)
	return slices.DeleteFunc(cuts, func(c *cut) bool { return !c.isReached(blocks) }), nil
}

var block = regexp.MustCompile(`(?m)^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$`)

// isReached reports whether the line is run in a profile, whose blocks these
// are. What is in no block of statements, as a constant, is taken for reached.
func (c *cut) isReached(blocks [][]string) bool {
	unknown, name := true, c.file.path+"/"+filepath.Base(c.file.name)
	for _, b := range blocks {
		from, _ := strconv.Atoi(b[2])
		to, _ := strconv.Atoi(b[3])
		if b[1] == name && from <= c.line && c.line <= to {
			if b[4] != "0" {
				return true
			}
			unknown = false
		}
	}
	return unknown
}

// try makes cuts, several at a time.
func (s *suite) try(ctx context.Context, cuts []*cut) error {
	files := map[string]string{}
	for _, c := range cuts {
		files[c.file.name] = chosen(c.file, cuts)
		files[filepath.Join(filepath.Dir(c.file.name), "cut_chosen.go")] = "package " + c.file.syntax.Name.Name + "\n\nimport \"os\"\n\nvar cutChosen = os.Getenv(\"CUT\")\n"
	}
	program := filepath.Join(s.work, "all.test")
	if err := s.build(ctx, program, files); err != nil {
		return err
	}
	var workers sync.WaitGroup
	jobs := make(chan *cut)
	for range *parallel {
		workers.Go(func() {
			for c := range jobs {
				began := time.Now()
				by, noticed := s.notice(ctx, program, c)
				c.met, c.noticed = append(c.met, s.path), noticed && ctx.Err() == nil
				if *verbose {
					fmt.Fprintf(os.Stderr, "%s\n\t%v %q, %.1f s\n", c, noticed, by, time.Since(began).Seconds())
				}
			}
		})
	}
	for _, c := range cuts {
		jobs <- c
	}
	close(jobs)
	workers.Wait()
	return nil
}

// build builds the tests with other texts of files.
func (s *suite) build(ctx context.Context, program string, files map[string]string) error {
	dir, err := os.MkdirTemp(s.work, "")
	if err != nil {
		return err
	}
	replaced := map[string]string{}
	for name, text := range files {
		replaced[name] = filepath.Join(dir, fmt.Sprint(len(replaced))+".go")
		if err := os.WriteFile(replaced[name], []byte(text), 0o600); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	_, err = command(ctx, s.dir, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay="+overlay, "-o", program, ".")
	return err
}

// notice makes one cut, and reports whether tests notice it. Those that noticed
// others are the first, and the slow ones the last.
func (s *suite) notice(ctx context.Context, program string, c *cut) (by []string, noticed bool) {
	if !c.isChosen() {
		program = filepath.Join(s.work, c.id+".test")
		defer os.Remove(program)
		if s.build(ctx, program, map[string]string{c.file.name: c.applied()}) != nil {
			return []string{"the compiler"}, true
		}
	}
	s.mu.Lock()
	parts := []string{"-test.run=" + named(s.keen), "-test.skip=" + named(s.slow), "-test.run=" + named(s.slow)}
	if len(s.slow) == 0 {
		parts = []string{"-test.run=."}
	} else if len(s.keen) == 0 {
		parts = parts[1:]
	}
	s.mu.Unlock()
	for _, part := range parts {
		out, passed := s.run(ctx, program, c, part)
		if passed {
			continue
		}
		by = failures(out)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keen = slices.DeleteFunc(s.keen, func(name string) bool { return slices.Contains(by, name) })
		s.keen = append(slices.Clone(by), s.keen...)
		s.keen = s.keen[:min(len(s.keen), 6)]
		return by, true
	}
	return nil, false
}

// run runs tests with a cut. They have a limit of memory, where the shell can
// set one, and no process outlives them.
func (s *suite) run(ctx context.Context, program string, c *cut, part string) (output string, passed bool) {
	ctx, stop := context.WithTimeout(ctx, s.limit+10*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 16000000 2>/dev/null; exec "$@"`, "sh",
		program, "-test.failfast", fmt.Sprintf("-test.short=%t", *short), "-test.timeout="+s.limit.String(), part)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CUT="+c.id)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bounded
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

// bounded keeps the beginning of an output: that of a cut may have no end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	const most = 8 << 20
	b.Buffer.Write(p[:min(len(p), max(most-b.Len(), 0))])
	return len(p), nil
}

var failure = regexp.MustCompile(`(?m)^(?:--- FAIL: |\t\t)(Test\w+) \(`) // with tabs: at a time-out

// failures returns tests that failed.
func failures(output string) (names []string) {
	for _, m := range failure.FindAllStringSubmatch(output, 3) {
		names = append(names, m[1])
	}
	return names
}

func named(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

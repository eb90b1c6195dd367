package locallambda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestStartReportsFailedInit(t *testing.T) {
	for function, want := range map[string][]string{
		"init exit":  {"environment 1 failed to initialise", "exit status 3", "\tfirst\n\tno table name"},
		"init panic": {"exit status 2", "cannot initialise"},
		"init error": {"it reported Extension.Bad: bad table", "posted 202"},
	} {
		t.Run(function, func(t *testing.T) {
			p, err := Start(t.Context(), config(function))
			if err == nil {
				p.Close()
				t.Fatal("it started")
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in the error: %v", part, err)
				}
			}
		})
	}
}

func TestInitHasALimit(t *testing.T) {
	for concurrency, want := range map[int]string{
		1: "within 50ms, nor, in the second try, within the function's timeout of 60ms; it printed nothing",
		2: "within 50ms; it printed nothing",
	} {
		cfg := config("init hang")
		cfg.Concurrency, cfg.Timeout = concurrency, 60*time.Millisecond
		p := expect.Value(newPlatform(cfg))(t)
		defer p.Close()
		p.initLimit = 50 * time.Millisecond
		if err := p.start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestInitLimit(t *testing.T) {
	for _, c := range []struct {
		concurrency   int
		timeout, want time.Duration
	}{
		{1, time.Minute, 10 * time.Second},
		{1, 15 * time.Minute, 10 * time.Second},
		{2, time.Minute, 130 * time.Second},
		{2, 10 * time.Minute, 10 * time.Minute},
		{2, 90 * time.Minute, 15 * time.Minute},
	} {
		cfg := config("init hang")
		cfg.Concurrency, cfg.Timeout = c.concurrency, c.timeout
		p := expect.Value(newPlatform(cfg))(t)
		if p.initLimit != c.want {
			t.Errorf("concurrency %d, timeout %v: %v, want %v", c.concurrency, c.timeout, p.initLimit, c.want)
		}
	}
}

// TestLateInitIsRepeated: an initialisation that outlasts the Init phase is
// repeated, in the time of the first invocation.
func TestLateInitIsRepeated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "late")
	expect.Must(t, os.WriteFile(file, nil, 0o600))
	cfg := config("late")
	cfg.Env = append(cfg.Env, "LATE="+file)
	p := expect.Value(newPlatform(cfg))(t)
	defer p.Close()
	p.initLimit = time.Second
	expect.Must(t, p.start(t.Context()))
	g := newGate(t)
	for _, first := range []bool{true, false} {
		result := background(t, p, Invocation{Payload: g.event()})
		v := g.next(t)
		v.tell(t, "return")
		r := receive(t, result, "result")
		if whole := r.Started.Add(cfg.Timeout).UnixMilli(); r.Outcome != Succeeded || first != (v.DeadlineMS < whole) {
			t.Errorf("first %v: %s, deadline %d, %d with the whole timeout", first, r.Outcome, v.DeadlineMS, whole)
		}
	}
}

func TestStartObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config("init hang")
	cfg.observe = func(e event) {
		if e.kind == eventStarted {
			cancel()
		}
	}
	if _, err := Start(ctx, cfg); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "still initialising") {
		t.Errorf("error %v", err)
	}
}

func TestStartRefusesBadConfigurations(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Command is empty":    func(c *Config) { c.Command = nil },
		"not be negative":     func(c *Config) { c.Timeout = -1 },
		"not of the form K=V": func(c *Config) { c.Env = []string{"nothing"} },
		"no such file":        func(c *Config) { c.Command = []string{"./missing"} },
	} {
		t.Run(want, func(t *testing.T) {
			cfg := config("echo")
			change(&cfg)
			if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	p := expect.Value(newPlatform(Config{Command: []string{"some/bootstrap"}}))(t)
	defer p.Close()
	if c := p.cfg; c.Environments != 1 || c.Concurrency != 1 || c.Timeout != 3*time.Second || c.Function != "bootstrap" {
		t.Errorf("configuration %+v", c)
	}
}

func TestRepeatedInitFailuresAreReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exists")
	cfg := config("flaky")
	cfg.Env = append(cfg.Env, "FLAKY="+file)
	p, seen := start(t, cfg)
	expect.Must(t, os.WriteFile(file, nil, 0o600))
	expect.Must(t, p.Kill(1))
	seen.await(t, string(Crashed))
	for range 2 { // in line while it fails, and refused immediately after that
		_, err := p.Invoke(t.Context(), Invocation{})
		if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "the file exists") {
			t.Fatalf("error %v", err)
		}
	}
	asked := false // the next one may ask for its place
	if r, err := p.Attempt(t.Context(), Invocation{Queued: func() { asked = true }}); err != nil || r.RequestID == "" || !asked {
		t.Errorf("asked %v: %+v, %v", asked, r, err)
	}
	attempts := p.Deliver(t.Context(), nil, Redelivery{Scale: 1e9})
	if len(attempts) != 3 || attempts[0].Outcome != Crashed || !strings.Contains(attempts[2].ErrorMessage, "the file exists") {
		t.Errorf("attempts %+v", attempts)
	}
	if n := len(seen.pids()); n > 10 {
		t.Errorf("%d processes were started", n)
	}
	expect.Must(t, os.Remove(file))
	g := newGate(t)
	eventually(t, "the environment to recover", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.envs[0].failures == 0
	})
	result := background(t, p, Invocation{Payload: g.event()})
	g.next(t).tell(t, "return")
	if r := receive(t, result, "result"); r.Outcome != Succeeded {
		t.Errorf("result %+v", r)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := newLines(func(line string) { got = append(got, line) })
	for _, piece := range []string{"a", "b\r\n\nc", strings.Repeat("x", maxLine+len(l.mark)), "d", string(l.mark[:5]), string(l.mark[5:])} {
		_, _ = l.Write([]byte(piece))
	}
	<-l.marked
	_, _ = l.Write([]byte("e"))
	l.flush()
	l.flush()
	want := []string{"ab", "", "c" + strings.Repeat("x", maxLine-1), "x" + strings.Repeat("x", len(l.mark)) + "de"}
	if len(got) != len(want) {
		t.Fatalf("%d lines", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d has %d bytes", i, len(got[i]))
		}
	}
	for range keptLines {
		_, _ = l.Write([]byte("filler\n"))
	}
	if kept := l.last; len(kept) != keptLines || kept[0] != "filler" {
		t.Errorf("kept %q", kept)
	}
}

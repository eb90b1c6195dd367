package locallambda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestTimeoutKillsAndRestarts(t *testing.T) {
	cfg := config("gated")
	cfg.Timeout = 300 * time.Millisecond
	p, seen := start(t, cfg)
	g := newGate(t)
	result := background(t, p, Invocation{RequestID: "slow", Payload: g.event()})
	slow := g.next(t)
	r := receive(t, result, "result")
	if processState(slow.PID) != "" {
		t.Error("the process outlived its timeout")
	}
	if r.Outcome != TimedOut || r.ErrorType != "Sandbox.Timedout" ||
		r.ErrorMessage != "RequestId: slow Error: Task timed out after 0.30 seconds" {
		t.Errorf("result %+v", r)
	}
	if want := `{"errorMessage":"` + r.ErrorMessage + `","errorType":"Sandbox.Timedout"}`; string(r.Payload) != want {
		t.Errorf("payload %s", r.Payload)
	}
	if took := r.Ended.Sub(r.Started); took < cfg.Timeout {
		t.Errorf("it timed out after %v", took)
	}
	bePatient(p)
	result = background(t, p, Invocation{Payload: g.event()})
	next := g.next(t)
	next.tell(t, "return")
	if r := receive(t, result, "result"); r.Environment != 1 || r.Outcome != Succeeded || next.PID == slow.PID {
		t.Errorf("after the restart, process %d: %+v", next.PID, r)
	}
	if kinds := seen.kinds(); !strings.Contains(kinds, "timed out, stopped, started") {
		t.Errorf("events %s", kinds)
	}
}

// bePatient gives invocations from now on time enough on a slow machine.
func bePatient(p *Platform) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Timeout = patience
}

// livingOn returns a handler that still runs after its invocation has timed
// out, and gives the next ones time enough.
func livingOn(t *testing.T, p *Platform, g *gate) *visit {
	t.Helper()
	result := background(t, p, Invocation{Payload: g.event()})
	late := g.next(t)
	if r := receive(t, result, "result"); r.Outcome != TimedOut {
		t.Errorf("result %+v", r)
	}
	bePatient(p)
	return late
}

// TestManagedInstanceLivesOn shows that a managed process goes on after the
// deadline until its late answer is refused.
func TestManagedInstanceLivesOn(t *testing.T) {
	cfg := config("gated")
	cfg.Concurrency = 2
	cfg.Timeout = 300 * time.Millisecond
	var out printed
	cfg.Logs = out.add
	p, seen := start(t, cfg)
	g := newGate(t)
	late := livingOn(t, p, g)
	if processState(late.PID) == "" {
		t.Error("the process ended at the deadline")
	}
	late.tell(t, "return")
	eventually(t, "the runtime to end", func() bool { return processState(late.PID) == "" })
	eventually(t, "the runtime to say why", func() bool { return strings.Contains(strings.Join(out.all(), "\n"), "status code: 410") })
	seen.await(t, eventStopped) // an invocation before that could go to the process that is gone
	result := background(t, p, Invocation{Payload: g.event()})
	next := g.next(t)
	next.tell(t, "return")
	receive(t, result, "result")
	if next.PID == late.PID {
		t.Errorf("process %d went on; events %s", late.PID, seen.kinds())
	}
}

// TestProcessLivesOn shows that an on-demand process that is not killed at the
// deadline takes the next invocation once its handler has returned.
func TestProcessLivesOn(t *testing.T) {
	cfg := config("gated")
	cfg.LivesOn = true
	cfg.Timeout = 300 * time.Millisecond
	p, _ := start(t, cfg)
	g := newGate(t)
	late := livingOn(t, p, g)
	late.tell(t, "return")
	result := background(t, p, Invocation{Payload: g.event()})
	next := g.next(t)
	next.tell(t, "return")
	receive(t, result, "result")
	if next.PID != late.PID {
		t.Errorf("process %d does not live on", late.PID)
	}
}

func TestKillInMidHandlerAndRetry(t *testing.T) {
	cfg := config("gated")
	cfg.Environments = 2
	p, _ := start(t, cfg)
	g := newGate(t)
	attempts := make(chan []Result, 1)
	go func() { attempts <- p.Deliver(context.Background(), g.event(), Redelivery{Scale: 1000}) }()
	first := g.next(t)
	holder := expect.Value(os.FindProcess(first.PID))(t)
	expect.Must(t, holder.Kill())
	second := g.next(t)
	second.tell(t, "fail")
	third := g.next(t)
	third.tell(t, "return")
	got := receive(t, attempts, "attempts")
	if len(got) != 3 {
		t.Fatalf("attempts %+v", got)
	}
	if r := got[0]; r.Outcome != Crashed || r.ErrorType != "Runtime.ExitError" ||
		r.ErrorMessage != "RequestId: "+first.ID+" Error: Runtime exited with error: signal: killed" {
		t.Errorf("first attempt %+v", r)
	}
	if r := got[1]; r.Outcome != Failed || r.ErrorType != "errorString" || r.ErrorMessage != "no luck" {
		t.Errorf("second attempt %+v", r)
	}
	if got[2].Outcome != Succeeded {
		t.Errorf("third attempt %+v", got[2])
	}
	for i, wait := range []time.Duration{60 * time.Millisecond, 120 * time.Millisecond} {
		if got[i].RequestID != got[i+1].RequestID {
			t.Errorf("attempt %d has request id %s, the one before %s", i+2, got[i+1].RequestID, got[i].RequestID)
		}
		if pause := got[i+1].Started.Sub(got[i].Ended); pause < wait {
			t.Errorf("attempt %d came after %v", i+2, pause)
		}
	}
}

func TestDeliverGivesUp(t *testing.T) {
	p, _ := start(t, config("gated"))
	g := newGate(t)
	attempts := make(chan []Result, 1)
	deliver := func(ctx context.Context, scale float64) {
		attempts <- p.Deliver(ctx, g.event(), Redelivery{Scale: scale})
	}
	go deliver(t.Context(), 1e6)
	for range 3 {
		g.next(t).tell(t, "fail")
	}
	if got := receive(t, attempts, "attempts"); len(got) != 3 || got[2].Outcome != Failed {
		t.Errorf("attempts %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go deliver(ctx, 0)
	g.next(t).tell(t, "fail")
	cancel()
	if got := receive(t, attempts, "attempts"); len(got) > 1 {
		t.Errorf("attempts %+v", got)
	}
}

func TestPanicIsReportedAndRestarts(t *testing.T) {
	p, seen := start(t, config("gated"))
	g := newGate(t)
	result := background(t, p, Invocation{Payload: g.event()})
	v := g.next(t)
	v.tell(t, "panic")
	r := receive(t, result, "result")
	if r.Outcome != Failed || r.ErrorType != "string" || r.ErrorMessage != "no way" {
		t.Errorf("result %+v", r)
	}
	if !strings.Contains(string(r.StackTrace), "gated") || !strings.Contains(string(r.Payload), `"stackTrace"`) {
		t.Errorf("stack trace %s", r.StackTrace)
	}
	if crash := seen.await(t, string(Crashed)); crash.requestID != "" || crash.detail != "exit status 1" {
		t.Errorf("crash %+v", crash)
	}
	result = background(t, p, Invocation{Payload: g.event()})
	next := g.next(t)
	next.tell(t, "return")
	receive(t, result, "result")
	if next.PID == v.PID {
		t.Error("the process was not replaced")
	}
}

func TestExitInMidHandler(t *testing.T) {
	p, _ := start(t, config("gated"))
	g := newGate(t)
	result := background(t, p, Invocation{RequestID: "gone", Payload: g.event()})
	g.next(t).tell(t, "exit")
	r := receive(t, result, "result")
	if r.Outcome != Crashed || r.ErrorMessage != "RequestId: gone Error: Runtime exited without providing a reason" {
		t.Errorf("result %+v", r)
	}
}

func TestKill(t *testing.T) {
	cfg := config("gated")
	cfg.Environments = 2
	p, seen := start(t, cfg)
	g := newGate(t)
	result := background(t, p, Invocation{Payload: g.event()})
	v := g.next(t)
	busy := seen.await(t, eventInvoked).environment
	expect.Must(t, p.Kill(busy))
	if r := receive(t, result, "result"); r.Outcome != Crashed || r.Environment != busy {
		t.Errorf("result %+v", r)
	}
	// A frozen environment dies as well, and what comes next finds a new process.
	expect.Must(t, p.Kill(3-busy))
	old := seen.pids()[:2]
	result = background(t, p, Invocation{Payload: g.event()})
	next := g.next(t)
	next.tell(t, "return")
	if r := receive(t, result, "result"); r.Outcome != Succeeded || slices.Contains(old, next.PID) || !slices.Contains(old, v.PID) {
		t.Errorf("process %d after %v: %+v", next.PID, old, r)
	}
	for _, env := range []int{-1, 0, 3} {
		if err := p.Kill(env); err == nil || !strings.Contains(err.Error(), "1 to 2") {
			t.Errorf("environment %d: error %v", env, err)
		}
	}
}

func TestEveryCallerGetsAResultWhileEnvironmentsAreKilled(t *testing.T) {
	cfg := config("echo")
	cfg.Environments = 3
	p, seen := start(t, cfg)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 20 {
				r, err := p.Invoke(context.Background(), Invocation{Payload: []byte(`{"n":1}`)})
				if err != nil || r.Outcome != Crashed && string(r.Payload) != `{"n":1}` {
					t.Errorf("result %+v, %v", r, err)
				}
			}
		})
	}
	served := make(chan struct{})
	go func() {
		callers.Wait()
		close(served)
	}()
	for invoked := 0; ; {
		select {
		case <-served:
			return
		case e := <-seen.added:
			if e.kind == eventInvoked {
				invoked++
			}
			if e.kind == eventInvoked && invoked%5 == 0 {
				_ = p.Kill(e.environment) // fails when the environment is being restarted already
			}
		}
	}
}

func TestCloseEndsInvocationsAndStubbornProcesses(t *testing.T) {
	needProc(t)
	cfg := config("stubborn")
	p, seen := start(t, cfg)
	g := newGate(t)
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := p.Invoke(context.Background(), Invocation{Payload: g.event()})
			errs <- err
		}()
	}
	v := g.next(t)
	eventually(t, "the second invocation to be in line", func() bool { return queued(p) == 1 })
	p.Close()
	if processState(v.PID) != "" {
		t.Error("the process is left")
	}
	for range 2 {
		if err := receive(t, errs, "error"); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
	if kinds := seen.kinds(); !strings.HasSuffix(kinds, ", stopped") {
		t.Errorf("events %s", kinds)
	}
	if _, err := p.Invoke(t.Context(), Invocation{}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
	if err := p.Kill(1); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
	if got := p.Deliver(t.Context(), nil, Redelivery{}); len(got) != 0 {
		t.Errorf("attempts %+v", got)
	}
}

func TestKillDuringInitIsNoFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holds")
	expect.Must(t, os.WriteFile(file, nil, 0o600))
	cfg := config("held")
	cfg.Env = append(cfg.Env, "HELD="+file)
	seen := newRecorder()
	cfg.observe = seen.add
	p := expect.Value(newPlatform(cfg))(t)
	defer p.Close()
	started := make(chan error, 1)
	go func() { started <- p.start(context.Background()) }()
	for range maxInitFailures + 1 {
		seen.await(t, eventStarted)
		expect.OK(t, p.Kill(1))
	}
	expect.Must(t, os.Remove(file))
	// The process of this moment may have seen the file.
	seen.await(t, eventStarted)
	expect.OK(t, p.Kill(1))
	expect.OK(t, receive(t, started, "start"))
}

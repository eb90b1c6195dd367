package locallambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestOverlappingInvocationsRunSideBySide(t *testing.T) {
	cfg := config("gated")
	cfg.Environments = 4
	p, _ := start(t, cfg)
	g := newGate(t)
	var results []<-chan Result
	for range 4 {
		results = append(results, background(t, p, Invocation{Payload: g.event()}))
	}
	processes := map[int]bool{}
	var visits []*visit
	for range 4 {
		v := g.next(t)
		processes[v.PID] = true
		visits = append(visits, v)
	}
	if len(processes) != 4 {
		t.Errorf("4 invocations at the same time were in %d processes", len(processes))
	}
	for _, v := range visits {
		v.tell(t, "return")
	}
	environments := map[int]bool{}
	for _, c := range results {
		environments[receive(t, c, "result").Environment] = true
	}
	if len(environments) != 4 {
		t.Errorf("results name the environments %v", environments)
	}
}

func TestManyCallersLoseNothing(t *testing.T) {
	cfg := config("echo")
	cfg.Environments = 4
	p, _ := start(t, cfg)
	var callers sync.WaitGroup
	for n := range 64 {
		callers.Go(func() {
			for i := range 3 {
				want := fmt.Sprintf(`{"n":%d}`, n*10+i)
				r, err := p.Invoke(context.Background(), Invocation{Payload: []byte(want)})
				if err != nil || string(r.Payload) != want {
					t.Errorf("sent %s, got %s, %v", want, r.Payload, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestWaitingInvocationsAreServedInOrder(t *testing.T) {
	p, _ := start(t, config("gated"))
	g := newGate(t)
	first := background(t, p, Invocation{RequestID: "first", Payload: g.event()})
	holder := g.next(t)
	var rest []<-chan Result
	for n := range 5 {
		rest = append(rest, background(t, p, Invocation{RequestID: fmt.Sprint(n), Payload: g.event()}))
		eventually(t, "the invocation to be in line", func() bool { return queued(p) == n+1 })
	}
	holder.tell(t, "return")
	receive(t, first, "result")
	for n := range rest {
		v := g.next(t)
		if v.ID != fmt.Sprint(n) {
			t.Errorf("invocation %s came in place %d", v.ID, n)
		}
		v.tell(t, "return")
	}
	for _, c := range rest {
		receive(t, c, "result")
	}
}

func queued(p *Platform) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

func TestResultOfSuccess(t *testing.T) {
	p, _ := start(t, config("echo"))
	before := time.Now()
	r := invoke(t, p, Invocation{Payload: []byte(`{"n":9007199254740993}`)})
	if string(r.Payload) != `{"n":9007199254740993}` {
		t.Errorf("2^53+1 came back as %s", r.Payload)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(r.RequestID) {
		t.Errorf("request id %q", r.RequestID)
	}
	if r.Outcome != Succeeded || r.ErrorType != "" || r.ContentType != "application/json" {
		t.Errorf("result %+v", r)
	}
	if r.Started.Before(before) || r.Ended.Before(r.Started) {
		t.Errorf("it started %v and ended %v", r.Started, r.Ended)
	}
	if r := invoke(t, p, Invocation{}); string(r.Payload) != `{"n":0}` {
		t.Errorf("no payload gave %s", r.Payload)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	needProc(t)
	p, seen := start(t, config("gated"))
	g := newGate(t)
	pid := seen.await(t, eventFrozen).pid
	stopped := func() bool { return processState(pid) == "T" }
	eventually(t, "the idle process to be stopped", stopped)
	result := background(t, p, Invocation{Payload: g.event()})
	v := g.next(t)
	if v.PID != pid || stopped() {
		t.Errorf("process %d is in state %q during an invocation of %d", pid, processState(pid), v.PID)
	}
	v.tell(t, "return")
	receive(t, result, "result")
	eventually(t, "the process to be stopped again", stopped)
	seen.await(t, eventFrozen)
	if want := "started, frozen, thawed, invoked, succeeded, frozen"; seen.kinds() != want {
		t.Errorf("events %s, want %s", seen.kinds(), want)
	}
}

func TestConcurrencyInOneProcess(t *testing.T) {
	cfg := config("gated")
	cfg.Concurrency = 8
	p, seen := start(t, cfg)
	g := newGate(t)
	var results []<-chan Result
	for n := range 9 {
		in := Invocation{Payload: g.event()}
		if n == 8 {
			in.RequestID = "the ninth"
			eventually(t, "8 handlers at the gate", func() bool { return len(g.visits) == 8 })
		}
		results = append(results, background(t, p, in))
	}
	eventually(t, "the ninth invocation to be in line", func() bool { return queued(p) == 1 })
	processes := map[int]bool{}
	for range 8 {
		v := g.next(t)
		processes[v.PID] = true
		v.tell(t, "return")
	}
	if v := g.next(t); v.ID != "the ninth" {
		t.Errorf("the ninth handler has request %s", v.ID)
	} else {
		v.tell(t, "return")
	}
	for _, c := range results {
		if r := receive(t, c, "result"); r.Outcome != Succeeded {
			t.Errorf("result %+v", r)
		}
	}
	if len(processes) != 1 || strings.Contains(seen.kinds(), eventFrozen) {
		t.Errorf("it took %d processes; events %s", len(processes), seen.kinds())
	}
}

func TestDuplicatesWithOneRequestIDStayApart(t *testing.T) {
	cfg := config("gated")
	cfg.Concurrency = 2
	p, _ := start(t, cfg)
	g := newGate(t)
	one := background(t, p, Invocation{RequestID: "same", Payload: g.event()})
	first := g.next(t)
	two := background(t, p, Invocation{RequestID: "same", Payload: g.event()})
	eventually(t, "the duplicate to be in line", func() bool { return queued(p) == 1 })
	first.tell(t, "return")
	receive(t, one, "result")
	g.next(t).tell(t, "return")
	receive(t, two, "result")
}

func TestCancelledWait(t *testing.T) {
	p, seen := start(t, config("gated"))
	g := newGate(t)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	call := func() {
		_, err := p.Invoke(ctx, Invocation{Payload: g.event()})
		errs <- err
	}
	go call()
	v := g.next(t)
	go call()
	eventually(t, "the second invocation to be in line", func() bool { return queued(p) == 1 })
	cancel()
	for range 2 {
		if err := receive(t, errs, "error"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	if queued(p) != 0 {
		t.Error("the cancelled invocation is still in line")
	}
	v.tell(t, "return")
	seen.await(t, string(Succeeded))
}

func TestVariables(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-central-1", "AWS_LAMBDA_MAX_CONCURRENCY": "9",
		"INHERITED": "yes",
	} {
		t.Setenv(name, value)
	}
	cfg := config("variables")
	cfg.Env = append(cfg.Env, "MINE=1", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512", "AWS_LAMBDA_RUNTIME_API=wrong")
	p, _ := start(t, cfg)
	got := variablesOf(t, p)
	name := filepath.Base(os.Args[0])
	for _, want := range []string{
		"INHERITED=yes", "MINE=1", "argument",
		"AWS_LAMBDA_FUNCTION_NAME=" + name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + name, "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "AWS_REGION=eu-central-1",
		"LAMBDA_TASK_ROOT=" + filepath.Dir(os.Args[0]), "_HANDLER=" + name, "TZ=:UTC",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	all := strings.Join(got, "\n")
	if strings.Contains(all, "AWS_LAMBDA_MAX_CONCURRENCY") {
		t.Error("a classic environment has AWS_LAMBDA_MAX_CONCURRENCY")
	}
	if !regexp.MustCompile(`(?m)^AWS_LAMBDA_LOG_STREAM_NAME=\d{4}/\d\d/\d\d/\[\$LATEST\][0-9a-f]{32}$`).MatchString(all) {
		t.Error("no log stream name")
	}
}

// TestTraceID: the function gets the tracing header of the result, another one
// in each invocation.
func TestTraceID(t *testing.T) {
	p, _ := start(t, config("variables"))
	seen := map[string]bool{}
	for range 2 {
		r := invoke(t, p, Invocation{})
		if seen[r.TraceID] || r.TraceID == "" || !strings.Contains(string(r.Payload), `"_X_AMZN_TRACE_ID=`+r.TraceID+`"`) {
			t.Errorf("the trace id %q, and the variables %s", r.TraceID, r.Payload)
		}
		seen[r.TraceID] = true
	}
}

func TestVariablesOfManagedInstances(t *testing.T) {
	cfg := config("variables")
	cfg.Concurrency = 3
	cfg.Function = "named"
	cfg.Env = append(cfg.Env, "AWS_REGION=eu-west-3")
	p, _ := start(t, cfg)
	got := variablesOf(t, p)
	for _, want := range []string{
		"AWS_LAMBDA_MAX_CONCURRENCY=3", "AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances",
		"AWS_LAMBDA_FUNCTION_NAME=named", "AWS_REGION=eu-west-3",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

func variablesOf(t *testing.T, p *Platform) []string {
	t.Helper()
	var got []string
	expect.Must(t, json.Unmarshal(invoke(t, p, Invocation{}).Payload, &got))
	return got
}

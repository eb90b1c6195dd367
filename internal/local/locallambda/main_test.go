package locallambda

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// The test binary is its own bootstrap: with this variable set it runs the
// function of that name instead of the tests.
const functionVariable = "LOCALLAMBDA_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if name := os.Getenv(functionVariable); name != "" {
		functions[name]()
		os.Exit(0)
	}
	if platformUnsupported != nil {
		fmt.Println(platformUnsupported)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// patience bounds every wait in these tests; none should come near it.
const patience = 20 * time.Second

func config(function string) Config {
	return Config{
		Command: []string{os.Args[0], "argument"},
		// Race-enabled programs otherwise pause for a second when they exit.
		Env:     []string{functionVariable + "=" + function, "GORACE=atexit_sleep_ms=0"},
		Timeout: patience,
		Logs:    func(int, string) {},
	}
}

// start starts a platform and checks, when the test ends, that closing it
// leaves nothing behind.
func start(t *testing.T, cfg Config) (*Platform, *recorder) {
	t.Helper()
	before := runtime.NumGoroutine()
	seen := newRecorder()
	cfg.observe = seen.add
	p := expect.Value(Start(t.Context(), cfg))(t)
	t.Cleanup(func() {
		p.Close()
		for _, pid := range seen.pids() {
			if processState(pid) != "" {
				t.Errorf("process %d is left after Close", pid)
			}
		}
		eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
	return p, seen
}

func invoke(t *testing.T, p *Platform, in Invocation) Result {
	t.Helper()
	result := expect.Value(p.Invoke(t.Context(), in))(t)
	return result
}

// background invokes in a goroutine.
func background(t *testing.T, p *Platform, in Invocation) <-chan Result {
	results := make(chan Result, 1)
	go func() {
		result, err := p.Invoke(context.Background(), in)
		if err != nil {
			t.Error(err)
		}
		results <- result
	}()
	return results
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(2 * time.Millisecond); !reached(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// processState returns the state letter of a process, or "" when there is none
// or the machine has no /proc.
func processState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

func needProc(t *testing.T) {
	if processState(os.Getpid()) == "" {
		t.Skip("there is no /proc here")
	}
}

// recorder keeps the events a platform reports.
type recorder struct {
	mu     sync.Mutex
	events []event
	added  chan event
}

func newRecorder() *recorder { return &recorder{added: make(chan event, 10000)} }

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.added <- e
}

// await returns the next event of a kind, passing over others.
func (r *recorder) await(t *testing.T, kind string) event {
	t.Helper()
	for {
		if e := receive(t, r.added, kind+" event"); e.kind == kind {
			return e
		}
	}
}

func (r *recorder) all() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) pids() []int {
	var pids []int
	for _, e := range r.all() {
		if e.kind == eventStarted {
			pids = append(pids, e.pid)
		}
	}
	return pids
}

func (r *recorder) kinds() string {
	var kinds []string
	for _, e := range r.all() {
		kinds = append(kinds, e.kind)
	}
	return strings.Join(kinds, ", ")
}

// gate is where handlers report and wait to be told what to do.
type gate struct {
	listener net.Listener
	visits   chan *visit
}

// visit is one handler at the gate.
type visit struct {
	conn net.Conn
	greeting
}

type greeting struct {
	ID         string
	PID        int
	DeadlineMS int64
}

func newGate(t *testing.T) *gate {
	listener := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	g := &gate{listener: listener, visits: make(chan *visit, 1000)}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			v := &visit{conn: conn}
			expect.OK(t, json.NewDecoder(bufio.NewReader(conn)).Decode(&v.greeting))
			g.visits <- v
		}
	})
	t.Cleanup(func() {
		listener.Close()
		open.Wait()
		close(g.visits)
		for v := range g.visits {
			v.conn.Close()
		}
	})
	return g
}

// event is the payload that sends a handler to the gate.
func (g *gate) event() []byte {
	return fmt.Appendf(nil, `{"gate":%q}`, g.listener.Addr())
}

func (g *gate) next(t *testing.T) *visit {
	t.Helper()
	v := receive(t, g.visits, "handler at the gate")
	t.Cleanup(func() { v.conn.Close() })
	return v
}

func (v *visit) tell(t *testing.T, order string) {
	t.Helper()
	expect.Value(fmt.Fprintln(v.conn, order))(t)
}

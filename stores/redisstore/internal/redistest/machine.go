package redistest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
)

// Machine is a server in this process, without a connection. So it works under
// testing/synctest, whose clock is then its own.
type Machine struct {
	Mini *miniredis.Miniredis
	// Turns, if not nil, says when a pause or a restart ends, and in which order
	// the requests of a pause go on.
	Turns *schedule.Scheduler
	// ID is the machine among those that share Turns.
	ID uint64

	engine *engine

	mu     sync.Mutex
	paused chan struct{} // closed when it goes on; nil: it runs
	asked  int64         // how many requests came
	down   bool
}

// NewMachine returns a machine that runs.
func NewMachine(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{Mini: miniredis.NewMiniRedis()}
	m.Mini.ClockTTL(true)
	conn, err := m.Mini.Dial() // starts the server without a listener
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	t.Cleanup(m.Mini.Close)
	m.engine = newEngine(m.Mini)
	return m
}

// Pause lets requests wait for that long.
func (m *Machine) Pause(d time.Duration) {
	goOn := make(chan struct{})
	m.mu.Lock()
	m.paused = goOn
	m.mu.Unlock()
	m.sleep(d)
	m.mu.Lock()
	m.paused = nil
	m.mu.Unlock()
	close(goOn)
}

// Restart refuses connections for that long. The server comes back with what
// it has then, or in another state.
func (m *Machine) Restart(d time.Duration, then State) {
	m.SetDown(true)
	m.sleep(d)
	if then != nil {
		then.GoBack(m.Mini)
	}
	m.SetDown(false)
}

func (m *Machine) sleep(d time.Duration) {
	at := schedule.Point{Process: m.ID, What: "goes on", Due: int64(d), Since: m.Turns.Now()}
	time.Sleep(d)
	m.Turns.Wait(at)
}

// SetDown lets the server refuse connections, or answer again.
func (m *Machine) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// IsDown reports whether it refuses connections.
func (m *Machine) IsDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

// wait waits while the server is paused, and reports whether ctx ended first.
func (m *Machine) wait(ctx context.Context) bool {
	m.mu.Lock()
	m.asked++
	paused, at := m.paused, schedule.Point{Process: m.ID, What: "after the pause", Due: m.asked, Since: m.Turns.Now()}
	m.mu.Unlock()
	if paused == nil {
		return false
	}
	select {
	case <-paused:
		m.Turns.Wait(at)
		return false
	case <-ctx.Done():
		return true
	}
}

// apply runs a script as soon as the server runs.
func (m *Machine) apply(command []string) (any, error) {
	m.wait(context.Background())
	if m.IsDown() {
		return nil, io.EOF
	}
	return m.engine.run(command)
}

// Link is a client of a machine. Each request takes a few milliseconds and
// meets the fault of a plan.
type Link struct {
	redis.Scripter
	to     *Machine
	addr   string
	plan   fault.Plan
	late   fault.Late
	mu     sync.Mutex
	random *rand.Rand
}

// NewLink returns a client of a machine. What it draws by chance follows from
// the seed and the client.
func NewLink(to *Machine, addr string, plan fault.Plan, late fault.Late, seed, client uint64) *Link {
	return &Link{to: to, addr: addr, plan: plan, late: late, random: rand.New(rand.NewPCG(seed, client))}
}

// Options tell the store what it may expect of the client.
func (l *Link) Options() *redis.Options {
	return &redis.Options{Addr: l.addr, ContextTimeoutEnabled: true, MaxRetries: -1}
}

// Eval implements [redis.Scripter].
func (l *Link) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return l.send(ctx, "EVAL", script, keys, args)
}

// EvalSha implements [redis.Scripter].
func (l *Link) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return l.send(ctx, "EVALSHA", sha, keys, args)
}

// travel is how long a request or an answer is under way.
func (l *Link) travel() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.random.Int64N(int64(5 * time.Millisecond)))
}

func (l *Link) send(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	command := append([]string{name, script, strconv.Itoa(len(keys))}, keys...)
	for _, a := range args {
		command = append(command, fmt.Sprint(a))
	}
	v, err := l.exchange(ctx, name, command)
	cmd.SetVal(v)
	cmd.SetErr(err)
	return cmd
}

// exchange sends a command and returns the answer.
func (l *Link) exchange(ctx context.Context, op string, command []string) (any, error) {
	e := fault.Exchange[any]{
		Apply: func(ctx context.Context, late bool) (any, error) {
			if late {
				return l.to.apply(command)
			}
			before := l.travel()
			if gaveUp := Sleep(ctx, before); gaveUp != nil || l.to.wait(ctx) {
				l.late.After(before, func() { _, _ = l.to.apply(command) }) // it is on its way
				return nil, ctx.Err()
			}
			v, err := l.to.apply(command)
			if gaveUp := Sleep(ctx, l.travel()); gaveUp != nil {
				return nil, gaveUp
			}
			return v, err
		},
		Spoil: func(f fault.Fault, _ any) (any, error) {
			if text := fault.RedisAnswer(f, op); text != "" {
				return nil, ServerError(text)
			}
			return nil, io.EOF
		},
	}
	return e.Meet(ctx, l.plan.Next(op), l.late)
}

// Sleep returns early, with an error, if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Linked returns a client of a server for one client of a history, or for one
// of its requests' parts.
func Linked(h *simulation.History, m *Machine, client, part uint64) *Link {
	plan := h.Plan(simulation.Watcher)
	if client != simulation.Watcher {
		plan = h.Plan(client + part<<32)
	}
	return NewLink(m, fmt.Sprint("node:", part), plan, h.Late, h.Seed, client+part<<32)
}

// State is what a server has stored: the fields of its keys.
type State map[string]map[string]string

// StateOf returns what a miniredis has stored.
func StateOf(m *miniredis.Miniredis) State {
	s := State{}
	for _, key := range m.Keys() {
		s[key] = map[string]string{}
		fields, _ := m.HKeys(key)
		for _, field := range fields {
			s[key][field] = m.HGet(key, field)
		}
	}
	return s
}

// GoBack makes the server return to an earlier state, as after a failover to a
// replica that was behind.
func (s State) GoBack(m *miniredis.Miniredis) {
	for _, key := range m.Keys() {
		m.Del(key)
	}
	for key, fields := range s {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			m.HSet(key, field, fields[field])
		}
	}
}

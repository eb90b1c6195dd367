package redisstore_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

// machine is a server in this process, without a connection. So it works under
// testing/synctest, whose clock is then its own.
type machine struct {
	mini   *miniredis.Miniredis
	engine *engine

	mu     sync.Mutex
	paused chan struct{} // closed when it goes on; nil: it runs
	down   bool
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{mini: miniredis.NewMiniRedis()}
	m.mini.ClockTTL(true)
	conn, err := m.mini.Dial() // starts the server without a listener
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	t.Cleanup(m.mini.Close)
	m.engine = newEngine(m.mini)
	return m
}

// pause lets requests wait for that long.
func (m *machine) pause(d time.Duration) {
	goOn := make(chan struct{})
	m.mu.Lock()
	m.paused = goOn
	m.mu.Unlock()
	time.Sleep(d)
	m.mu.Lock()
	m.paused = nil
	m.mu.Unlock()
	close(goOn)
}

// restart refuses connections for that long. The server comes back with what
// it has then, or in another state.
func (m *machine) restart(d time.Duration, then state) {
	m.setDown(true)
	time.Sleep(d)
	if then != nil {
		then.goBack(m.mini)
	}
	m.setDown(false)
}

func (m *machine) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *machine) isDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

// wait waits while the server is paused, and reports whether ctx ended first.
func (m *machine) wait(ctx context.Context) bool {
	m.mu.Lock()
	paused := m.paused
	m.mu.Unlock()
	if paused == nil {
		return false
	}
	select {
	case <-paused:
		return false
	case <-ctx.Done():
		return true
	}
}

// apply runs a script as soon as the server runs.
func (m *machine) apply(command []string) (any, error) {
	m.wait(context.Background())
	if m.isDown() {
		return nil, io.EOF
	}
	return m.engine.run(command)
}

// link is a client of a machine. Each request takes a few milliseconds and
// meets the fault of a plan.
type link struct {
	redis.Scripter
	to     *machine
	addr   string
	plan   fault.Plan
	late   fault.Late
	mu     sync.Mutex
	random *rand.Rand
}

func newLink(to *machine, addr string, plan fault.Plan, late fault.Late, seed, client uint64) *link {
	return &link{to: to, addr: addr, plan: plan, late: late, random: rand.New(rand.NewPCG(seed, client))}
}

// Options tell the store what it may expect of the client.
func (l *link) Options() *redis.Options {
	return &redis.Options{Addr: l.addr, ContextTimeoutEnabled: true, MaxRetries: -1}
}

func (l *link) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return l.send(ctx, "EVAL", script, keys, args)
}

func (l *link) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return l.send(ctx, "EVALSHA", sha, keys, args)
}

// travel is how long a request or an answer is under way.
func (l *link) travel() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.random.Int64N(int64(5 * time.Millisecond)))
}

func (l *link) send(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
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
func (l *link) exchange(ctx context.Context, op string, command []string) (any, error) {
	e := fault.Exchange[any]{
		Apply: func(ctx context.Context, late bool) (any, error) {
			if late {
				return l.to.apply(command)
			}
			before := l.travel()
			if gaveUp := sleep(ctx, before); gaveUp != nil || l.to.wait(ctx) {
				l.late.After(before, func() { _, _ = l.to.apply(command) }) // it is on its way
				return nil, ctx.Err()
			}
			v, err := l.to.apply(command)
			if gaveUp := sleep(ctx, l.travel()); gaveUp != nil {
				return nil, gaveUp
			}
			return v, err
		},
		Spoil: func(f fault.Fault, _ any) (any, error) {
			if text := fault.RedisAnswer(f, op); text != "" {
				return nil, serverError(text)
			}
			return nil, io.EOF
		},
	}
	return e.Meet(ctx, l.plan.Next(op), l.late)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

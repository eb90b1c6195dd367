package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Clock moves the time that scripts see: it sends each of them as text in which
// TIME is ahead of the server's by an offset.
type Clock struct {
	redis.Scripter
	Ahead *atomic.Int64 // nanoseconds
}

// Options tell the store that the client does not repeat requests.
func (Clock) Options() *redis.Options {
	return &redis.Options{Addr: "server", ContextTimeoutEnabled: true, MaxRetries: -1}
}

const timeCall = "redis.call('TIME')"

// Eval implements [redis.Scripter].
func (c Clock) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	d := time.Duration(c.Ahead.Load())
	moved := fmt.Sprintf("(function() local t = %s; local us = tonumber(t[2]) + %d; return {tostring(tonumber(t[1]) + %d + math.floor(us / 1000000)), tostring(us %% 1000000)} end)()",
		timeCall, (d % time.Second).Microseconds(), int64(d/time.Second))
	if !strings.Contains(script, timeCall) {
		return ErrorCmd(ctx, errors.New("the script does not call TIME"))
	}
	return c.Scripter.Eval(ctx, strings.Replace(script, timeCall, moved, 1), keys, args...)
}

// EvalSha implements [redis.Scripter].
func (c Clock) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	return ErrorCmd(ctx, ServerError("NOSCRIPT No matching script."))
}

// ServerError is an error with which a server answers.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (ServerError) RedisError() {}

// ErrorCmd returns a request that ended with that error.
func ErrorCmd(ctx context.Context, err error) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(err)
	return cmd
}

// NewClient returns a client with the settings of the package documentation. It
// waits for a connection and an answer for as long as the machine is busy.
func NewClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, DialerRetryTimeout: time.Millisecond,
		PoolTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Must returns the store that a constructor has returned.
func Must[S driver.Store](s S, err error) S {
	if err != nil {
		panic(err)
	}
	return s
}

// NewMini returns a miniredis that listens.
func NewMini(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Server is a process of redis-server.
type Server struct {
	t    testing.TB
	Addr string // of its socket
	args []string
	cmd  *exec.Cmd
}

// NewServer starts a redis-server without persistence unless the arguments say
// so. It listens on a socket of its own, because a port that is free now may be
// taken when it starts. It skips the test where there is no redis-server.
func NewServer(t testing.TB, args ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed:", err)
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{t: t, Addr: filepath.Join(dir, "socket")}
	s.args = append([]string{program, "--unixsocket", s.Addr, "--port", "0", "--save", "", "--appendonly", "no", "--dir", dir, "--loglevel", "warning", "--enable-debug-command", "yes"}, args...)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts the process again, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	// The server does not tell when it listens.
	c := NewClient(s.t, s.Addr)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := c.Ping(context.Background()).Err()
		if err == nil || strings.Contains(err.Error(), "NOAUTH") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("redis-server does not answer:", err)
		}
	}
}

// Stop kills the process and waits for its end.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Signal sends the process a signal.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Scan lets the store list keys.
func (c Clock) Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd {
	return c.Scripter.(*redis.Client).Scan(ctx, cursor, match, count)
}

// impatient waits only a few milliseconds for a server that is paused.
type impatient struct{ Clock }

// Eval implements [redis.Scripter].
func (c impatient) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	return c.Clock.Eval(ctx, script, keys, args...)
}

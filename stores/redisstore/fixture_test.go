package redisstore_test

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

// clock moves the time that scripts see: it sends each of them as text in which
// TIME is ahead of the server's by an offset.
type clock struct {
	redis.Scripter
	ahead *atomic.Int64 // nanoseconds
}

const timeCall = "redis.call('TIME')"

func (c clock) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	d := time.Duration(c.ahead.Load())
	moved := fmt.Sprintf("(function() local t = %s; local us = tonumber(t[2]) + %d; return {tostring(tonumber(t[1]) + %d + math.floor(us / 1000000)), tostring(us %% 1000000)} end)()",
		timeCall, (d % time.Second).Microseconds(), int64(d/time.Second))
	if !strings.Contains(script, timeCall) {
		return errorCmd(ctx, errors.New("the script does not call TIME"))
	}
	return c.Scripter.Eval(ctx, strings.Replace(script, timeCall, moved, 1), keys, args...)
}

func (c clock) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	return errorCmd(ctx, serverError("NOSCRIPT No matching script."))
}

// serverError is an error with which a server answers.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func errorCmd(ctx context.Context, err error) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(err)
	return cmd
}

// newClient returns a client with the settings of the package documentation.
func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, DialerRetryTimeout: time.Millisecond})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// must returns the store that a constructor has returned.
func must[S driver.Store](s S, err error) S {
	if err != nil {
		panic(err)
	}
	return s
}

func newMini(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// server is a process of redis-server.
type server struct {
	t    testing.TB
	addr string // of its socket
	args []string
	cmd  *exec.Cmd
}

// newServer starts a redis-server without persistence unless the arguments say
// so. It listens on a socket of its own, because a port that is free now may be
// taken when it starts. It skips the test where there is no redis-server.
func newServer(t testing.TB, args ...string) *server {
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
	s := &server{t: t, addr: filepath.Join(dir, "socket")}
	s.args = append([]string{program, "--unixsocket", s.addr, "--port", "0", "--save", "", "--appendonly", "no", "--dir", dir, "--loglevel", "warning", "--enable-debug-command", "yes"}, args...)
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	// The server does not tell when it listens.
	c := newClient(s.t, s.addr)
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

// stop kills the process and waits for its end.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Scan lets the store list keys.
func (c clock) Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd {
	return c.Scripter.(*redis.Client).Scan(ctx, cursor, match, count)
}

// impatient waits only a few milliseconds for a server that is paused.
type impatient struct{ redis.Scripter }

func (c impatient) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	return c.Scripter.Eval(ctx, script, keys, args...)
}

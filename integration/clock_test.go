package integration_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// movedClock makes the clock of a server appear to be ahead. An object keeps
// the time at which it was written.
type movedClock struct {
	mu      sync.Mutex
	ahead   time.Duration
	written map[string]time.Duration // path and ETag of an object: how far ahead the clock was
}

func newMovedClock() *movedClock { return &movedClock{written: map[string]time.Duration{}} }

func (c *movedClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// move changes the times in the answer of a server of objects.
func (c *movedClock) move(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := resp.Request.URL.Path + " " + resp.Header.Get("ETag")
	if resp.Request.Method == http.MethodPut && resp.StatusCode < 300 {
		c.written[object] = c.ahead
	}
	if at, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		ahead, known := c.written[object]
		if !known { // it was written just now, and the writer has no answer yet
			ahead = c.ahead
		}
		resp.Header.Set("Last-Modified", at.Add(ahead).Format(http.TimeFormat))
	}
	// Not the server's own Date: versitygw renews that once a second, so it
	// may be one second behind. Then a lease ends a second later, which is
	// safe, but the conformance suite counts seconds. The server runs on this
	// machine.
	resp.Header.Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
}

// movedTransport is a network that makes the clock of a server of objects
// appear to be ahead.
type movedTransport struct {
	http.RoundTripper
	clock *movedClock
}

// RoundTrip implements http.RoundTripper.
func (t movedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		t.clock.move(resp)
	}
	return resp, err
}

// movedScripts sends scripts to Redis in which the server's clock is ahead.
type movedScripts struct {
	redis.Scripter
	clock *movedClock
}

// Options tell the store that the client does not repeat requests.
func (movedScripts) Options() *redis.Options {
	return &redis.Options{Addr: "server", ContextTimeoutEnabled: true, MaxRetries: -1}
}

// Scan lets the store list its rows.
func (s movedScripts) Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd {
	return s.Scripter.(*redis.Client).Scan(ctx, cursor, match, count)
}

// EvalSha answers that the server does not know the script, so that the caller
// sends its text.
func (s movedScripts) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(redisError("NOSCRIPT No matching script."))
	return cmd
}

// Eval runs a script whose clock is ahead.
func (s movedScripts) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	const clock = "redis.call('TIME')"
	if strings.Count(script, clock) != 1 {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(fmt.Errorf("the script does not have %s once", clock))
		return cmd
	}
	s.clock.mu.Lock()
	moved := fmt.Sprintf(`(function()
		local t = redis.call('TIME')
		local us = tonumber(t[1]) * 1000000 + tonumber(t[2]) + %d
		return { string.format('%%.0f', math.floor(us / 1000000)), string.format('%%.0f', us %% 1000000) }
	end)()`, s.clock.ahead.Microseconds())
	s.clock.mu.Unlock()
	return s.Scripter.Eval(ctx, strings.Replace(script, clock, moved, 1), keys, args...)
}

// untimed is a quorum that waits for each server's answer however long it
// takes. Its own limit is a quarter of a second, and the suite takes a step
// that the machine was too busy for as one that failed.
type untimed struct{ *redisquorum.Store }

// Acquire implements [driver.Store].
func (u untimed) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return u.Store.Acquire(simclock.Untimed(ctx), c)
}

// Renew implements [driver.Store].
func (u untimed) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return u.Store.Renew(simclock.Untimed(ctx), r)
}

// Settle implements [driver.Store].
func (u untimed) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return u.Store.Settle(simclock.Untimed(ctx), s)
}

// Check implements [driver.Checker].
func (u untimed) Check(ctx context.Context) error { return u.Store.Check(simclock.Untimed(ctx)) }

// Read implements [driver.Inspector].
func (u untimed) Read(ctx context.Context, name string) (driver.Row, error) {
	return u.Store.Read(simclock.Untimed(ctx), name)
}

// Rows implements [driver.Inspector].
func (u untimed) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return u.Store.Rows(simclock.Untimed(ctx), prefix)
}

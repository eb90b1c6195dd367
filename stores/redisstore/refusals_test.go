package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// refusals are answers that no list has, as servers, services and proxies give
// them. https://github.com/redisson/redisson/issues/6718,
// https://github.com/envoyproxy/envoy/issues/21352
var refusals = []string{
	"ERR Script attempted to access a non local key in a cluster node script: f_0d1e, on @user_script:1.",
	"upstream failure", "no upstream host", "ERR max requests limit exceeded. Limit: 10000", "IOERR input or output error",
	"ERR internal error", "ERR max daily request limit exceeded", "INPROG Failover already in progress", "ERR timeout",
	"FAILED",
}

// refusing answers a script of a kind with a text instead, once. The kinds are
// known by the order in which they were first sent.
type refusing struct {
	redis.Scripter
	text    string
	kind    int  // of the script; -1: none
	applied bool // the server applies it all the same
	kinds   []string
	refused int
}

func (c *refusing) Options() *redis.Options {
	return &redis.Options{ContextTimeoutEnabled: true, MaxRetries: -1}
}

func (c *refusing) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	kind := slices.Index(c.kinds, sha)
	if kind < 0 {
		kind, c.kinds = len(c.kinds), append(c.kinds, sha)
	}
	if kind != c.kind || c.refused > 0 {
		return c.Scripter.EvalSha(ctx, sha, keys, args...)
	}
	c.refused++
	if c.applied {
		_ = c.Scripter.EvalSha(ctx, sha, keys, args...)
	}
	return redistest.ErrorCmd(ctx, redistest.ServerError(c.text))
}

// TestRefusedOnce refuses one request of each step, which the server may have
// applied. The work runs once, to its end, and leaves the name free.
func TestRefusedOnce(t *testing.T) { // F8, F57
	t.Parallel()
	for kind, step := range []string{"acquire", "renew", "complete", "release"} {
		for _, text := range refusals {
			for _, applied := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %.20s, applied %v", step, text, applied), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { refusedOnce(t, min(kind, 2), step == "release", text, applied) })
				})
			}
		}
	}
}

var errWork = errors.New("the work fails")

func refusedOnce(t *testing.T, kind int, fails bool, text string, applied bool) {
	link := redistest.NewLink(redistest.NewMachine(t), "node", &fault.Script{}, &fault.Kept{}, 1, 1)
	client := &refusing{Scripter: link, text: text, kind: -1, applied: applied}
	l := expect.Value(lock.New(redistest.Must(redisstore.New(client)), &lock.Options{Logger: slog.New(slog.DiscardHandler), Lease: lock.Heartbeat(9 * time.Second)}))(t)
	runs, result := 0, error(nil)
	work := func(ctx context.Context) error {
		runs++
		select {
		case <-time.After(5 * time.Second): // with a renewal
			return result
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	do := func(key lock.Key) error { return l.Do(t.Context(), key, work) }
	if err := do(lock.Key{Name: "other", Event: "e"}); err != nil { // the scripts are known afterwards
		t.Fatal(err)
	}
	client.kind, runs = kind, 0
	if fails {
		result = errWork
	}
	key := lock.Key{Name: "n", Event: "e"}
	if err := do(key); !errors.Is(err, result) {
		t.Errorf("error %v, want %v", err, result)
	}
	if runs != 1 || client.refused != 1 {
		t.Errorf("%d runs, %d refusals", runs, client.refused)
	}
	result = nil
	if err := do(key); fails && err != nil || !fails && !errors.Is(err, lock.ErrCompleted) {
		t.Errorf("the next delivery: %v", err)
	}
}

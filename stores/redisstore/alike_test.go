package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/sim/alike"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// ticking is a client that sets the server's clock before each request.
type ticking struct {
	redis.Scripter
	mini *miniredis.Miniredis
	now  func() time.Time
}

func (c ticking) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	c.mini.SetTime(c.now())
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestAgreesWithJudge compares the scripts with what [driver.Row.Judge] grants.
func TestAgreesWithJudge(t *testing.T) { // F1, F3, F5, F14, F21, F44
	t.Parallel()
	mini := newMini(t)
	client := newClient(t, mini.Addr())
	alike.Run(t, alike.Config{
		Open: func(_ *testing.T, now func() time.Time) alike.Store {
			return must(redisstore.New(ticking{client, mini, now}))
		},
		Histories: 30, ServerClock: true, KeepsLonger: true,
		After: func(t *testing.T, name string, m *alike.Model) {
			end := mini.HGet("lambdalock:"+name, "leaseEnd")
			if m.Row.Token != "" && end != strconv.FormatInt(m.End.UnixMicro(), 10) {
				t.Errorf("%s: the lease ends at %s, want %d", name, end, m.End.UnixMicro())
			}
		},
	})
}

// TestLeaseNeverMovesBack lets a claim arrive late, which is then granted for
// longer than the next round of the same claim asks for.
func TestLeaseNeverMovesBack(t *testing.T) {
	t.Parallel()
	mini := newMini(t)
	client := newClient(t, mini.Addr())
	store := must(redisstore.New(client))
	first := claim("n")
	mini.SetTime(first.Now.Add(30 * time.Second))
	mustAcquire(t, store, first)
	before := mini.HGet("lambdalock:n", "leaseEnd")
	second := *first
	second.Now, second.Stamp = first.Now.Add(20*time.Second), first.Now.Add(20*time.Second)
	mustAcquire(t, store, &second)
	if after := mini.HGet("lambdalock:n", "leaseEnd"); after != before {
		t.Errorf("the lease ends at %s, before it was %s", after, before)
	}
	// The clock of the owner was set forward.
	r := renewal(&second)
	r.Until = second.Until.Add(time.Second)
	r.Now = r.Until.Add(-time.Second)
	if _, ok, err := store.Renew(t.Context(), r); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if after := mini.HGet("lambdalock:n", "leaseEnd"); after < before {
		t.Errorf("after a renewal the lease ends at %s, before it was %s", after, before)
	}
}

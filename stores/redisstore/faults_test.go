package redisstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// TestScriptsAreForgotten shows that a lock outlives SCRIPT FLUSH, and a
// restart of a server that writes each change to disk.
func TestScriptsAreForgotten(t *testing.T) { // F42
	for name, forget := range map[string]func(*testing.T, *redistest.Server, *redis.Client){
		"script flush": func(t *testing.T, _ *redistest.Server, c *redis.Client) {
			expect.Must(t, c.ScriptFlush(t.Context()).Err())
		},
		"restart": func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Stop(); s.Start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
			client := redistest.NewClient(t, srv.Addr)
			store := redistest.Must(redisstore.New(client))
			c := redistest.Claim("n")
			before := redistest.MustAcquire(t, store, c)
			forget(t, srv, client)
			second := redistest.Claim("n")
			_, _, _ = store.Acquire(t.Context(), second) // the client notices that its connection broke
			if row := redistest.MustRefuse(t, store, second); row.Token != c.Token || row.Fence != before.Fence {
				t.Errorf("the row is %+v, want that of the holder", row)
			}
			if _, ok, err := store.Settle(t.Context(), redistest.Settlement(c)); !ok || err != nil {
				t.Errorf("release: applied %v, error %v", ok, err)
			}
		})
	}
}

// TestDataIsLost shows that the fence goes on rising after a server has lost
// its rows, and that the former owner changes nothing.
func TestDataIsLost(t *testing.T) { // F4, F23, F42
	t.Parallel()
	srv := redistest.NewServer(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, srv.Addr)))
	c := redistest.Claim("n")
	before := redistest.MustAcquire(t, store, c)
	srv.Stop()
	srv.Start()
	_, _, _ = store.Renew(t.Context(), redistest.Renewal(c))
	if row, ok, err := store.Renew(t.Context(), redistest.Renewal(c)); ok || err != nil {
		t.Errorf("a renewal brought the row back: %+v, error %v", row, err)
	}
	if row := redistest.MustAcquire(t, store, redistest.Claim("n")); row.Fence <= before.Fence {
		t.Errorf("fence %d after %d", row.Fence, before.Fence)
	}
	if _, ok, _ := store.Settle(t.Context(), redistest.Settlement(c)); ok {
		t.Error("the former owner released the name")
	}
}

// TestClientKill shows that a lock goes on when the server closes its
// connections in the middle of the work.
func TestClientKill(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	locker := expect.Value(lock.New(redistest.Must(redisstore.New(redistest.NewClient(t, srv.Addr))), &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
	admin := redistest.NewClient(t, srv.Addr)
	for i := range 20 {
		err := locker.Do(simclock.Untimed(t.Context()), lock.Key{Name: "n", Event: fmt.Sprint(i)}, func(ctx context.Context) error {
			expect.OK(t, admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err())
			return nil
		})
		if err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

// TestPausedServer shows that a request to a server that hangs ends with its
// context, counts as possibly applied, and changes nothing once it is given up.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, srv.Addr)))
	redistest.MustAcquire(t, store, redistest.Claim("another")) // opens the connection
	srv.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := redistest.Claim("n")
	_, _, err := store.Acquire(ctx, c)
	var e *driver.Error
	if !errors.As(err, &e) || e.Lasting || e.Answered || e.Unapplied || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("error %v, want one that is temporary and may be applied", err)
	}
	srv.Signal(syscall.SIGCONT)
	s := redistest.Settlement(c)
	s.Abandon = true
	if _, _, err := store.Settle(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	redistest.MustAcquire(t, store, redistest.Claim("n"))
}

// TestOneRow lets 32 claims race for each of 40 rows: one of them wins.
func TestOneRow(t *testing.T) {
	t.Parallel()
	store := redistest.Must(redisstore.New(redistest.NewClient(t, redistest.NewServer(t).Addr)))
	for i := range 40 {
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				_, ok, err := store.Acquire(t.Context(), redistest.Claim(fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 32 claims won row %d", won.Load(), i)
		}
	}
}

// TestFullMemory shows that a server without memory refuses a claim and changes
// nothing, but still renews, completes and releases.
func TestFullMemory(t *testing.T) { // F42
	t.Parallel()
	srv := redistest.NewServer(t, "--maxmemory-policy", "noeviction")
	client := redistest.NewClient(t, srv.Addr)
	store := redistest.Must(redisstore.New(client))
	c := redistest.Claim("n")
	c.Event = "e"
	redistest.MustAcquire(t, store, c)
	expect.Must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, ok, err := store.Acquire(t.Context(), redistest.Claim("another"))
	var e *driver.Error
	if ok || !errors.As(err, &e) || !e.Answered || !e.Unapplied || e.Lasting || !strings.Contains(e.Hint, "memory is full") {
		t.Errorf("applied %v, error %v, want a refusal with a hint", ok, err)
	}
	if n := client.Exists(t.Context(), "lambdalock:another").Val(); n != 0 {
		t.Error("the refused claim left a row")
	}
	if _, ok, err := store.Renew(t.Context(), redistest.Renewal(c)); !ok || err != nil {
		t.Errorf("renewal: applied %v, error %v", ok, err)
	}
	s := redistest.Settlement(c)
	s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Now.Add(time.Hour).Truncate(time.Millisecond)}}}
	if row, ok, err := store.Settle(t.Context(), s); !ok || err != nil || !row.Memory.Has("e", c.Now) {
		t.Errorf("completion: applied %v, error %v, row %+v", ok, err, row)
	}
}

// TestPermissions uses a user with nothing but what the hint of a denial names.
func TestPermissions(t *testing.T) { // F10, F40
	t.Parallel()
	srv := redistest.NewServer(t)
	admin := redistest.NewClient(t, srv.Addr)
	as := func(rules ...string) *redisstore.Store {
		expect.Must(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "u", "reset", "on", ">p"}, anys(rules)...)...).Err())
		c := redis.NewClient(&redis.Options{Addr: srv.Addr, Username: "u", Password: "p", ContextTimeoutEnabled: true, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		return redistest.Must(redisstore.New(c))
	}
	_, _, err := as("~lambdalock:*", "+evalsha").Acquire(t.Context(), redistest.Claim("n"))
	var e *driver.Error
	if !errors.As(err, &e) || !e.Lasting || !e.Answered || !e.Unapplied || e.Action != "eval" {
		t.Fatalf("error %#v, want a permanent one that names eval", err)
	}
	rules := strings.Fields(e.Hint[strings.Index(e.Hint, "~"):])
	store := as(rules...)
	expect.OK(t, store.Check(t.Context()))
	c := redistest.Claim("n")
	c.Event = "e"
	redistest.MustAcquire(t, store, c)
	if _, ok, err := store.Renew(t.Context(), redistest.Renewal(c)); !ok || err != nil {
		t.Errorf("renewal: applied %v, error %v", ok, err)
	}
	if _, ok, err := store.Settle(t.Context(), redistest.Settlement(c)); !ok || err != nil {
		t.Errorf("release: applied %v, error %v", ok, err)
	}
	redistest.MustAcquire(t, store, redistest.Claim("another"))
	denied := int64(0)
	for _, entry := range expect.Value(admin.ACLLog(t.Context(), 100).Result())(t) {
		if entry.Username == "u" && strings.HasPrefix(entry.Object, "info") {
			denied += entry.Count
		}
	}
	if denied != 1 {
		t.Errorf("a Store without +info asked %d times, want once", denied)
	}
	for i, rule := range rules {
		store := as(append(append([]string{}, rules[:i]...), rules[i+1:]...)...)
		expect.Must(t, admin.ScriptFlush(t.Context()).Err())
		if err := store.Check(t.Context()); !errors.As(err, &e) || !e.Lasting || !e.Answered || !strings.Contains(e.Hint, "+hget") {
			t.Errorf("without %s: a check gives the error %v, want a permanent one with the permissions", rule, err)
		}
		if _, _, err := store.Acquire(t.Context(), redistest.Claim(rule)); !errors.As(err, &e) || !e.Lasting || !e.Answered || !strings.Contains(e.Hint, "+hget") {
			t.Errorf("without %s: error %v, want a permanent one with the permissions", rule, err)
		}
		if e.Unapplied && admin.Exists(t.Context(), "lambdalock:"+rule).Val() != 0 {
			t.Errorf("without %s: the claim counts as not applied, but has left a row", rule)
		}
	}
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i := range s {
		out[i] = s[i]
	}
	return out
}

// TestReplica shows what a client that was left with a replica gets.
func TestReplica(t *testing.T) { // F42
	t.Parallel()
	client := redistest.NewClient(t, redistest.NewServer(t).Addr)
	if err := client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil { // nobody is there
		t.Fatal(err)
	}
	_, _, err := redistest.Must(redisstore.New(client)).Acquire(t.Context(), redistest.Claim("n"))
	var e *driver.Error
	if !errors.As(err, &e) || e.Lasting || !e.Answered || !e.Unapplied {
		t.Errorf("error %v, want a temporary refusal", err)
	}
}

func TestKeyOfAnother(t *testing.T) {
	t.Parallel()
	client := redistest.NewClient(t, redistest.NewServer(t).Addr)
	store := redistest.Must(redisstore.New(client))
	set := func(key string, fields ...any) { client.HSet(t.Context(), key, fields...) }
	for name, c := range map[string]struct {
		put  func(key string)
		want string
	}{
		"string":   {func(key string) { client.Set(t.Context(), key, "x", 0) }, "used by something else"},
		"no stamp": {func(key string) { set(key, "field", "x") }, "no readable field stamp"},
		"no heldUntil": {func(key string) {
			set(key, "ownerToken", "x", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "no readable field heldUntil"},
		"no leaseEnd": {func(key string) {
			set(key, "ownerToken", "x", "stamp", "2026-11-21T12:00:00.000000Z", "heldUntil", "2026-11-21T12:00:00.000000Z")
		}, "no readable field leaseEnd"},
		"fence": {func(key string) {
			set(key, "fence", "x", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "fence that is not a 64-bit number"},
		"interruptedFor": {func(key string) {
			set(key, "interruptedFor", "x", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "interruptedFor that is not a number"},
		"interruptedFor, zero": {func(key string) {
			set(key, "interruptedFor", "0", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "interruptedFor that is not a number"},
		"interrupted": {func(key string) {
			set(key, "interrupted", "e 2026-11-21T12:00:00.000Z\n", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "interrupted events that cannot be read"},
		"interrupted, no time": {func(key string) {
			set(key, "interrupted", "e 2026 2026-11-21T12:00:00.000000Z  h\n", "stamp", "2026-11-21T12:00:00.000000Z")
		}, "interrupted events that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			c.put("lambdalock:" + name)
			_, err := store.Read(t.Context(), name)
			var e *driver.Error
			if !errors.As(err, &e) || !e.Lasting || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	set("lambdalock:lines", "stamp", "2026-11-21T12:00:00.000000Z", "completed", "no time\ne%ZZ 2026-11-21T12:00:00.000Z\n")
	row, err := store.Read(t.Context(), "lines")
	if err != nil || len(row.Memory.Completed) != 1 || row.Memory.Completed[0].Event != "e%ZZ" {
		t.Errorf("got %+v, error %v, want the line that can be read", row, err)
	}
}

// broken is a client whose every request has the same outcome.
type broken struct {
	redis.Scripter
	val any
	err error
}

func (b broken) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	cmd := redistest.ErrorCmd(ctx, b.err)
	cmd.SetVal(b.val)
	return cmd
}

func (b broken) Eval(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	return b.EvalSha(ctx, "", nil)
}

// clusterClient has the options of a cluster client.
type clusterClient struct{ redis.Scripter }

func (clusterClient) Options() *redis.ClusterOptions {
	return &redis.ClusterOptions{ContextTimeoutEnabled: true}
}

// oneAttempt has the options of a client that does not repeat requests.
type oneAttempt struct{ redis.Scripter }

func (oneAttempt) Options() *redis.Options {
	return &redis.Options{ContextTimeoutEnabled: true, MaxRetries: -1}
}

// TestErrors: whether a request may have been applied depends on whether the
// client repeats it by itself, and an answer that cannot be read is lasting.
func TestErrors(t *testing.T) { // F2, F57
	t.Parallel()
	refused := broken{err: redistest.ServerError("LOADING Redis is loading the dataset in memory")}
	for client, unapplied := range map[redis.Scripter]bool{refused: false, oneAttempt{refused}: true, clusterClient{refused}: false} {
		_, ok, err := redistest.Must(redisstore.New(client)).Acquire(t.Context(), redistest.Claim("n"))
		var e *driver.Error
		if ok || !errors.As(err, &e) || e.Lasting || !e.Answered || e.Unapplied != unapplied {
			t.Errorf("%T: applied %v, error %#v, want unapplied %v", client, ok, err, unapplied)
		}
	}
	for name, val := range map[string]any{
		"no list": "x", "too short": []any{}, "wrong types": []any{"0", "0", "", []any{}, []any{}}, "no time": []any{int64(0), "x", "", []any{}, []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok, err := redistest.Must(redisstore.New(broken{val: val})).Acquire(t.Context(), redistest.Claim("n"))
			if e := (*driver.Error)(nil); ok || !errors.As(err, &e) || !e.Lasting || e.Unapplied {
				t.Errorf("applied %v, error %#v, want a permanent one", ok, err)
			}
		})
	}
}

// repeating is a client that repeats each request, as if the first answer were
// lost.
type repeating struct{ redis.Scripter }

func (repeating) Options() *redis.Options {
	return &redis.Options{ContextTimeoutEnabled: true, MaxRetries: 3}
}

func (c repeating) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if first := c.Scripter.EvalSha(ctx, sha, keys, args...); first.Err() != nil { // the script is not known
		return first
	}
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestEndRepeatedByTheClient: the end of a lock that the client has repeated by
// itself is refused, because it was applied before; or because the lock is
// another's by now, or has lost its row.
func TestEndRepeatedByTheClient(t *testing.T) { // F5, F6, F21
	t.Parallel()
	m := redistest.NewMini(t)
	plain := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
	repeats := redistest.Must(redisstore.New(repeating{redistest.NewClient(t, m.Addr())}))
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	before := driver.Memory{Completed: []driver.CompletedEvent{{Event: "before", Until: until}}, HighestOrder: "4"}
	ends := map[string]func(*driver.Settlement){
		"release":  func(*driver.Settlement) {},
		"cooldown": func(s *driver.Settlement) { s.Now, s.Until = time.Now(), until },
		"complete": func(s *driver.Settlement) {
			s.Memory = &driver.Memory{Completed: append(before.Completed, driver.CompletedEvent{Event: "e", Until: until}), HighestOrder: "4"}
		},
		"order": func(s *driver.Settlement) { s.Memory = &driver.Memory{Completed: before.Completed, HighestOrder: "5"} },
		"interrupted": func(s *driver.Settlement) {
			s.Memory = &driver.Memory{Completed: before.Completed, HighestOrder: "4", Interrupted: []driver.InterruptedEvent{{Event: "e", Holder: "h", Since: s.Stamp, Until: until}}}
		},
		"no longer interrupted": func(s *driver.Settlement) { s.Memory = &before },
	}
	free := func(name string) {
		m.HSet("lambdalock:"+name, "stamp", "2099-01-01T00:00:00.000000Z")
		m.HDel("lambdalock:"+name, "ownerToken")
		m.HDel("lambdalock:"+name, "interrupted")
	}
	for end, change := range ends {
		for name, c := range map[string]struct {
			lose func(name string)
			want bool
		}{
			"held":            {func(string) {}, true},
			"no row":          {func(name string) { m.Del("lambdalock:" + name) }, false},
			"another":         {func(name string) { m.HSet("lambdalock:"+name, "ownerToken", "another's") }, false},
			"left by another": {free, false},
		} {
			t.Run(end+", "+name, func(t *testing.T) {
				first, second := redistest.Claim(t.Name()), redistest.Claim(t.Name())
				redistest.MustAcquire(t, plain, first)
				remembered := before
				remembered.Interrupted = []driver.InterruptedEvent{{Event: "e", Holder: "h", Since: first.Stamp, Until: until.Add(time.Second)}}
				redistest.MustRelease(t, plain, first, &remembered)
				second.Stamp = first.Stamp.Add(time.Microsecond)
				redistest.MustAcquire(t, plain, second)
				c.lose(t.Name())
				s := redistest.Settlement(second)
				change(s)
				if row, ok, err := repeats.Settle(t.Context(), s); ok != c.want || err != nil {
					t.Errorf("applied %v, error %v, row %+v", ok, err, row)
				}
				if c.want {
					if _, ok, err := plain.Settle(t.Context(), s); ok || err != nil {
						t.Errorf("sent twice by the caller: applied %v, error %v", ok, err)
					}
				}
			})
		}
	}
}

// wrapped is a client with these options.
type wrapped struct {
	redis.Scripter
	options *redis.Options
}

func (w wrapped) Options() *redis.Options { return w.options }

// TestWrongClient uses clients that cannot keep locks: the constructor says
// what to change.
func TestWrongClient(t *testing.T) {
	t.Parallel()
	wraps := func(o redis.Options) redis.Scripter { return wrapped{options: &o} }
	one := func(c redis.Scripter) func() error {
		return func() error { _, err := redisstore.New(c); return err }
	}
	for name, c := range map[string]struct {
		construct func() error
		want      string
	}{
		"no deadline":         {one(wraps(redis.Options{Addr: "h:1"})), "Redis h:1 ignores the deadlines of its requests: set ContextTimeoutEnabled"},
		"no timeout at all":   {one(wraps(redis.Options{Addr: "h:1", ContextTimeoutEnabled: true, ReadTimeout: -2})), "set ReadTimeout"},
		"cluster":             {one(redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"h:1", "h:2"}})), "Redis Cluster h:1,h:2 ignores"},
		"cluster, no timeout": {one(redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, WriteTimeout: -2})), "WriteTimeout"},
		"ring":                {one(redis.NewRing(&redis.RingOptions{})), "Ring"},
		"nil":                 {one(nil), "nil"},
		"nil pointer":         {one((*redis.Client)(nil)), "nil"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.construct()
			if e := (*driver.ConfigError)(nil); !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) {
				t.Errorf("error %v, want a ConfigError with %q", err, c.want)
			}
		})
	}
}

// TestSettingsOfTheClient shows that a *redis.Client may have any settings:
// requests end with their context, and each is sent once.
func TestSettingsOfTheClient(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*redis.Options{
		"defaults":    {},
		"no timeout":  {ReadTimeout: -1, WriteTimeout: -1},
		"no deadline": {ReadTimeout: -2, WriteTimeout: -2, MaxRetries: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := redistest.NewMini(t)
			var requests atomic.Int32
			var hangs atomic.Value // a command
			end := make(chan struct{})
			mini.Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
				if command == hangs.Load() {
					<-end
				}
				if command != "EVALSHA" {
					return false
				}
				requests.Add(1)
				c.WriteError("LOADING Redis is loading the dataset in memory")
				return true
			})
			t.Cleanup(func() { close(end) })
			o.Addr = mini.Addr()
			client := redis.NewClient(o)
			t.Cleanup(func() { _ = client.Close() })
			store := redistest.Must(redisstore.New(client))
			if _, _, err := store.Acquire(t.Context(), redistest.Claim("n")); err == nil || requests.Load() != 1 {
				t.Errorf("%d requests, error %v, want 1 that fails", requests.Load(), err)
			}
			rows := func(ctx context.Context) (err error) {
				for _, err = range store.Rows(ctx, "") {
				}
				return err
			}
			for _, c := range []struct {
				command string
				request func(context.Context) error
			}{{"EVALSHA", store.Check}, {"INFO", rows}, {"SCAN", rows}} {
				hangs.Store(c.command)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- c.request(ctx) }()
				select {
				case err := <-ended:
					if err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "no answer in time") {
						t.Errorf("%s: error %v", c.command, err)
					}
				case <-time.After(20 * time.Second):
					t.Errorf("%s: the request outlives its deadline", c.command)
				}
			}
		})
	}
}

// TestPoolIsExhausted sends a request while another one, which hangs, has the
// only connection. The hint names the pool, and not the network.
func TestPoolIsExhausted(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*miniredis.Miniredis) redis.Scripter{
		"client": func(m *miniredis.Miniredis) redis.Scripter {
			return redis.NewClient(&redis.Options{Addr: m.Addr(), PoolSize: 1})
		},
		"cluster client": func(m *miniredis.Miniredis) redis.Scripter {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{m.Addr()}, ContextTimeoutEnabled: true, PoolSize: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := redistest.NewMini(t)
			began, end := make(chan struct{}), make(chan struct{})
			arrived := sync.OnceFunc(func() { close(began) })
			mini.Server().SetPreHook(func(_ *minserver.Peer, command string, _ ...string) bool {
				if command == "EVALSHA" {
					arrived()
					<-end
				}
				return false
			})
			client := connect(mini)
			t.Cleanup(func() { _ = client.(io.Closer).Close() })
			store := redistest.Must(redisstore.New(client))
			var first sync.WaitGroup
			defer first.Wait()
			defer close(end)
			first.Go(func() { _ = store.Check(t.Context()) })
			<-began
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			var e *driver.Error
			if err := store.Check(ctx); !errors.As(err, &e) || !strings.Contains(e.Hint, "PoolSize") {
				t.Errorf("error %v, want a hint that names PoolSize", err)
			}
		})
	}
}

// TestRefusingServer acquires a lock through clients with the usual settings
// while the server refuses every request. That is an answer, so few requests
// are sent, and a handler that runs without the lock when the store is silent
// does not run.
func TestRefusingServer(t *testing.T) { // F55
	t.Parallel()
	for _, text := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.", "READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory", "MISCONF Redis is configured to save RDB snapshots",
		"NOREPLICAS Not enough good replicas to write.", "CLUSTERDOWN The cluster is down",
	} {
		for name, connect := range map[string]func(addr string) redis.Scripter{
			"client": func(addr string) redis.Scripter { return redis.NewClient(&redis.Options{Addr: addr}) },
			"cluster client": func(addr string) redis.Scripter {
				return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, ContextTimeoutEnabled: true})
			},
		} {
			t.Run(text[:4]+", "+name, func(t *testing.T) {
				t.Parallel()
				mini := redistest.NewMini(t)
				var requests atomic.Int32
				mini.Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
					if command != "EVALSHA" {
						return false
					}
					requests.Add(1)
					c.WriteError(text)
					return true
				})
				client := connect(mini.Addr())
				t.Cleanup(func() { _ = client.(io.Closer).Close() })
				locker, err := lock.New(redistest.Must(redisstore.New(client)), &lock.Options{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = locker.Acquire(ctx, lock.Key{Name: "n"})
				var e *lock.StoreError
				if !errors.As(err, &e) || !e.Temporary || !e.Answered {
					t.Errorf("error %#v, want one that was answered", err)
				}
				if n := requests.Load(); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
			})
		}
	}
}

// TestEvictionWarning replaces the default logger, so it is not parallel.
func TestEvictionWarning(t *testing.T) { // F42
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"evicts":     {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"}, 1},
		"noeviction": {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}, 0},
		"no limit":   {[]string{"--maxmemory-policy", "allkeys-lru"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			store := redistest.Must(redisstore.New(redistest.NewClient(t, redistest.NewServer(t, c.args...).Addr)))
			for range 2 {
				redistest.MustAcquire(t, store, redistest.Claim(rand.Text()))
				expect.Must(t, store.Check(t.Context()))
			}
			if n := strings.Count(log.String(), "set maxmemory-policy to noeviction"); n != c.want {
				t.Errorf("%d warnings, want %d: %s", n, c.want, &log)
			}
		})
	}
}

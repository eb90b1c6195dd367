package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// cluster is a client of several servers.
type cluster struct {
	redis.Scripter
	servers []*redis.Client
	err     error
}

func (c cluster) ForEachMaster(ctx context.Context, fn func(context.Context, *redis.Client) error) error {
	for _, s := range c.servers {
		if err := fn(ctx, s); err != nil {
			return err
		}
	}
	return c.err
}

func TestRows(t *testing.T) {
	t.Parallel()
	list := func(s driver.Inspector, prefix string) (names []string, err error) {
		for row, err := range s.Rows(t.Context(), prefix) {
			if err != nil {
				return names, err
			}
			names = append(names, row.Name)
		}
		return names, nil
	}
	t.Run("cluster", func(t *testing.T) {
		a, b := redistest.NewClient(t, redistest.NewMini(t).Addr()), redistest.NewClient(t, redistest.NewMini(t).Addr())
		for i, c := range []*redis.Client{a, b} {
			redistest.MustAcquire(t, redistest.Must(redisstore.New(c)), redistest.Claim(fmt.Sprint("name", i)))
		}
		// The rows are read through a, which has only its own.
		if names, err := list(redistest.Must(redisstore.New(cluster{a, []*redis.Client{a, b}, nil})), "name"); err != nil || len(names) != 1 {
			t.Errorf("got %v, error %v", names, err)
		}
		if _, err := list(redistest.Must(redisstore.New(cluster{a, nil, io.EOF})), ""); !errors.Is(err, io.EOF) {
			t.Errorf("error %v, want EOF", err)
		}
	})
	t.Run("no Scan", func(t *testing.T) {
		if _, err := list(redistest.Must(redisstore.New(broken{})), ""); err == nil || !strings.Contains(err.Error(), "no method Scan") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("pattern", func(t *testing.T) {
		s := redistest.Must(redisstore.New(redistest.NewClient(t, redistest.NewMini(t).Addr())))
		for _, name := range []string{`a*[x]?\`, `ab[x]?\`, "a"} {
			redistest.MustAcquire(t, s, redistest.Claim(name))
		}
		if names, err := list(s, `a*[x]?\`); err != nil || len(names) != 1 {
			t.Errorf("got %v, error %v", names, err)
		}
	})
}

// TestRefusedRow: a key that belongs to something else hides no row. A password
// that is changed meanwhile damages no row: the list ends.
func TestRefusedRow(t *testing.T) {
	t.Parallel()
	for answer, alone := range map[string]bool{
		"WRONGTYPE Operation against a key holding the wrong kind of value": true,
		"NOAUTH Authentication required.":                                   false,
		"WRONGPASS invalid username-password pair or user is disabled.":     false,
		"DENIED Redis is running in protected mode":                         false,
	} {
		m := redistest.NewMini(t)
		store := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
		redistest.MustAcquire(t, store, redistest.Claim("a"))
		redistest.MustAcquire(t, store, redistest.Claim("b"))
		m.Server().SetPreHook(func(p *minserver.Peer, command string, _ ...string) bool {
			switch {
			case command == "INFO":
				p.WriteBulk("cluster_enabled:0\r\n")
			case strings.HasPrefix(command, "EVAL"):
				p.WriteError(answer)
			default:
				return false
			}
			return true
		})
		var named, errs int
		for row, err := range store.Rows(t.Context(), "") {
			if err != nil {
				errs++
			}
			if row.Name != "" {
				named++
			}
		}
		if want := map[bool][2]int{true: {2, 2}, false: {0, 1}}[alone]; named != want[0] || errs != want[1] {
			t.Errorf("%s: %d names and %d errors, want %v", answer, named, errs, want)
		}
	}
}

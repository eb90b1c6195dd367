package redisquorum_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// distant returns a client of a server that is a round trip away. Like a real
// one, the connection itself takes a round trip.
func distant(t *testing.T, m *redistest.Machine, roundTrip time.Duration) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: t.Name(), ContextTimeoutEnabled: true, Dialer: func(context.Context, string, string) (net.Conn, error) {
		time.Sleep(roundTrip)
		ours, relay := net.Pipe()
		server, err := m.Mini.Dial()
		if err != nil {
			return nil, err
		}
		for _, way := range [][2]net.Conn{{relay, server}, {server, relay}} {
			go travel(way[1], way[0], roundTrip/2)
		}
		return ours, nil
	}})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// travel copies what arrives, each part of it after the same while.
func travel(to io.WriteCloser, from io.Reader, takes time.Duration) {
	type part struct {
		data    []byte
		arrives time.Time
	}
	parts := make(chan part, 1000)
	go func() {
		defer close(parts)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			parts <- part{buf[:n], time.Now().Add(takes)}
		}
	}()
	defer func() { _ = to.Close() }()
	for p := range parts {
		time.Sleep(time.Until(p.arrives))
		_, _ = to.Write(p.data)
	}
}

// TestDistantQuorum shows up to which round trip a quorum works, without a
// Check first. To open a connection takes longer than one request may.
func TestDistantQuorum(t *testing.T) { // F42
	t.Parallel()
	for name, roundTrips := range map[string][3]time.Duration{
		"80 ms":                        {80 * time.Millisecond, 80 * time.Millisecond, 80 * time.Millisecond},
		"120 ms":                       {120 * time.Millisecond, 120 * time.Millisecond, 120 * time.Millisecond},
		"one far away":                 {time.Millisecond, time.Millisecond, 120 * time.Millisecond},
		"one out of reach, two remote": {120 * time.Millisecond, 120 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(2 * time.Hour) }) // what is under way arrives
				var clients []redis.Scripter
				var servers []*redisstore.Store // made before their clients are used
				for _, d := range roundTrips {
					c := distant(t, redistest.NewMachine(t), d)
					clients, servers = append(clients, c), append(servers, redistest.Must(redisstore.New(c)))
				}
				q := redistest.Must(redisquorum.New(clients...))
				locker := expect.Value(lock.New(q, &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
				redistest.MustAcquire(t, q, redistest.Claim("first")) // while connecting: not repeated
				for round := range 3 {
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					held := expect.Value(locker.Acquire(ctx, lock.Key{Name: "n"}))(t)
					expect.OK(t, held.Release())
					cancel()
					if took := time.Since(began); round > 0 && took > 600*time.Millisecond {
						t.Errorf("round %d takes %v: who does not answer is waited for 250 ms in each step", round, took)
					}
				}
				// Every server that is in reach takes part now.
				redistest.MustAcquire(t, q, redistest.Claim("m"))
				for i, d := range roundTrips {
					if d == time.Hour {
						continue
					}
					row, err := servers[i].Read(t.Context(), "m")
					if err != nil || row.Token == "" {
						t.Errorf("server %d has %+v, error %v, want the row", i, row, err)
					}
				}
			})
		})
	}
}

// TestConnectingGoesOn gives requests less time than connecting takes.
func TestConnectingGoesOn(t *testing.T) { // F42
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Hour) }) // what is under way arrives
		var clients []redis.Scripter
		for range 3 {
			clients = append(clients, distant(t, redistest.NewMachine(t), 80*time.Millisecond))
		}
		q := redistest.Must(redisquorum.New(clients...))
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, ok, err := q.Acquire(ctx, redistest.Claim(strconv.Itoa(i)))
			var e *driver.Error
			switch {
			case i == 0 && (!errors.As(err, &e) || !e.Unapplied || e.Lasting):
				t.Errorf("error %v, want that nothing was sent", err)
			case i == 2 && !ok:
				t.Errorf("still not connected: %v", err)
			}
		}
	})
}

package redisstore_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// TestUnreachable: what to check fits the cause, in a function and in a shell.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	answering := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = answering.Close() })
	go func() {
		for {
			c, err := answering.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("-ERR unknown command\r\n"))
			_ = c.Close()
		}
	}()
	for name, c := range map[string]struct {
		options redis.Options
		want    string
	}{
		"refused": {redis.Options{Addr: "127.0.0.1:1"}, "(nothing listens there: check host and port)"},
		"name": {redis.Options{Addr: "nowhere:6379", Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
		}}, "(check the host's name)"},
		"no TLS": {redis.Options{Addr: answering.Addr().String(), TLSConfig: &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS12}}, "(the server does not use TLS: write redis:// in a URL, or leave TLSConfig out of the client's options)"},
		"TLS":    {redis.Options{Addr: closing(t)}, "rediss:// in a URL, or TLSConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.DialerRetries, c.options.DialerRetryTimeout, c.options.MaxRetries = 1, 1, -1
			client := redis.NewClient(&c.options)
			t.Cleanup(func() { _ = client.Close() })
			store, err := redisstore.New(client)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			_, _, err = store.Acquire(t.Context(), &driver.Claim{Name: "/k", Token: "t", Now: now, Stamp: now, Until: now.Add(time.Minute)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// closing is the address of a server that ends every connection immediately.
func closing(t *testing.T) string {
	t.Helper()
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

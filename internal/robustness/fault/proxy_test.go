package fault_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// notified keeps late copies, and tells of them.
type notified struct {
	fault.Kept
	tell func()
}

func (n *notified) After(d time.Duration, apply func()) {
	n.Kept.After(d, apply)
	n.tell()
}

// asked is a plan that tells when it is asked.
type asked struct {
	fault.Plan
	tell func()
}

func (a asked) Next(op string) fault.Decision {
	defer a.tell()
	return a.Plan.Next(op)
}

// giveUps lets the sender of a request that hangs give up as soon as what the
// fault does before has happened.
type giveUps struct {
	plan    fault.Plan
	late    *notified
	applied func() // is called by the server
}

func newGiveUps(m meaning, giveUp func()) giveUps {
	g := giveUps{plan: timed{Fault: m.fault, Delay: time.Millisecond}, late: &notified{tell: func() {}}, applied: func() {}}
	switch m.fault {
	case fault.Hang:
		g.plan = asked{g.plan, giveUp}
	case fault.ApplyThenHang:
		g.applied = giveUp
	case fault.HangThenApply:
		g.late.tell = giveUp
	}
	return g
}

// TestHTTPProxy shows what each fault means for a client of DynamoDB behind a
// proxy, and for the table.
func TestHTTPProxy(t *testing.T) {
	for name, m := range meanings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g, table := newGiveUps(m, cancel), newTable(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host != "localhost" {
					t.Errorf("the request is for %s, which is not what was signed", r.Host)
				}
				table.ServeHTTP(w, r)
				g.applied()
			}))
			defer server.Close()
			proxy := expect.Value(fault.NewHTTPProxy(server.URL, fault.DynamoDB, g.plan, g.late))(t)
			defer proxy.Close()
			client := clientOver(throughProxy(t, proxy.Addr))
			_, ok, err := dynamostore.New(client, tableName).Acquire(ctx, claim())
			if m.hangs {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("granted %v, error %v", ok, err)
				}
			} else {
				m.check(t, m.answered, err)
			}
			if n := table.Requests(); n != m.applied {
				t.Errorf("applied %d times, want %d", n, m.applied)
			}
			g.late.Apply()
			if n := table.Requests(); n != m.applied+m.late {
				t.Errorf("applied %d times in the end, want %d", n, m.applied+m.late)
			}
		})
	}
}

// throughProxy returns a transport that sends every request to one address.
func throughProxy(t *testing.T, addr string) http.RoundTripper {
	next := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	t.Cleanup(next.CloseIdleConnections)
	return next
}

// counter is a server that speaks RESP and counts INCR. It wants AUTH first.
type counter struct {
	net.Listener
	count   atomic.Int64
	applied func()
}

func newCounter(t *testing.T) *counter {
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &counter{Listener: l, applied: func() {}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return s
}

func (s *counter) serve(conn net.Conn) {
	defer conn.Close()
	known := false
	for r := bufio.NewReader(conn); ; {
		var members int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &members); err != nil {
			return
		}
		var words []string
		for range members {
			_, _ = r.ReadString('\n')
			word, err := r.ReadString('\n')
			if err != nil {
				return
			}
			words = append(words, strings.TrimSpace(word))
		}
		answer := "-NOAUTH Authentication required.\r\n"
		switch {
		case words[0] == "AUTH":
			known, answer = true, "+OK\r\n"
		case known && words[0] == "INCR":
			answer = fmt.Sprintf(":%d\r\n", s.count.Add(1))
			s.applied()
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// dial connects to a proxy and authenticates.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := expect.Value(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	r := bufio.NewReader(conn)
	send(t, conn, "AUTH", "secret")
	if line, err := r.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("AUTH has %q, error %v", line, err)
	}
	return conn, r
}

func send(t *testing.T, conn net.Conn, words ...string) {
	t.Helper()
	command := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		command += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	expect.Value(io.WriteString(conn, command))(t)
}

// redisAnswers are the codes of the faults that Redis answers.
var redisAnswers = map[fault.Fault]string{fault.Throttle: "-BUSY ", fault.Conflict: "-TRYAGAIN ", fault.Deny: "-NOPERM ", fault.Fail: "-LOADING ", fault.ApplyThenFail: "-ERR "}

// TestRESPProxy shows what each fault means for a client of Redis behind a
// proxy, and for the server.
func TestRESPProxy(t *testing.T) {
	for name, m := range meanings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newCounter(t)
			var conn net.Conn
			g := newGiveUps(m, func() { _ = conn.Close() })
			server.applied = g.applied
			proxy := expect.Value(fault.NewRESPProxy(server.Addr().String(), g.plan, g.late))(t)
			defer proxy.Close()
			conn, r := dial(t, proxy.Addr)
			send(t, conn, "INCR", "k")
			line, err := r.ReadString('\n')
			switch code := redisAnswers[m.fault]; {
			case code != "":
				if !strings.HasPrefix(line, code) {
					t.Errorf("answer %q, want %q", line, code)
				}
			case m.hangs:
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("answer %q, error %v", line, err)
				}
			case m.refused != nil:
				if want := map[bool]string{true: ":1"}[m.fault == fault.Truncate]; line != want || err == nil {
					t.Errorf("answer %q, error %v, want %q and no more", line, err, want)
				}
			default:
				if line != ":1\r\n" && line != ":2\r\n" || err != nil {
					t.Errorf("answer %q, error %v", line, err)
				}
			}
			if n := server.count.Load(); int(n) != m.applied {
				t.Errorf("applied %d times, want %d", n, m.applied)
			}
			g.late.Apply()
			if n := server.count.Load(); int(n) != m.applied+m.late {
				t.Errorf("applied %d times in the end, want %d", n, m.applied+m.late)
			}
		})
	}
}

// TestProxyCloses shows that the clients of a proxy notice its end, also those
// whose requests hang.
func TestProxyCloses(t *testing.T) {
	server := newCounter(t)
	hangs := make(chan struct{})
	proxy := expect.Value(fault.NewRESPProxy(server.Addr().String(), asked{timed{Fault: fault.Hang}, func() { close(hangs) }}, &fault.Kept{}))(t)
	conn, r := dial(t, proxy.Addr)
	send(t, conn, "INCR", "k")
	<-hangs
	proxy.Close()
	if _, err := r.ReadByte(); err == nil {
		t.Error("a client has an answer")
	}
}

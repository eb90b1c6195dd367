package fault

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Proxy stands between another process and a real server, and lets requests
// meet faults. Where a fault breaks a connection, the proxy closes it.
type Proxy struct {
	Addr  string // host and port, where it listens
	close func()
}

// Close ends the proxy and its connections. It does not wait for late copies.
func (p *Proxy) Close() { p.close() }

// NewHTTPProxy returns a proxy in front of the server with the base URL
// target. Clients sign their requests for the address of the proxy, which
// passes that on.
func NewHTTPProxy(target string, d Dialect, plan Plan, late Late) (*Proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	next := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	silent := log.New(io.Discard, "", 0) // broken connections are what it is for
	server := &http.Server{ErrorLog: silent, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport:    &Transport{Next: next, Dialect: d, Plan: plan, Late: late},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent,
	}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	return &Proxy{Addr: l.Addr().String(), close: func() {
		_ = server.Close()
		serving.Wait()
		next.CloseIdleConnections()
	}}, nil
}

// NewRESPProxy returns a proxy in front of the Redis at the host and port
// target. The plan knows commands by their names in lower case, such as
// "evalsha". Commands that set up a connection meet no faults. Transactions,
// subscriptions and commands that block are not supported.
func NewRESPProxy(target string, plan Plan, late Late) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &respProxy{target: target, plan: plan, late: late, open: map[net.Conn]bool{}}
	p.serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(client) })
		}
	})
	return &Proxy{Addr: l.Addr().String(), close: func() {
		_ = l.Close()
		p.closeAll()
		p.serving.Wait()
	}}, nil
}

type respProxy struct {
	target  string
	plan    Plan
	late    Late
	serving sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool // connections of clients
	closed bool
}

// opened reports whether a connection may be served.
func (p *respProxy) opened(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.closed
}

func (p *respProxy) gone(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

func (p *respProxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
}

// setup are the commands that set up a connection.
var setup = map[string]bool{"auth": true, "client": true, "hello": true, "readonly": true, "select": true}

// serve answers one client until it or a fault closes the connection.
func (p *respProxy) serve(client net.Conn) {
	defer p.gone(client)
	if !p.opened(client) {
		return
	}
	ctx, gaveUp := context.WithCancel(context.Background())
	defer gaveUp()
	commands := make(chan []byte)
	p.serving.Go(func() {
		defer gaveUp() // it reads ahead, to see when the client goes away
		defer close(commands)
		for r := bufio.NewReader(client); ; {
			command, err := readFrame(r, nil)
			if err != nil {
				return
			}
			select {
			case commands <- command:
			case <-ctx.Done():
				return
			}
		}
	})
	var own link
	defer own.close()
	for command := range commands {
		answer, err := p.answer(ctx, &own, command)
		if _, failed := client.Write(answer); err != nil || failed != nil {
			return
		}
	}
}

// answer returns what the client gets. After an error nothing more follows.
func (p *respProxy) answer(ctx context.Context, own *link, command []byte) ([]byte, error) {
	name := nameOf(command)
	if setup[name] {
		answer, err := own.send(ctx, p.target, command)
		own.setup = append(own.setup, command)
		return answer, err
	}
	before := own.setup[:len(own.setup):len(own.setup)]
	e := Exchange[[]byte]{
		Apply: func(ctx context.Context, late bool) ([]byte, error) {
			if !late {
				return own.send(ctx, p.target, command)
			}
			other := link{setup: before}
			defer other.close()
			return other.send(ctx, p.target, command)
		},
		Spoil: func(f Fault, answer []byte) ([]byte, error) {
			if text := RedisAnswer(f, name); text != "" {
				return []byte("-" + text + "\r\n"), nil
			}
			if f == Truncate {
				return answer[:len(answer)/2], ErrBroken
			}
			return nil, ErrBroken
		},
	}
	return e.Meet(ctx, p.plan.Next(name), p.late)
}

// link is a connection to the server, made for the first command.
type link struct {
	conn   net.Conn
	reader *bufio.Reader
	setup  [][]byte // the commands that set it up
}

// send sends a command and returns its answer.
func (l *link) send(ctx context.Context, target string, command []byte) ([]byte, error) {
	commands := [][]byte{command}
	if l.conn == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return nil, err
		}
		l.conn, l.reader = conn, bufio.NewReader(conn)
		commands = append(slices.Clone(l.setup), command)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	var answer []byte
	for _, c := range commands {
		if _, err := l.conn.Write(c); err != nil {
			return nil, err
		}
		var err error
		if answer, err = readAnswer(l.reader); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (l *link) close() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// readAnswer reads the answer to a command, with the messages that the server
// sends before it of its own accord.
func readAnswer(r *bufio.Reader) ([]byte, error) {
	var answer []byte
	for {
		begin := len(answer)
		var err error
		if answer, err = readFrame(r, answer); err != nil || answer[begin] != '>' {
			return answer, err
		}
	}
}

// readFrame appends to b the bytes of one command or value.
// https://redis.io/docs/latest/develop/reference/protocol-spec/
func readFrame(r *bufio.Reader, b []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	b = append(b, line...)
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil {
		n = 0 // a value of one line
	}
	members := 0
	switch line[0] {
	case '$', '=', '!':
		if n >= 0 {
			content := make([]byte, n+len("\r\n"))
			if _, err := io.ReadFull(r, content); err != nil {
				return nil, err
			}
			b = append(b, content...)
		}
	case '*', '~', '>':
		members = n
	case '%':
		members = 2 * n
	case '|': // attributes of the value that follows
		members = 2*n + 1
	}
	for range max(0, members) {
		if b, err = readFrame(r, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// nameOf returns the name of a command, in lower case.
func nameOf(command []byte) string {
	lines := strings.Split(string(command), "\r\n")
	if len(lines) > 2 && strings.HasPrefix(lines[0], "*") {
		return strings.ToLower(lines[2])
	}
	name, _, _ := strings.Cut(lines[0], " ") // typed by hand
	return strings.ToLower(name)
}

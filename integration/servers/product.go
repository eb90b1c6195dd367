package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// startLimit is generous because a shared machine may start a JVM slowly.
	startLimit = 2 * time.Minute
	// startTries is for a port that another process takes after it was found free
	// and before the server binds it.
	startTries = 3
)

// product is a server that can be fetched and started.
type product struct {
	// version is what is fetched. It is empty until the product was found, if
	// installed is set.
	name, version string
	// folder names the product's files inside the .servers folder.
	folder string
	// installed returns the version of what is in dir or, if dir is empty, of what
	// the machine has by itself. Nil: the version is pinned, and always fetched.
	installed func(dir string) (string, error)
	// check returns what the machine lacks to fetch and run the product.
	check func() error
	// fetch fills the empty folder dir with the product.
	fetch func(ctx context.Context, dir string) error
	// command returns the command that serves from the fetched folder dir on the
	// given port, and keeps what it writes in the folder data.
	command func(dir, port, data string) *exec.Cmd
	// ready reports whether the server at an address answers. Nil: it answers HTTP.
	ready func(address string) bool
	// scheme of the server's URL; empty means http.
	scheme string
	// optional means that tests may do without it.
	optional bool
	// ends means that it may end by itself, with what it runs.
	ends bool

	once sync.Once
	dir  string
	err  error
}

// String returns the product's name and version.
func (p *product) String() string { return strings.TrimSpace(p.name + " " + p.version) }

// get returns the folder of the fetched product, or an empty string if the
// machine has it by itself. It tries once per process, so that without a
// network only the first test waits until the tools give up.
func (p *product) get(ctx context.Context) (string, error) {
	p.once.Do(func() { p.dir, p.err = p.find(ctx) })
	return p.dir, p.err
}

func (p *product) find(ctx context.Context) (string, error) {
	if p.installed != nil {
		if version, err := p.installed(""); err == nil {
			p.version = version
			return "", nil
		}
	}
	if err := p.check(); err != nil {
		return "", err
	}
	root, err := serversFolder()
	if err != nil {
		return "", err
	}
	dir, err := p.installIn(ctx, root)
	if err == nil && p.installed != nil {
		p.version, err = p.installed(dir)
	}
	return dir, err
}

// start runs the product from dir on a free port and waits until it answers.
func (p *product) start(dir, data string, variables []string, args ...string) (*instance, error) {
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &instance{product: p, dir: dir, data: data, port: port, variables: variables, args: args}
		if err = s.start(); err == nil {
			return s, nil
		}
		if try == startTries || !errors.Is(err, errExited) {
			return nil, err
		}
	}
}

// instance is a product that serves on a port.
type instance struct {
	product         *product
	dir, data, port string
	variables       []string // added to the environment
	args            []string // added to those of the product
	proc            *process
	killed          bool // by a test
}

func (s *instance) address() string { return net.JoinHostPort("127.0.0.1", s.port) }

func (s *instance) endpoint() string {
	return cmp.Or(s.product.scheme, "http") + "://" + s.address()
}

// start starts the instance, again if it was stopped, and waits until it
// answers.
func (s *instance) start() (err error) {
	cmd := s.product.command(s.dir, s.port, s.data)
	cmd.Args = append(cmd.Args, s.args...)
	cmd.Env = append(cmd.Environ(), s.variables...)
	if s.proc, err = startProcess(cmd); err != nil {
		return err
	}
	ready := s.product.ready
	if ready == nil {
		ready = answersHTTP
	}
	if err = s.proc.wait(func() bool { return ready(s.address()) }, startLimit); err != nil {
		s.proc.stop()
	}
	return err
}

// The ports that servers get. Systems do not give them to those who ask for any
// port, such as another test's server: Linux gives ports from 32768 on, others
// from 49152. So nobody takes the port before the server does, seconds later.
const (
	firstPort = 20_000
	ports     = 12_000
)

var (
	portsGiven atomic.Uint32
	portsBegin = rand.Uint32N(ports) // other processes choose too
)

// freePort returns a loopback port that nobody listens on, each time another.
func freePort() (string, error) {
	var err error
	for range ports {
		port := fmt.Sprint(firstPort + (portsBegin+portsGiven.Add(1))%ports)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("no port from %d to %d is free, the last error: %w", firstPort, firstPort+ports-1, err)
}

// onLinuxAMD64 returns an error on platforms for which the products have no
// native code.
func onLinuxAMD64() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("runs on linux/amd64 only, and this machine is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

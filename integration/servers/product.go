package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

const (
	// startLimit is generous because a shared machine may start a JVM slowly.
	startLimit = time.Minute
	// startTries is for a port that another process takes after it was found free
	// and before the server binds it.
	startTries = 3
)

// product is a server that can be fetched and started.
type product struct {
	name, version string
	// folder names the product's files inside the .servers folder.
	folder string
	// check returns what the machine lacks to run the product.
	check func() error
	// fetch fills the empty folder dir with the product.
	fetch func(ctx context.Context, dir string) error
	// command returns the command that serves from the fetched folder dir on the
	// given port.
	command func(dir, port string) *exec.Cmd

	once sync.Once
	dir  string
	err  error
}

// String returns the product's name and version.
func (p *product) String() string { return p.name + " " + p.version }

// get returns the folder of the fetched product. It tries once per process, so
// that without a network only the first test waits until the tools give up.
func (p *product) get() (string, error) {
	p.once.Do(func() {
		if p.err = p.check(); p.err != nil {
			return
		}
		var root string
		if root, p.err = serversFolder(); p.err != nil {
			return
		}
		p.dir, p.err = p.installIn(root)
	})
	return p.dir, p.err
}

// start runs the product from dir on a free port and waits until it answers.
func (p *product) start(dir string) (endpoint string, proc *process, err error) {
	for range startTries {
		endpoint, proc, err = p.startOnce(dir)
		if !errors.Is(err, errExited) {
			break
		}
	}
	return endpoint, proc, err
}

func (p *product) startOnce(dir string) (string, *process, error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	proc, err := startProcess(p.command(dir, port))
	if err != nil {
		return "", nil, err
	}
	endpoint := "http://" + net.JoinHostPort("127.0.0.1", port)
	if err := proc.waitHTTP(endpoint, startLimit); err != nil {
		proc.stop()
		return "", nil, err
	}
	return endpoint, proc, nil
}

// freePort returns a loopback port that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// onLinuxAMD64 returns an error on platforms for which the products have no
// native code.
func onLinuxAMD64() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("runs on linux/amd64 only, and this machine is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

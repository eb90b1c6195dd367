// Package servers starts real servers on the loopback interface for integration
// tests, benchmarks and demos, without containers: DynamoDB-compatible ones,
// Redis, S3-compatible ones, Azure Blob Storage, AWS's emulator of Lambda, and
// moto for other services of AWS.
//
// The first use on a machine fetches a server at a pinned version into the
// module's .servers folder, which git ignores, with the npm, mvn, go, apt-get
// or pip of your machine and its configuration. If a server is unavailable, the
// test is skipped and says why; with LAMBDALOCK_INTEGRATION=required it fails
// instead.
package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is a running server on loopback.
type Server struct {
	// Name is the product and its version, such as "dynoxide 1.2.1".
	Name string
	// Endpoint is the base address, such as "http://127.0.0.1:40123".
	Endpoint string

	instance *instance
}

// Status says whether a server is available on this machine.
type Status struct {
	// Name is the product and its version.
	Name string
	// Err is why the server is unavailable, or nil if it is ready.
	Err error
	// Optional reports that tests may do without the server even if
	// LAMBDALOCK_INTEGRATION=required is set.
	Optional bool
}

// Required reports whether LAMBDALOCK_INTEGRATION=required is set: then a test
// whose server is unavailable fails instead of being skipped.
func Required() bool {
	return os.Getenv("LAMBDALOCK_INTEGRATION") == "required"
}

// all has the products by the names that [Open] takes.
var all = map[string]*product{
	"dynoxide":       &dynoxide,
	"dynamodb-local": &dynamoDBLocal,
	"redis":          redis,
	"valkey":         valkey,
	"s3":             versityGW,
	"azure":          &azurite,
	"moto":           &moto,
}

// FetchAll fetches every server that is not on this machine yet, several at the
// same time, until ctx ends, and returns the status of each.
func FetchAll(ctx context.Context) []Status {
	status := make([]Status, 0, len(all))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range append(slices.Collect(maps.Values(all)), &lambdaEmulator) { // which needs a bootstrap to open
		wg.Go(func() {
			_, err := p.get(ctx)
			mu.Lock()
			defer mu.Unlock()
			status = append(status, Status{Name: p.String(), Err: err, Optional: p.optional})
		})
	}
	wg.Wait()
	slices.SortFunc(status, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return status
}

// Open starts a server for a program that is not a test: "dynoxide",
// "dynamodb-local", "redis", "valkey", "s3" (versitygw), "azure" (Azurite) or
// "moto". It fetches the server first if need be, until ctx ends.
func Open(ctx context.Context, name string) (s Server, closeServer func(), err error) {
	p, ok := all[name]
	if !ok {
		return Server{}, nil, fmt.Errorf("there is no server %q: choose one of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	dir, err := p.get(ctx)
	if err == nil {
		s, err = open(p, dir, nil)
	}
	if err != nil {
		return Server{}, nil, fmt.Errorf("%s: %w", p, err)
	}
	return s, s.close, nil
}

// run starts p with additional arguments for the length of the test, and
// fetches it first if need be.
func run(tb testing.TB, p *product, args ...string) Server {
	tb.Helper()
	return runWith(tb, p, nil, args...)
}

// runWith is run with additions to the environment.
func runWith(tb testing.TB, p *product, variables []string, args ...string) Server {
	tb.Helper()
	if os.Getenv("LAMBDALOCK_TABLE") != "" {
		tb.Skipf("%s: the tests run on an AWS account, because LAMBDALOCK_TABLE is set", p)
	}
	ctx, cancel := context.WithTimeoutCause(tb.Context(), testFetchLimit, fmt.Errorf("not fetched within %v: run make servers first", testFetchLimit))
	defer cancel()
	dir, err := p.get(ctx)
	if err != nil {
		if Required() && !p.optional {
			tb.Fatalf("%s: not available: %v", p, err)
		}
		tb.Skipf("%s: not available: %v", p, err)
	}
	s, err := open(p, dir, variables, args...)
	if err != nil {
		tb.Fatalf("%s: %v", p, err)
	}
	tb.Cleanup(func() {
		if s.instance.proc.exited() && !s.instance.killed && !p.ends {
			tb.Errorf("%s: ended during the test: %v", p, s.instance.proc.failure())
		}
		s.close()
	})
	return s
}

func open(p *product, dir string, variables []string, args ...string) (Server, error) {
	root, err := serversFolder()
	if err != nil {
		return Server{}, err
	}
	// Not in the folder for temporary files, which may be on a file system without
	// extended attributes.
	if err := os.MkdirAll(root, 0o755); err != nil {
		return Server{}, err
	}
	data, err := os.MkdirTemp(root, "data-")
	if err != nil {
		return Server{}, err
	}
	i, err := p.start(dir, data, variables, args...)
	if err != nil {
		return Server{}, errors.Join(err, os.RemoveAll(data))
	}
	return Server{Name: p.String(), Endpoint: i.endpoint(), instance: i}, nil
}

func (s *Server) close() {
	s.instance.proc.stop()
	_ = os.RemoveAll(s.instance.data) // it is only in the way
}

// Kill ends the server immediately, as a power cut would.
func (s *Server) Kill() {
	s.instance.killed = true
	s.instance.proc.stop()
}

// Terminate asks the server to end.
func (s *Server) Terminate() error {
	s.instance.killed = true
	return s.instance.proc.terminate()
}

// Restart starts a server that was killed again, at the same address, with what
// it has written to disk.
func (s *Server) Restart() error {
	s.instance.killed = false
	return s.instance.start()
}

// Pause stops the server without closing its connections, until Resume.
func (s *Server) Pause() error { return s.instance.proc.pause() }

// Resume lets a paused server continue.
func (s *Server) Resume() error { return s.instance.proc.resume() }

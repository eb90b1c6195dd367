// Package servers starts real DynamoDB-compatible servers on the loopback
// interface for integration tests and benchmarks, without containers.
//
// The first use on a machine fetches a server at a pinned version into the
// module's .servers folder, which git ignores, with the npm or mvn of your
// machine and its configuration. If a server is unavailable, the test is
// skipped and says why; with LAMBDALOCK_INTEGRATION=required it fails instead.
package servers

import (
	"os"
	"testing"
)

// Server is a running server on loopback.
type Server struct {
	// Name is the product and its version, such as "dynoxide 1.2.1".
	Name string
	// Endpoint is the base address, such as "http://127.0.0.1:40123".
	Endpoint string
}

// Status says whether a server is available on this machine.
type Status struct {
	// Name is the product and its version.
	Name string
	// Err is why the server is unavailable, or nil if it is ready.
	Err error
}

// Required reports whether LAMBDALOCK_INTEGRATION=required is set: then a test
// whose server is unavailable fails instead of being skipped.
func Required() bool {
	return os.Getenv("LAMBDALOCK_INTEGRATION") == "required"
}

// FetchAll fetches every server that is not on this machine yet and returns the
// status of each.
func FetchAll() []Status {
	var all []Status
	for _, p := range []*product{&dynoxide, &dynamoDBLocal} {
		_, err := p.get()
		all = append(all, Status{Name: p.String(), Err: err})
	}
	return all
}

// run starts p for the length of the test, and fetches it first if need be.
func run(tb testing.TB, p *product) Server {
	tb.Helper()
	dir, err := p.get()
	if err != nil {
		if Required() {
			tb.Fatalf("%s: not available: %v", p, err)
		}
		tb.Skipf("%s: not available: %v", p, err)
	}
	endpoint, proc, err := p.start(dir)
	if err != nil {
		tb.Fatalf("%s: %v", p, err)
	}
	tb.Cleanup(func() {
		if proc.exited() {
			tb.Errorf("%s: ended during the test: %v", p, proc.failure())
		}
		proc.stop()
	})
	return Server{Name: p.String(), Endpoint: endpoint}
}

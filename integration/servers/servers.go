// Package servers starts real DynamoDB-compatible servers on loopback for
// integration tests and benchmarks, without containers.
//
// The first use on a machine fetches a server at a pinned version into the
// module's git-ignored .servers folder, with the machine's own npm or mvn and
// their own configuration. Where a server cannot be had, the test is skipped
// with the reason; with LAMBDALOCK_INTEGRATION=required it fails instead.
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

// Status says whether a server can be had on this machine.
type Status struct {
	// Name is the product and its version.
	Name string
	// Err is why the server cannot be had, or nil when it is ready.
	Err error
}

// Required reports whether LAMBDALOCK_INTEGRATION=required is set, which turns
// a server that cannot be had from a reason to skip into a failure.
func Required() bool {
	return os.Getenv("LAMBDALOCK_INTEGRATION") == "required"
}

// FetchAll fetches every server that is not here yet and says how each stands.
func FetchAll() []Status {
	var all []Status
	for _, p := range []*product{&dynoxide, &dynamoDBLocal} {
		_, err := p.get()
		all = append(all, Status{Name: p.String(), Err: err})
	}
	return all
}

// run starts p for the length of the test, fetching it first where needed.
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

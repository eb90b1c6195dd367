// Command fetch fetches every server of package servers before the tests need
// them and prints one line for each. If a server is unavailable, it fails only
// with LAMBDALOCK_INTEGRATION=required.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/lambdalock/lambdalock/integration/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missing := false
	for _, s := range servers.FetchAll(ctx) {
		if s.Err == nil {
			fmt.Printf("%s: ready\n", s.Name)
			continue
		}
		missing = missing || !s.Optional
		fmt.Printf("%s: not available: %s\n", s.Name, oneLine(s.Err))
	}
	if missing && servers.Required() {
		os.Exit(1)
	}
}

// oneLine returns an error, which may have a tool's output, as one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool {
		return r == '\n' || r == '\r'
	}), " | ")
}

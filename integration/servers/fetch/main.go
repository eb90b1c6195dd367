// Command fetch fetches every server of package servers ahead of the tests and
// prints one line for each. It fails for a server that cannot be had only when
// LAMBDALOCK_INTEGRATION=required is set.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/lambdalock/lambdalock/integration/servers"
)

func main() {
	missing := false
	for _, s := range servers.FetchAll() {
		if s.Err == nil {
			fmt.Printf("%s: ready\n", s.Name)
			continue
		}
		missing = true
		fmt.Printf("%s: not available: %s\n", s.Name, oneLine(s.Err))
	}
	if missing && servers.Required() {
		os.Exit(1)
	}
}

// oneLine puts a message that carries a tool's output on one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool {
		return r == '\n' || r == '\r'
	}), " | ")
}

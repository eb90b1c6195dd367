package invocation

import (
	"fmt"
	"os"
	"path/filepath"
)

// Process describes this process to people: program, host and process id.
func Process() string {
	host, _ := os.Hostname() // the program's name still describes a host without one
	return fmt.Sprintf("%s on %s pid %d", filepath.Base(os.Args[0]), host, os.Getpid())
}

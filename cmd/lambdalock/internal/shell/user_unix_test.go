//go:build unix

package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// TestExecOtherUser: a command that runs as another user, as with sudo, cannot
// be signalled, and lambdalock says so instead of that it ends the command.
func TestExecOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a command that runs as another user")
	}
	table := newTable(t)
	folder := t.TempDir()
	program := expect.Value(os.ReadFile(os.Args[0]))(t)
	sudo := filepath.Join(folder, "sudo")
	// No other test may start a process meanwhile: until that executes its program,
	// it has the file open for writing, too, and nobody may execute that.
	syscall.ForkLock.RLock()
	err := os.WriteFile(sudo, program, 0o600)
	syscall.ForkLock.RUnlock()
	for _, err := range []error{
		err,
		os.Chmod(sudo, os.ModeSetuid|0o755),   //nolint:gosec // its caller is nobody
		os.Chmod(folder, 0o755),               //nolint:gosec // likewise
		os.Chmod(filepath.Dir(folder), 0o755), //nolint:gosec // likewise
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := begin(t, prepare(t, append(table.Env, userVariable+"=1"), "exec", "--lease", "6s", "--key", "k", "--", sudo))
	if line := p.Line(); line != "root" {
		p.End(0)
		t.Skip("no setuid here:", line)
	}
	p.Signal(syscall.SIGTERM)
	breakLock(t, table, "k")
	hold(t, table, lock.Key{Name: "k"})
	// The command ends by itself, after lambdalock would have killed it.
	r := p.End(75, `"k": the signal "terminated" was not passed on: the command goes on, because it runs as another user`,
		"or the store lost its data: the command goes on, because it runs as another user")
	wantLines(t, r.Stderr, 2)
}

// userVariable makes the test binary lambdalock run by nobody or, with the
// setuid bit, a command that runs as root, as sudo does.
const userVariable = "LAMBDALOCK_TEST_USER"

func asOtherUser() {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			panic(err)
		}
		asCommand()
		return
	}
	if err := syscall.Setuid(0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("root")
	time.Sleep(6 * time.Second) // the lease
}

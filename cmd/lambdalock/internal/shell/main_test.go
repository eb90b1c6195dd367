package shell_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// What the tests call most.
var (
	command = commandtest.Run
	prepare = commandtest.Prepare
	execute = commandtest.Execute
	begin   = commandtest.Begin
)

// patience bounds the wait for what nothing reports.
const patience = time.Minute

// TestMain lets the test binary be the command, too.
func TestMain(m *testing.M) {
	if os.Getenv(userVariable) != "" {
		asOtherUser()
		return
	}
	commandtest.Main(m, asCommand)
}

// asCommand is lambdalock with no other command than exec.
func asCommand() {
	var commands struct {
		Exec shell.Exec `cmd:""`
	}
	console.Run(&commands, kong.NamedMapper("wait", kong.MapperFunc(shell.DecodeWait)))
}

func newTable(t *testing.T) *commandtest.Table {
	t.Helper()
	return commandtest.NewTable(t, "locks")
}

// hold holds a name as somebody else.
func hold(t *testing.T, table *commandtest.Table, key lock.Key) *lock.Lock {
	t.Helper()
	locker := expect.Value(lock.New(table.Store, &lock.Options{
		Logger: slog.New(slog.DiscardHandler),
		Holder: func(context.Context) string { return "the night shift" },
	}))(t)
	lk := expect.Value(locker.Acquire(context.Background(), key))(t)
	t.Cleanup(func() { _ = lk.Release() })
	return lk
}

// breakLock releases a lock by hand.
func breakLock(t *testing.T, table *commandtest.Table, name string) {
	t.Helper()
	s := &driver.Settlement{Name: "/" + name, Token: rowtest.Read(t, table.Store, "/"+name).Token}
	expect.Granted(table.Store.Settle(context.Background(), s))(t)
}

func wantLines(t *testing.T, text string, want int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n != want {
		t.Errorf("%d lines, want %d:\n%s", n, want, text)
	}
}

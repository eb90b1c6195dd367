package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// The test binary runs itself again as another process: these variables tell it
// which part to play.
const (
	roleVariable = "LAMBDALOCK_TEST_ROLE"
	taskVariable = "LAMBDALOCK_TEST_TASK"
)

// roles are what a child process can do. It answers in JSON lines on its
// output.
var roles = map[string]func(task) error{
	"bootstrap": bootstrap,
	"contend":   contend,
	"faulted":   contendFaulted,
	"hold":      hold,
	"once":      handleOnce,
	"peer":      playPeer,
	"serve":     serve,
	"work":      work,
}

// task is what the parent tells a child.
type task struct {
	Place   place
	Who     string
	Number  int    // of the child, among those that play the same role
	Seed    uint64 // of the faults
	Key     lock.Key
	Options childOptions
	Turns   int    // of a contender
	Waiters int    // its goroutines
	Names   int    // that it contends for
	Ledger  string // the directory of a [ledger]
}

// childOptions are the timing part of lock.Options, which can be sent.
type childOptions struct{ FixedLease, Heartbeat time.Duration }

func (o childOptions) lease() lock.LeaseMode {
	if o.FixedLease > 0 {
		return lock.FixedLease(o.FixedLease)
	}
	return lock.Heartbeat(o.Heartbeat)
}

// playRole runs a child's part and never returns to the tests.
func playRole(role string) {
	go endWith(os.Getppid())
	var t task
	err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t)
	if err == nil {
		err = roles[role](t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, t.Who+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// endWith ends the process soon after its parent was killed. Otherwise a
// contender would go on asking a server that is gone.
func endWith(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}

// child is a process that was started to play a role.
type child struct {
	t     testing.TB
	who   string
	cmd   *exec.Cmd
	lines *json.Decoder
	stdin io.WriteCloser
}

func startChild(t testing.TB, role string, do task) *child {
	t.Helper()
	text, err := json.Marshal(do)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, taskVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	c := &child{t: t, who: do.Who, cmd: cmd}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// A child that waits on its input ends when this process does.
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.lines = json.NewDecoder(stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// read waits for the child's next line.
func (c *child) read(v any) {
	c.t.Helper()
	if err := c.lines.Decode(v); err != nil {
		c.t.Fatalf("%s ended without the expected line: %v", c.who, err)
	}
}

// open opens the store for the rest of the child's life.
func (t task) open(w *wire) (driver.Store, error) {
	store, _, err := t.Place.open(w)
	return store, err
}

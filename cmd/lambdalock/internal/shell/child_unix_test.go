//go:build unix

package shell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestExecClockJumps: the machine slept for longer than the lease, while timers
// stood still.
func TestExecClockJumps(t *testing.T) { // F15
	t.Parallel()
	r, lk := runUntil(t)
	c := expect.Value(r.start(exec.Command("sleep", "600")))(t)
	w := &watch{guardedRun: r, lock: lk, child: c}
	w.untilEnd()
	if !w.lost || c.status() != 128+int(syscall.SIGKILL) {
		t.Errorf("lost %v, status %d; want the command killed immediately", w.lost, c.status())
	}
}

// TestExecClockJumpsAgain: the machine slept for longer than the lease after
// the command was told to end, or while what it has started was ending.
func TestExecClockJumpsAgain(t *testing.T) { // F15
	t.Parallel()
	running, over := make(chan struct{}), make(chan struct{})
	close(over)
	for name, ended := range map[string]chan struct{}{"told": running, "ended": over} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, lk := runUntil(t)
				defer close(r.lines) // ends its reader
				defer func() { expect.Must(t, lk.Release()) }()
				began := time.Now()
				w := &watch{guardedRun: r, lock: lk, child: &child{ended: ended}, lost: ended == running, kill: time.After(r.stopTime())}
				w.checkClock()
				<-w.kill
				if late := time.Since(began); late != 0 {
					t.Errorf("killed %v after the lease", late)
				}
			})
		})
	}
}

// TestExecTooLate: the machine slept between the answer of the store and the
// start of the command.
func TestExecTooLate(t *testing.T) { // F15
	t.Parallel()
	r, lk := runUntil(t)
	file := filepath.Join(t.TempDir(), "ran")
	r.path, r.Command = "/bin/sh", []string{"sh", "-c", `: >"$0"`, file}
	if err := r.under(lk); err != console.ExitStatus(console.StatusUnavailable) {
		t.Errorf("status %v, want that of a command that did not run", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Error("the command ran:", err)
	}
}

// runUntil returns a run whose clock shows the end of its lease.
func runUntil(t *testing.T) (*guardedRun, *lock.Lock) {
	t.Helper()
	locker := expect.Value(lock.New(memstore.New(), nil))(t)
	lk := expect.Value(locker.Acquire(t.Context(), lock.Key{Name: "k"}))(t)
	wall := func() time.Time { return lk.Lease().Until }
	return &guardedRun{Exec: &Exec{Key: "k", Lease: lock.DefaultLease}, wall: wall, speaker: newSpeaker(false)}, lk
}

// TestFindGrep: without grep the guard does a part of its work, which must not
// go unsaid.
func TestFindGrep(t *testing.T) { // F64
	t.Parallel()
	folder := t.TempDir()
	if findGrep(folder) == nil {
		t.Error("found in an empty folder")
	}
	expect.Must(t, os.WriteFile(filepath.Join(folder, "grep"), nil, 0o700)) //nolint:gosec // it is to be executable
	expect.Must(t, findGrep("/nowhere:"+folder))
}

// TestWhyLost: there is always a cause, even if no renewal has failed yet.
func TestWhyLost(t *testing.T) { // F15, F20
	t.Parallel()
	failed := lock.Observation{Outcome: lock.OutcomeStoreFailed, Err: errors.New("lambdalock: the table is gone")}
	renewed := lock.Observation{Outcome: lock.OutcomeRenewed}
	for name, c := range map[string]struct {
		left time.Duration
		seen []lock.Observation
		want string
	}{
		"the last renewal failed": {time.Second, []lock.Observation{renewed, failed}, "the lease could not be renewed in time: it is over: the table is gone"},
		"one before it failed":    {time.Second, []lock.Observation{failed, renewed}, "the lease could not be renewed in time: it is over: the store has not answered, or lambdalock could not run"},
		"long before":             {time.Minute, nil, "the lock was lost, because somebody else released or took it, or the store lost its data: it is over"},
	} {
		w := &watch{guardedRun: &guardedRun{Exec: &Exec{Lease: 20 * time.Second}}}
		for _, o := range c.seen {
			w.observe(t.Context(), o)
		}
		if got := w.whyLost(c.left, "it is over"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

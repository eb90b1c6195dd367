package simulation

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/lambdalock/lambdalock/lock"
)

// report counts what happened in histories.
type report struct {
	Histories, Requests, Faults          int
	Acquired, Refused, Runs              int // acquisitions granted and not, and runs of a handler
	Overlaps, Stale                      int // overlaps that no promise rules out, effects that the fence refused
	Kills, Freezes, Panics               int
	TakenOver, LostLeases                int // as the engine observed them
	Overtime                             int // handlers whose lease to the deadline was renewed
	Completed, Lost, Skipped, WhileLimit int
	Watched, Cooldowns                   int // rows read, locks that ended with a cooldown
	MayRollBack, RolledBack              int // histories whose rows may go back to an earlier state, and rows that did
}

func (r *report) add(h report) {
	most := max(r.WhileLimit, h.WhileLimit)
	sum, more := reflect.ValueOf(r).Elem(), reflect.ValueOf(h)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	r.WhileLimit = most
}

// String returns the report in one line.
func (r report) String() string {
	return fmt.Sprintf("%d histories, %d requests, %d of them faulted; %d acquisitions, %d refusals; %d runs, %d completed, %d completions lost, %d skipped; "+
		"%d kills, %d freezes, %d panics, %d taken over, %d leases lost, %d renewed after their deadline; %d effects refused by their fence, %d overlaps beyond the assumptions; %d cooldowns; %d rows watched, %d went back",
		r.Histories, r.Requests, r.Faults, r.Acquired, r.Refused, r.Runs, r.Completed, r.Lost, r.Skipped,
		r.Kills, r.Freezes, r.Panics, r.TakenOver, r.LostLeases, r.Overtime, r.Stale, r.Overlaps, r.Cooldowns, r.Watched, r.RolledBack)
}

// mustVary fails the test if the histories did not reach what they are for.
// Fewer than ten need not.
func (r report) mustVary(t *testing.T, c Config) {
	t.Helper()
	if r.Histories >= 10 && (r.TakenOver == 0 || r.LostLeases == 0) {
		t.Errorf("%d locks taken over, %d leases lost: want some of each", r.TakenOver, r.LostLeases)
	}
	if r.Histories >= 20 && r.Overtime == 0 && c.Skew <= lock.DefaultGrace {
		t.Error("no handler outlived its deadline in a process that lived on")
	}
	if r.Histories >= 20 && r.WhileLimit < 2 {
		t.Errorf("never more than %d holders of the limited name, so its limit was not tried", r.WhileLimit)
	}
	if r.Histories >= 10 && r.Cooldowns == 0 && !c.NoCooldown {
		t.Error("no lock ended with a cooldown")
	}
	if r.MayRollBack >= 5 && r.RolledBack == 0 {
		t.Error("no row went back")
	}
	if c.beyond() && r.Histories >= 20 && (r.Overlaps == 0 || r.Stale == 0) {
		t.Errorf("%d overlaps, %d refused effects: the clocks did not matter", r.Overlaps, r.Stale)
	}
}

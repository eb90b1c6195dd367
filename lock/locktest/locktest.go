// Package locktest checks that a [driver.Store] keeps its contract. It also
// has a check of recorded histories, which other tests of locks need.
//
// The test of a new store takes a few lines:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Harness{
//			Open: func(t *testing.T) driver.Store { return mystore.New(…) },
//		})
//	}
package locktest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Harness describes the store under test. It lists what the store cannot do, so
// that a new store starts with every check.
type Harness struct {
	// Open returns a store. It may return the same one each time, because every
	// test uses its own names.
	Open func(t *testing.T) driver.Store
	// Advance moves the clock of a store that judges leases by its own clock, in
	// all by about a day. It is not called while a request is under way, and the
	// tests do not run in parallel. Nil means that the store judges by the times in
	// the requests.
	Advance func(d time.Duration)
	// NoDetail means that a refusal returns a row that is Untold. It skips the test
	// of interrupted events, which such a store cannot keep.
	NoDetail bool
	// Majority means that the store keeps several copies of each row, and decides
	// by most of them. It skips the comparison with the rules of [driver.Row] on
	// requests that no caller sends.
	Majority bool
	// NoFence means that the store has no fencing token.
	NoFence bool
	// MakeNewer changes the row of a name as if a later version of this library had
	// written it in another format. Nil means that the store's rows have no format,
	// and skips the test of it.
	MakeNewer func(t *testing.T, s driver.Store, name string)
	// Save returns a function that brings the row of a name back to the state that
	// it has now, as a failover or a restored backup may. Nil skips the tests of
	// it.
	Save func(t *testing.T, s driver.Store, name string) (restore func())
}

// Run runs all tests of the suite against the store of h, each as a subtest of
// t.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*fixture){
		"acquire":                       acquire,
		"held":                          held,
		"takeover":                      takeover,
		"no takeover before lease end":  noTakeoverBeforeLeaseEnd,
		"takeover clears the event":     takeoverClearsEvent,
		"concurrent claims":             concurrentClaims,
		"fence rises":                   fenceRises,
		"row goes back":                 rowGoesBack,
		"repeated acquire":              repeatedAcquire,
		"late claim":                    lateClaim,
		"late claim while held":         lateClaimWhileHeld,
		"late claims of earlier rounds": lateClaimsOfEarlierRounds,
		"late claim after a takeover":   lateClaimAfterTakeover,
		"late copies extend nothing":    lateCopiesExtendNothing,
		"earlier round is granted":      earlierRoundIsGranted,
		"clock behind":                  clockBehind,
		"repeated release":              repeatedRelease,
		"late holder":                   lateHolder,
		"renew":                         renew,
		"time zones":                    timeZones,
		"renew never revives":           renewNeverRevives,
		"late renewal":                  lateRenewal,
		"abandon":                       abandon,
		"abandon, held by another":      abandonHeldByAnother,
		"abandon, held by a dead owner": abandonHeldByDeadOwner,
		"cooldown":                      cooldown,
		"marks":                         marks,
		"concurrent marks":              concurrentMarks,
		"interrupted events":            interruptedEvents,
		"completed event":               completedEvent,
		"memory is stored unchanged":    memoryIsStoredUnchanged,
		"memory can shrink":             memoryCanShrink,
		"release keeps memory":          releaseKeepsMemory,
		"payload":                       payload,
		"stale order":                   staleOrder,
		"order without event":           orderWithoutEvent,
		"result":                        result,
		"result of an older event":      resultOfOlderEvent,
		"DeleteAfter after every step":  deleteAfterEveryStep,
		"newer format":                  newerFormat,
		"strange names":                 strangeNames,
		"strange events":                strangeEvents,
		"ended context":                 endedContext,
		"company":                       company,
		"company, contention":           companyContends,
		"company, ended context":        companyLeaves,
		"company, after an abandon":     companyAfterAbandon,
		"check":                         check,
		"read":                          read,
		"line":                          line,
		"no row":                        noRow,
		"random requests":               randomRequests,
		"every request to every row":    everyRequest,
	} {
		t.Run(name, func(t *testing.T) {
			if h.Advance == nil {
				t.Parallel()
			}
			now := time.Now().UTC().Truncate(time.Microsecond)
			test(&fixture{T: t, Harness: h, store: h.Open(t), name: newName(), now: now})
		})
	}
}

func newName() string { return "locktest/" + rand.Text() }

// fixture is the store of one test, with a name in it and a clock.
type fixture struct {
	*testing.T
	Harness
	store driver.Store
	name  string
	now   time.Time
}

// lease is short enough for every store.
const lease = 15 * time.Second

// run runs a part of the test as a subtest, on the same clock.
func (f *fixture) run(part string, test func(*fixture)) {
	f.Helper()
	sub := *f
	f.Run(part, func(t *testing.T) {
		sub.T = t
		test(&sub)
	})
	f.now = sub.now
}

func (f *fixture) advance(d time.Duration) {
	f.now = f.now.Add(d)
	if f.Advance != nil {
		f.Advance(d)
	}
}

// claim returns the claim of a new owner, a little later than the claim before.
func (f *fixture) claim(holder string) *driver.Claim {
	f.advance(time.Millisecond)
	return &driver.Claim{
		Name: f.name, Token: rand.Text(), Holder: holder,
		Now: f.now, Stamp: f.now, Until: f.now.Add(lease), DeleteAfter: f.now.Add(24 * time.Hour),
	}
}

func (f *fixture) eventClaim(holder, event string) *driver.Claim {
	c := f.claim(holder)
	c.Event = event
	return c
}

func (f *fixture) acquire(c *driver.Claim) (driver.Row, bool) {
	f.Helper()
	row, ok, err := f.store.Acquire(f.Context(), c)
	if err != nil {
		f.Fatalf("acquire for %s: %v", c.Holder, err)
	}
	return row, ok
}

func (f *fixture) mustAcquire(c *driver.Claim) driver.Row {
	f.Helper()
	row, ok := f.acquire(c)
	if !ok {
		f.Fatalf("acquire for %s was refused by %+v", c.Holder, row)
	}
	return row
}

func (f *fixture) mustRefuse(c *driver.Claim) driver.Row {
	f.Helper()
	row, ok := f.acquire(c)
	if ok {
		f.Fatalf("acquire for %s was granted: %+v", c.Holder, row)
	}
	return row
}

// release releases c's name. If memory is nil, the row keeps its own.
func (f *fixture) release(c *driver.Claim, memory *driver.Memory) (driver.Row, bool) {
	f.Helper()
	row, ok, err := f.store.Settle(f.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp})
	if err != nil {
		f.Fatalf("release of %s: %v", c.Holder, err)
	}
	return row, ok
}

func (f *fixture) mustRelease(c *driver.Claim, memory *driver.Memory) driver.Row {
	f.Helper()
	row, ok := f.release(c, memory)
	if !ok {
		f.Fatalf("release of %s was refused by %+v", c.Holder, row)
	}
	return row
}

func (f *fixture) renew(c *driver.Claim, until time.Time) (driver.Row, bool) {
	f.Helper()
	row, ok, err := f.store.Renew(f.Context(), &driver.Renewal{Name: c.Name, Token: c.Token, Now: f.now, Until: until, DeleteAfter: c.DeleteAfter})
	if err != nil {
		f.Fatalf("renewal of %s: %v", c.Holder, err)
	}
	return row, ok
}

// completing returns the row's memory with event completed.
func completing(row driver.Row, event string, until time.Time) *driver.Memory {
	m := row.Memory
	m.Completed = append(slices.Clone(m.Completed), driver.CompletedEvent{Event: event, Until: until.Truncate(time.Millisecond)})
	return &m
}

func check(f *fixture) {
	c, ok := f.store.(driver.Checker)
	if !ok {
		f.Skip("the store has no connection to open")
	}
	if err := c.Check(f.Context()); err != nil {
		f.Fatalf("check of a store that works: %v", err)
	}
}

// sameEnd reports whether two ends of one lease agree. A store with a clock of
// its own tells the end by the caller's clock, to about a second.
func (f *fixture) sameEnd(a, b time.Time) bool {
	if f.Advance == nil {
		return a.Equal(b)
	}
	return a.Sub(b).Abs() <= 3*time.Second
}

// read looks at rows as a tool does.
func read(f *fixture) {
	inspector, ok := f.store.(driver.Inspector)
	if !ok {
		f.Skip("the store is not a driver.Inspector")
	}
	if row, err := inspector.Read(f.Context(), f.name); err != nil || !row.Unknown() {
		f.Errorf("a name without a row has %+v, error %v", row, err)
	}
	f.name += "/é %2F"
	c := f.eventClaim("holder", "e1")
	c.Payload = "Zm9v"
	f.mustAcquire(c)
	other := *c
	other.Name, other.Token = "x"+c.Name, "other"
	f.mustAcquire(&other)

	row, err := inspector.Read(f.Context(), f.name)
	rows := []driver.NamedRow{{Name: f.name, Row: row}}
	for named, err := range inspector.Rows(f.Context(), f.name[:len(f.name)-3]) {
		if err != nil {
			f.Fatalf("reading the rows: %v", err)
		}
		rows = append(rows, named)
	}
	if err != nil || len(rows) != 2 {
		f.Fatalf("got %+v, error %v, want one row read and listed", rows, err)
	}
	for _, row := range rows {
		if row.Name != f.name || row.Token != c.Token || row.Holder != "holder" || row.Event != "e1" || row.Payload != "Zm9v" || row.Stamp.IsZero() || !f.NoFence && row.Fence <= 0 {
			f.Errorf("the row %+v does not describe the owner", row)
		}
		// The reader has a clock of its own, which is not that of the test.
		if f.Advance == nil && !row.Until.Equal(c.Until) {
			f.Errorf("the lease ends at %v, want %v", row.Until, c.Until)
		}
	}
	for range inspector.Rows(f.Context(), "") {
		break // the caller may stop
	}
}

func endedContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	c := f.claim("ended")
	for name, request := range map[string]func() (driver.Row, bool, error){
		"acquire": func() (driver.Row, bool, error) { return f.store.Acquire(ctx, c) },
		"renew": func() (driver.Row, bool, error) {
			return f.store.Renew(ctx, &driver.Renewal{Name: c.Name, Token: c.Token, Until: c.Until})
		},
		"release": func() (driver.Row, bool, error) {
			return f.store.Settle(ctx, &driver.Settlement{Name: c.Name, Token: c.Token})
		},
	} {
		f.run(name, func(f *fixture) {
			if _, ok, err := request(); err == nil || ok {
				f.Errorf("applied %v, error %v, want an error", ok, err)
			}
		})
	}
}

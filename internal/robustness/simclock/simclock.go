// Package simclock gives each process of a simulation its own clock and its own
// random numbers. The fake time of package testing/synctest is the true time.
package simclock

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
)

// Clock is the clock of one process. Its wall clock may be wrong, may be set
// and may drift. Its monotonic clock stands still while the process is frozen,
// and so do its timers and its contexts' deadlines. It implements
// [clock.Clock].
type Clock struct {
	began time.Time
	// See Schedule. Nil: the Go scheduler decides who goes first.
	turns   *schedule.Scheduler
	process uint64
	chance  *rand.ChaCha8

	mu      sync.Mutex
	ahead   time.Duration // of the wall clock, not counting the drift
	drift   float64
	lost    time.Duration // while the process was frozen before
	frozen  time.Time     // since when; zero: it is not
	thawed  chan struct{} // closed by Thaw; nil while the process runs
	waiting map[*timer]struct{}
	set     int64 // how many timers were set
}

// New returns a clock that is ahead of the true time by so much and gains drift
// seconds in each second. Both may be negative.
func New(ahead time.Duration, drift float64) *Clock {
	return &Clock{began: time.Now(), ahead: ahead, drift: drift, waiting: map[*timer]struct{}{}}
}

// Schedule makes the clock a part of the seed: whatever it wakes takes its turn
// as the process of that number, and its chance begins with seed. Call it
// before the clock is used.
func (c *Clock) Schedule(turns *schedule.Scheduler, process, seed uint64) {
	var long [32]byte
	binary.LittleEndian.PutUint64(long[:], seed)
	c.turns, c.process, c.chance = turns, process, rand.NewChaCha8(long)
}

// Uint64 implements [clock.Clock].
func (c *Clock) Uint64() uint64 {
	if c.chance == nil {
		return rand.Uint64()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chance.Uint64()
}

// Text implements [clock.Clock].
func (c *Clock) Text() string {
	if c.chance == nil {
		return cryptorand.Text()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var b [17]byte
	_, _ = c.chance.Read(b[:]) // it never fails
	return base32.StdEncoding.EncodeToString(b[:])[:26]
}

// Turn waits for the turn of the calling goroutine, which is about to do what.
func (c *Clock) Turn(what string) { c.turns.Wait(schedule.Point{Process: c.process, What: what}) }

// Step sets the wall clock forward, or back if d is negative.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// Freeze freezes the process, if it is not frozen already.
func (c *Clock) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thawed != nil {
		return
	}
	c.frozen, c.thawed = time.Now(), make(chan struct{})
	for t := range c.waiting {
		t.timer.Stop()
	}
}

// Thaw lets a frozen process run on.
func (c *Clock) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thawed == nil {
		return
	}
	c.lost += time.Since(c.frozen)
	close(c.thawed)
	c.thawed = nil
	for t := range c.waiting {
		t.start()
	}
}

// Awake returns once the process is not frozen. It reports whether it was.
func (c *Clock) Awake() (frozen bool) {
	for since := c.turns.Now(); ; {
		c.mu.Lock()
		thawed := c.thawed
		c.mu.Unlock()
		if thawed == nil {
			return frozen
		}
		frozen = true
		<-thawed
		c.turns.Wait(schedule.Point{Process: c.process, What: "thawed", Since: since})
	}
}

// ran returns for how long the process has run. c.mu must be held.
func (c *Clock) ran() time.Duration {
	now := time.Now()
	if c.thawed != nil {
		now = c.frozen
	}
	return now.Sub(c.began) - c.lost
}

// Now implements [clock.Clock].
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.began)
	wrong := c.ahead + time.Duration(c.drift*float64(since))
	now := twoReadings.Add(c.began.Add(since + wrong).Sub(twoReadings))
	// Package time offers no way to move only one of the two readings.
	(*readings)(unsafe.Pointer(&now)).monotonic = int64(c.ran())
	return now
}

// twoReadings has a monotonic reading, which the virtual time has not.
var twoReadings = time.Now()

// readings is the layout of a [time.Time] that has a monotonic reading.
type readings struct {
	_         uint64
	monotonic int64
	_         *time.Location
}

// timer is under way as long as it is in waiting.
type timer struct {
	clock *Clock
	f     func()
	due   time.Duration // when the process has run for that long
	since int64         // the turn in which it was set
	rank  int64         // among the timers of the clock
	timer *time.Timer
}

// longest keeps sums from overflowing.
const longest = 100 * 365 * 24 * time.Hour

// AfterFunc implements [clock.Clock].
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &timer{clock: c, f: f}
	t.Reset(d)
	return t
}

// start starts the real timer unless the process is frozen. The clock's mutex
// must be held.
func (t *timer) start() {
	if t.clock.thawed == nil {
		t.timer = time.AfterFunc(t.due-t.clock.ran(), t.fire)
	}
}

func (t *timer) fire() {
	t.clock.mu.Lock()
	at := t.point("timer")
	t.clock.mu.Unlock()
	t.clock.turns.Wait(at)
	t.clock.mu.Lock()
	_, waiting := t.clock.waiting[t]
	fires := waiting && t.clock.thawed == nil && t.due <= t.clock.ran()
	if fires {
		delete(t.clock.waiting, t)
	}
	t.clock.mu.Unlock()
	if fires {
		t.f()
	}
}

// point is where the timer waits for its turn. The clock's mutex must be held.
func (t *timer) point(what string) schedule.Point {
	return schedule.Point{Process: t.clock.process, What: what, Due: int64(t.due), Since: t.since, Rank: t.rank}
}

// Stop implements [clock.Timer].
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

func (t *timer) stop() bool {
	_, waiting := t.clock.waiting[t]
	delete(t.clock.waiting, t)
	if t.timer != nil {
		t.timer.Stop()
	}
	return waiting
}

// Reset implements [clock.Timer].
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	waiting := t.stop()
	t.due, t.since = t.clock.ran()+min(d, longest), t.clock.turns.Now()
	t.clock.set++
	t.rank = t.clock.set
	t.clock.waiting[t] = struct{}{}
	t.start()
	return waiting
}

// Sleep implements [clock.Clock].
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	t := &timer{clock: c, f: func() { close(over) }}
	t.Reset(d)
	c.mu.Lock()
	canceled := t.point("canceled")
	c.mu.Unlock()
	defer t.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		c.turns.Wait(canceled)
		return context.Cause(ctx)
	}
}

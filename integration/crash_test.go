//go:build unix

package integration_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

const (
	crashNames   = 10
	crashWorkers = 6
	mostStopped  = 2
	mostBlocked  = 6 // names whose holder is dead or stopped
	// crashFaults is how many of a thousand requests meet a fault.
	crashFaults = 100
	// readingDelay is more than the shortest time that a reading of a row takes:
	// where a server judges leases by its own clock, the end that a reader
	// computes is too early by that.
	readingDelay = 100 * time.Millisecond

	// killsPerHistory is how many kills are one history. The long form makes
	// several, each on a server of its own, and tells the figures of each.
	killsPerHistory = 100

	stoppedHolders = "stopped while they held a name"
)

// TestCrashes lets six processes handle the events of ten names, delivered at
// least once, over a proxy that has requests meet faults. Processes that hold a
// name are killed, or stopped for longer than their lease (F19, F20, F21, F1,
// F2, F3, F4, F5, F6, F11). Nobody takes a name over before the lease of its
// holder has ended, no event is lost, a completed event never runs again, a
// resource that checks fences refuses every late writer, and no name is held
// for a run that has released its lock or given up its claim.
//
// The faults and the victims are those of LAMBDALOCK_SEED; what meets them
// depends on the scheduling of the processes.
func TestCrashes(t *testing.T) {
	for _, b := range backends {
		kills := b.kills
		if testing.Short() {
			kills = b.killsShort
		}
		if kills == 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			seed := testSeed(t)
			for done := 0; done < kills; done += killsPerHistory {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					more := min(killsPerHistory, kills-done)
					c := newCrew(t, b, seed)
					c.trouble(more, (more+1)/2)
					c.drain()
					c.check()
				})
				seed++
			}
		})
	}
}

// crew is six processes, the source of their events, and the resource that
// their handlers write to.
type crew struct {
	t       *testing.T
	place   place         // behind the proxy
	lateEnd time.Duration // how much later than the watcher sees it a lease may end
	plan    *fault.Stream
	late    fault.Copies
	watcher *watcher
	choice  *rand.Rand // of what to do to whom; only for the goroutine of the test
	seed    uint64
	changed chan struct{} // has room for one

	mu      sync.Mutex
	random  *rand.Rand // of the events
	crew    []*member
	hired   int
	closing bool
	queue   []delivery
	next    int // delivery
	names   []*shelf
	events  map[string]*event
	runs    map[string]*run
	ends    map[string]turnEnd
	counts  map[string]int
}

// shelf is what the resource and the source know of one name.
type shelf struct {
	name  string
	fence int64 // the highest that the resource has seen
	last  *run  // that the resource saw begin
	runs  []*run
	open  []*event // in the order in which they were made
	made  int
}

// event is something that happened, and is delivered until it is acknowledged.
type event struct {
	name      string
	number    int
	open      int // deliveries that are not acknowledged yet
	written   int // accepted by the resource
	completed *run
}

// run is one handler that had the lock.
type run struct {
	began
	by        *member
	settled   time.Time // the handler has returned; zero: it has not
	completes bool
	written   bool
	outcome   string // empty: its process was killed
	killed    bool
	stopped   bool // at some time
	// seenUntil is the end of its lease as the watcher saw it, if that is later
	// than what the run itself knew: a renewal may be applied without an answer.
	seenUntil time.Time
}

// member is one process.
type member struct {
	*child
	in      *json.Encoder
	ended   chan struct{} // its output has ended
	under   map[int]delivery
	stopped bool
	holds   []*run // that it had when it was stopped
	killed  bool
}

func newCrew(t *testing.T, b backend, seed uint64) *crew {
	p := b.start(t)
	c := &crew{
		t: t, seed: seed, lateEnd: b.lateEnd, changed: make(chan struct{}, 1), events: map[string]*event{}, runs: map[string]*run{},
		ends: map[string]turnEnd{}, counts: map[string]int{},
	}
	c.choice, c.random = rand.New(rand.NewPCG(c.seed, 1)), rand.New(rand.NewPCG(c.seed, 2))
	if b.ownClock {
		c.lateEnd += readingDelay
	}
	mix := fault.Usual(c.seed, crashFaults)
	mix.Delay, mix.Late = 500*time.Millisecond, 3*time.Second
	c.plan = mix.Client(0)
	var stored []string
	for i := range crashNames {
		name := fmt.Sprint("crash/", i)
		c.names = append(c.names, &shelf{name: name})
		stored = append(stored, "/"+name)
	}
	c.watcher = startWatcher(t, p, stored)
	c.place = p.behindProxy(t, c.plan, &c.late)
	for range crashWorkers {
		c.hire()
	}
	return c
}

// hire starts a process.
func (c *crew) hire() {
	c.hired++
	m := &member{
		child: startChild(c.t, "work", task{Place: c.place, Who: fmt.Sprint("worker ", c.hired)}),
		ended: make(chan struct{}), under: map[int]delivery{},
	}
	m.in = json.NewEncoder(m.stdin)
	go func() {
		defer close(m.ended)
		for {
			var l fromWorker
			if err := m.lines.Decode(&l); err != nil {
				return // it was killed, perhaps in the middle of a line, or has ended
			}
			c.hear(m, l)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crew = append(c.crew, m)
	c.feed()
}

// hear takes in a line of a process.
func (c *crew) hear(m *member, l fromWorker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.Begin != nil:
		r := &run{began: *l.Begin, by: m, stopped: m.stopped, seenUntil: l.Begin.Until}
		c.runs[r.Run] = r
		s := c.shelf(r.Name)
		s.runs = append(s.runs, r)
		if r.Fence >= s.fence {
			s.fence, s.last = r.Fence, r
		}
	case l.Renewed != nil:
		for _, r := range c.shelf(l.Renewed.Name).runs {
			if r.Fence == l.Renewed.Fence && l.Renewed.Until.After(r.Until) {
				r.Until = l.Renewed.Until
			}
		}
	case l.Write != "":
		c.write(m, c.runs[l.Write])
	case l.Settling != nil:
		r := c.runs[l.Settling.Run]
		r.settled, r.completes = l.Settling.At, l.Settling.Completes
	case l.Done != nil:
		c.done(m, l.Done)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *crew) shelf(name string) *shelf {
	i := slices.IndexFunc(c.names, func(s *shelf) bool { return s.name == name })
	return c.names[i]
}

// write is a write to the resource, which refuses a fence below the highest
// that it has seen.
func (c *crew) write(m *member, r *run) {
	s, e := c.shelf(r.Name), c.events[r.Event]
	accepted := r.Fence >= s.fence
	switch {
	case !accepted:
		c.counts["stale writes refused"]++
	case s.last != r:
		c.counts["stale writes accepted"]++
		c.t.Errorf("%s wrote %s under fence %d after %s had begun under fence %d", r.Run, r.Name, r.Fence, s.last.Run, s.last.Fence)
	}
	if accepted {
		r.written = true
		e.written++
	}
	_ = m.in.Encode(toWorker{Wrote: &wrote{r.Run, accepted}}) // it may have been killed meanwhile
}

func (c *crew) done(m *member, d *done) {
	c.ends[d.End.Holder] = d.End
	c.counts["deliveries: "+d.Outcome]++
	was := m.under[d.ID]
	delete(m.under, d.ID)
	e := c.events[was.Event]
	r := c.runs[d.End.Holder]
	if r != nil {
		r.outcome = d.Outcome
	}
	switch d.Outcome {
	case outcomeCompleted:
		if e.completed != nil {
			c.t.Errorf("%s was completed by %s and by %s", was.Event, e.completed.Run, r.Run)
		}
		e.completed = r
		c.acknowledge(e)
	case outcomeBefore:
		// Somebody must have completed it: perhaps one who was killed before it could
		// say so, or who got no answer.
		if !slices.ContainsFunc(c.shelf(was.Name).runs, func(r *run) bool { return r.Event == was.Event && r.written && r.completes }) {
			c.t.Errorf("%s was skipped as completed, and no run of it had written and returned", was.Event)
		}
		c.acknowledge(e)
	default:
		c.queue = append(c.queue, was)
	}
	c.feed()
}

func (c *crew) acknowledge(e *event) {
	if e.open--; e.open == 0 {
		s := c.shelf(e.name)
		s.open = slices.DeleteFunc(s.open, func(o *event) bool { return o == e })
	}
}

// feed gives deliveries to the processes that have room.
func (c *crew) feed() {
	for _, m := range c.crew {
		for !m.stopped && !m.killed && len(m.under) < workerSlots {
			d, ok := c.nextDelivery()
			if !ok {
				return
			}
			m.under[d.ID] = d
			_ = m.in.Encode(toWorker{Deliver: &d}) // it may have ended: then it is killed soon
		}
	}
}

// nextDelivery returns a new event or one that is delivered again.
func (c *crew) nextDelivery() (delivery, bool) {
	if !c.closing && (len(c.queue) == 0 || c.random.IntN(3) > 0) {
		if d, ok := c.newEvent(); ok {
			return d, true
		}
	}
	if len(c.queue) == 0 {
		return delivery{}, false
	}
	d := c.queue[0]
	c.queue = c.queue[1:]
	return d, true
}

func (c *crew) newEvent() (delivery, bool) {
	for _, i := range c.random.Perm(len(c.names)) {
		s := c.names[i]
		// The name remembers each event for as long as it is delivered.
		if len(s.open) == 3 || len(s.open) > 0 && s.made > s.open[0].number+rememberedEvents/2 {
			continue
		}
		e := &event{name: s.name, number: s.made, open: 1}
		s.made++
		s.open = append(s.open, e)
		d := delivery{
			Name: s.name, Event: fmt.Sprintf("%s/%d", s.name, e.number),
			Work: time.Duration(100+c.random.IntN(300)) * time.Millisecond, Heeds: c.random.IntN(2) == 0,
		}
		if c.random.IntN(10) == 0 {
			d.Work = workerLease / 2 // so that there are renewals
		}
		c.events[d.Event] = e
		if c.random.IntN(5) == 0 { // a duplicate
			e.open++
			c.queue = append(c.queue, c.again(d))
		}
		return c.again(d), true
	}
	return delivery{}, false
}

// again returns another delivery of the same event.
func (c *crew) again(d delivery) delivery {
	c.next++
	d.ID = c.next
	return d
}

// trouble kills and stops processes, in random order. A stop counts if it met a
// process that held a name.
func (c *crew) trouble(kills, stops int) {
	for {
		frozen := c.thaw()
		left := stops - c.frozen() - frozen
		if kills == 0 && left == 0 && frozen == 0 {
			return
		}
		switch kill := c.choice.IntN(kills+max(1, left)) < kills; {
		case kill && c.kill():
			kills--
		case !kill && left > 0 && frozen < mostStopped && c.stop():
		default:
			c.pause()
		}
	}
}

func (c *crew) frozen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[stoppedHolders]
}

// pause waits until something has happened, or may have.
func (c *crew) pause() {
	select {
	case <-c.changed:
	case <-time.After(100 * time.Millisecond): // a lease has ended
	}
}

// victim returns a process that holds a name or, one time in ten, any that has
// something to do.
func (c *crew) victim() *member {
	running := c.running()
	if len(running) < crashWorkers-mostStopped || c.blocked() >= mostBlocked {
		return nil
	}
	anyone := c.choice.IntN(10) == 0
	c.choice.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	for _, m := range running {
		if len(m.under) > 0 && (anyone || len(c.holds(m)) > 0) {
			return m
		}
	}
	return nil
}

func (c *crew) running() []*member {
	return slices.DeleteFunc(slices.Clone(c.crew), func(m *member) bool { return m.stopped })
}

// holds returns the runs of a process whose handlers have not returned.
func (c *crew) holds(m *member) []*run {
	var holds []*run
	for _, s := range c.names {
		for _, r := range s.runs[max(0, len(s.runs)-20):] {
			if r.by == m && r.settled.IsZero() {
				holds = append(holds, r)
			}
		}
	}
	return holds
}

// blocked returns how many names have a holder that is dead or stopped.
func (c *crew) blocked() int {
	n := 0
	for _, s := range c.names {
		if s.last != nil && s.last.settled.IsZero() && (s.last.killed || s.last.by.stopped) {
			n++
		}
	}
	return n
}

// kill kills a process and starts another. Its events are delivered again.
func (c *crew) kill() bool {
	c.mu.Lock()
	m := c.victim()
	if m == nil {
		c.mu.Unlock()
		return false
	}
	m.killed = true
	c.mu.Unlock()
	if err := m.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-m.ended
	_ = m.cmd.Wait() // it was killed

	c.mu.Lock()
	for _, r := range c.holds(m) {
		r.killed = true
		c.counts["names of killed processes"]++
	}
	c.counts["killed"]++
	c.crew = slices.DeleteFunc(c.crew, func(o *member) bool { return o == m })
	c.queue = append(c.queue, slices.SortedFunc(maps.Values(m.under), byID)...)
	c.mu.Unlock()
	c.hire()
	return true
}

func byID(a, b delivery) int { return cmp.Compare(a.ID, b.ID) }

// stop stops a process. Its events are delivered again to others.
func (c *crew) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.victim()
	if m == nil {
		return false
	}
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	m.stopped, m.holds = true, c.holds(m)
	for _, r := range m.holds {
		r.stopped = true
	}
	for _, d := range slices.SortedFunc(maps.Values(m.under), byID) {
		c.events[d.Event].open++
		c.queue = append(c.queue, c.again(d))
	}
	c.feed()
	return true
}

// thaw continues the processes whose names were all taken over, and returns how
// many are still stopped.
func (c *crew) thaw() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	stopped := 0
	for _, m := range c.crew {
		if !m.stopped {
			continue
		}
		m.holds = slices.DeleteFunc(m.holds, func(r *run) bool { return !r.settled.IsZero() }) // its line was on its way
		if slices.ContainsFunc(m.holds, func(r *run) bool { return c.shelf(r.Name).last == r }) {
			stopped++
			continue
		}
		m.stopped = false
		if len(m.holds) > 0 {
			c.counts[stoppedHolders]++
			c.counts["names of stopped processes"] += len(m.holds)
		}
		if err := m.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			c.t.Error(err)
		}
		c.feed()
	}
	return stopped
}

// drain lets the processes handle what was not acknowledged yet, and ends them.
func (c *crew) drain() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	limit := time.After(2 * time.Minute)
	for c.unacknowledged() > 0 {
		select {
		case <-c.changed:
		case <-limit:
			c.t.Fatalf("%d events are lost, with LAMBDALOCK_SEED=%d", c.unacknowledged(), c.seed)
		}
	}
	for _, m := range c.crew {
		_ = m.stdin.Close()
		<-m.ended
		if err := m.cmd.Wait(); err != nil {
			c.t.Errorf("%s: %v", m.who, err)
		}
	}
	c.late.Wait()
	c.watcher.stop(c.t)
}

func (c *crew) unacknowledged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.names {
		n += len(s.open)
	}
	return n
}

// check compares what happened with what must hold.
func (c *crew) check() {
	c.checkEvents()
	for _, r := range c.watcher.held {
		if run := c.runs[r.holder]; run != nil && r.until.After(run.seenUntil) {
			run.seenUntil = r.until
		}
	}
	if err := locktest.CheckHistory(c.ownerships()); err != nil {
		c.t.Error(err)
	}
	if open := openTurns(c.ends); len(open) > 0 {
		c.t.Errorf("ended without giving up their claims: %v", open)
	}
	forNobody, first := c.watcher.check(c.ends)
	if forNobody > 0 {
		c.t.Errorf("%d readings found a name held for nobody: %s", forNobody, first)
	}
	if n := c.counts["stale writes refused"]; n == 0 {
		c.t.Error("no stale write came to the resource")
	}
	requests, faults := 0, 0
	for f, n := range c.plan.Met() {
		requests += n
		if f != fault.None {
			faults += n
		}
	}
	c.t.Logf("seed %d: %d events, %d runs; %d requests, of which %d met a fault", c.seed, len(c.events), len(c.runs), requests, faults)
	c.t.Logf("%d readings of rows, %d held, %d for nobody", c.watcher.readings, len(c.watcher.held), forNobody)
	c.checkTakeovers()
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		c.t.Logf("%s: %d", what, c.counts[what])
	}
	if c.t.Failed() {
		c.t.Logf("to play these faults again: LAMBDALOCK_SEED=%d", c.seed)
	}
}

// checkEvents checks the effects of each event. A run that wrote and then died,
// lost its lease or got no answer may be followed by another; one that
// completed its event may not.
func (c *crew) checkEvents() {
	for id, e := range c.events {
		if e.written == 0 {
			c.t.Errorf("%s was acknowledged, and never written", id)
		}
		c.counts[fmt.Sprintf("events written %d times", e.written)]++
	}
	for _, r := range c.runs {
		if by := c.events[r.Event].completed; by != nil && r.Fence > by.Fence {
			c.t.Errorf("%s ran under fence %d, after %s had completed it under fence %d", r.Event, r.Fence, by.Run, by.Fence)
		}
	}
}

// ownerships returns for each run how long the name was its own: until its
// handler returned, or its last lease that it knew of ended.
func (c *crew) ownerships() []locktest.Hold {
	var holds []locktest.Hold
	for _, r := range c.runs {
		h := locktest.Hold{Name: r.Name, Holder: r.Run, Fence: r.Fence, Start: r.At, End: r.Until}
		if !r.settled.IsZero() && r.settled.Before(h.End) {
			h.End = r.settled
		}
		if h.Start.After(h.End) { // it was stopped before it could begin
			h.Start = h.End
		}
		holds = append(holds, h)
	}
	return holds
}

// checkTakeovers checks that a dead or stopped holder's name is not taken over
// before the end of the lease, and that no claim of the next one is refused
// after it.
func (c *crew) checkTakeovers() {
	early, after, refused := 0, map[string][]time.Duration{}, 0
	for _, s := range c.names {
		runs := slices.SortedFunc(slices.Values(s.runs), func(a, b *run) int { return cmp.Compare(a.Fence, b.Fence) })
		for i, r := range runs[:max(0, len(runs)-1)] {
			next := runs[i+1]
			how := "killed"
			switch {
			case r.killed && r.settled.IsZero():
			case r.stopped && r.settled.After(r.seenUntil):
				how = "stopped"
			default:
				continue
			}
			c.counts["taken over from "+how+" holders"]++
			if next.At.Before(r.Until) {
				early++
			}
			if next.RefusedBy != r.Fence {
				continue // somebody may have had it in between
			}
			if !next.Asked.After(r.seenUntil) && !next.Unanswered {
				after[how] = append(after[how], next.At.Sub(r.seenUntil))
			}
			free := r.seenUntil.Add(c.lateEnd)
			if last := slices.MaxFunc(append(next.Refused, time.Time{}), time.Time.Compare); last.After(free) {
				refused++
				c.t.Errorf("%s was refused the name of %s %v after lease end", next.Run, r.Run, last.Sub(free))
			}
		}
	}
	for _, how := range []string{"killed", "stopped"} {
		all := slices.Sorted(slices.Values(after[how]))
		if c.counts["taken over from "+how+" holders"] == 0 {
			c.t.Errorf("no name of a %s holder was taken over", how)
		}
		if len(all) == 0 {
			continue
		}
		c.t.Logf("taken over from %s holders by a waiter with answers: %d; after %v (median), %v (99 of 100), %v (last)",
			how, len(all), quantile(all, 0.5).Round(time.Millisecond), quantile(all, 0.99).Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
	}
	c.counts["taken over before lease end"] = early
	c.counts["not taken over at lease end"] = refused
	if early > 0 {
		c.t.Errorf("%d names were taken over before lease end", early)
	}
}

// behindProxy returns the same place as seen through a proxy with faults.
func (p place) behindProxy(t *testing.T, plan fault.Plan, late fault.Late) place {
	t.Helper()
	scheme, target, _ := strings.Cut(p.Endpoints[0], "://")
	var proxy *fault.Proxy
	var err error
	switch p.Kind {
	case "redis":
		proxy, err = fault.NewRESPProxy(target, plan, late)
	default:
		dialect := map[string]fault.Dialect{"table": fault.DynamoDB, "s3": fault.S3, "azblob": fault.Azure}[p.Kind]
		proxy, err = fault.NewHTTPProxy(p.Endpoints[0], dialect, plan, late)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return place{p.Kind, []string{scheme + "://" + proxy.Addr}}
}

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// option is something that may happen next.
type option struct {
	name string
	do   func()
}

// engineRun is the state of one run of the engine.
type engineRun struct {
	t       *testing.T
	store   driver.Store
	began   time.Time
	trace   []string
	names   []string // of all rows
	changed chan struct{}
	stop    context.CancelFunc
	all     sync.WaitGroup

	mu          sync.Mutex
	invocations []*invocation
	owners      map[string]*invocation // by token
	answered    map[string]bool        // rows and tokens whose release was sent: whether it was answered
	copies      []*request
	done        map[string]bool      // names and events
	order       map[string]string    // of the owner of each row
	highest     map[string]string    // completed order of each row
	begun       map[string]bool      // names and events whose work has begun, and did not fail
	relying     map[*invocation]bool // have marked a row, and were not served since
	violation   string
}

// invocation is one invocation of a run.
type invocation struct {
	run    *engineRun
	name   string
	ctx    context.Context
	locker *lock.Locker
	held   map[string]context.Context // work, by name
	asked  []*request                 // without an answer
	log    []string                   // what it was told
	seen   driver.Row                 // in the last answer to a claim
	over   bool
	killed bool
	once   bool // the work of its event may not run twice
	failed bool // its event comes again
}

// request is a request to the store, or the work of an invocation, which wants
// to know whether it succeeds.
type request struct {
	in    *invocation
	text  string
	row   string
	apply func() (driver.Row, bool, error) // nil: work
	reply chan reply
}

func (r *request) String() string { return r.in.name + "'s " + r.text }

type reply struct {
	row driver.Row
	ok  bool
	err error
}

var (
	errLost     = &driver.Error{Store: "explorer", Err: errors.New("connection lost")}
	errRejected = &driver.Error{Store: "explorer", Answered: true, Unapplied: true, Conflict: true, Err: errors.New("another write is under way")}
)

func newEngineRun(t *testing.T, e *exploration) *engineRun {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	s := &engineRun{
		t: t, store: e.open(), began: time.Now(), names: []string{"/n0", "/n1", "/slot:2:n0"}, changed: make(chan struct{}, 1),
		stop: stop, owners: map[string]*invocation{}, answered: map[string]bool{}, done: map[string]bool{}, order: map[string]string{}, highest: map[string]string{}, begun: map[string]bool{}, relying: map[*invocation]bool{},
	}
	for i, script := range e.play.scripts {
		in := &invocation{run: s, name: string(rune('a' + i)), ctx: ctx, held: map[string]context.Context{}, once: e.play.options.OnInterrupted != nil}
		o := e.play.options
		o.Logger = slog.New(slog.DiscardHandler)
		o.Holder = func(context.Context) string { return in.name }
		var err error
		if in.locker, err = lock.New(gate{in}, &o); err != nil {
			t.Fatal(err)
		}
		s.invocations = append(s.invocations, in)
		s.all.Go(func() {
			script(in)
			s.mu.Lock()
			in.over = true
			s.mu.Unlock()
			s.notify()
		})
	}
	return s
}

// end lets every invocation come to its end.
func (s *engineRun) end() {
	s.stop()
	for _, in := range s.invocations {
		s.kill(in)
	}
	s.all.Wait()
}

func (s *engineRun) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// own notes who has to release the rows of a token.
func (s *engineRun) own(in *invocation, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[token] = in
}

func (s *engineRun) breaks(format string, args ...any) {
	if s.violation == "" {
		s.violation = fmt.Sprintf(format, args...)
	}
}

// holds notes that the invocation relies on the lock until its work ends.
func (in *invocation) holds(name string, work context.Context) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	in.held[name] = work
}

// ends notes that the invocation does not rely on the lock any more.
func (in *invocation) ends(name string) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	delete(in.held, name)
}

// beginsOnce checks that the work of an event that may not run twice has not
// begun before (P8).
func (in *invocation) beginsOnce(key lock.Key) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	if in.once && in.run.begun[key.Name+key.Event] {
		in.run.breaks("P8: %s works for %s, whose work has begun before", in.name, key.Event)
	}
	in.run.begun[key.Name+key.Event] = true
}

// endsOnce notes the end of the work, unless nobody knows of it.
func (in *invocation) endsOnce(key lock.Key, succeeded bool) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	if !succeeded && !in.killed {
		delete(in.run.begun, key.Name+key.Event)
	}
}

// work reports whether the work succeeded.
func (in *invocation) work(ctx context.Context) bool {
	_, ok, _ := in.send(ctx, &request{text: "work"})
	return ok && ctx.Err() == nil
}

// fails notes that the event comes again.
func (in *invocation) fails() {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	in.failed = true
	delete(in.run.relying, in)
}

// begins returns who is served by a run that begins now.
func (in *invocation) begins() []*invocation {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	return slices.Collect(maps.Keys(in.run.relying))
}

// serve notes that a run has served them.
func (in *invocation) serve(all []*invocation) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	for _, served := range all {
		delete(in.run.relying, served)
	}
}

// refused checks the answer to an invocation that may not run (P4, P6).
func (in *invocation) refused(key lock.Key, err error) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	in.log = append(in.log, fmt.Sprintf("%T", err))
	if errors.Is(err, lock.ErrHeld) && in.seen.Token == "" {
		in.run.breaks("P4: %s was refused %s, which nobody holds", in.name, key.Name)
	}
	e := (*lock.CompletedError)(nil)
	switch {
	case !errors.As(err, &e):
	case e.Stale && in.run.highest["/"+key.Name] < key.Order:
		in.run.breaks("P6: %s was told that order %s is stale, and none as high is completed", in.name, key.Order)
	case !e.Stale && !in.run.done[key.Name+key.Event]:
		in.run.breaks("P6: %s was told that %s is completed", in.name, key.Event)
	}
}

// completed checks that what was confirmed is remembered (P5).
func (in *invocation) completed(key lock.Key, err error) {
	in.run.mu.Lock()
	defer in.run.mu.Unlock()
	if err == nil && key.Event != "" && !in.run.done[key.Name+key.Event] {
		in.run.breaks("P5: the completion of %s was confirmed, and nothing remembers it", key.Event)
	}
}

// send waits until the explorer decides what becomes of the request.
func (in *invocation) send(ctx context.Context, r *request) (driver.Row, bool, error) {
	s := in.run
	r.in, r.reply = in, make(chan reply, 1)
	s.mu.Lock()
	if in.killed {
		s.mu.Unlock()
		return driver.Row{}, false, &driver.Error{Lasting: true, Store: "explorer", Answered: true, Unapplied: true, Err: errors.New("killed")}
	}
	in.asked = append(in.asked, r)
	s.mu.Unlock()
	s.notify()
	select {
	case a := <-r.reply:
		return a.row, a.ok, a.err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.withdraw(r) {
			s.keep(r)
		}
		return driver.Row{}, false, ctx.Err()
	}
}

// withdraw reports whether the request was still without an answer.
func (s *engineRun) withdraw(r *request) bool {
	i := slices.Index(r.in.asked, r)
	if i < 0 {
		return false
	}
	r.in.asked = slices.Delete(r.in.asked, i, i+1)
	return true
}

// short returns the name of a row, the same for all slots of a limited name,
// which are asked in random order.
func short(row string) string { return row[len(row)-2:] }

// gate is the store as an invocation sees it.
type gate struct{ in *invocation }

func (g gate) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim, s := *c, g.in.run
	s.own(g.in, claim.Token)
	return g.in.send(ctx, &request{text: "claim of " + short(c.Name), row: c.Name, apply: func() (driver.Row, bool, error) { return s.acquire(&claim) }})
}

func (g gate) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	renewal := *r
	return g.in.send(ctx, &request{text: "renewal of " + short(r.Name), row: r.Name, apply: func() (driver.Row, bool, error) {
		return g.in.run.store.Renew(context.Background(), &renewal)
	}})
}

func (g gate) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	settlement, s := *t, g.in.run
	text := "release of " + short(t.Name)
	if t.Abandon {
		text = "abandoning of " + short(t.Name)
	}
	s.mu.Lock()
	s.answered[t.Name+t.Token] = false
	s.mu.Unlock()
	row, ok, err := g.in.send(ctx, &request{text: text, row: t.Name, apply: func() (driver.Row, bool, error) { return s.release(&settlement) }})
	if err == nil {
		s.mu.Lock()
		s.answered[t.Name+t.Token] = true
		s.mu.Unlock()
	}
	return row, ok, err
}

// Mark implements [driver.Coalescer].
func (g gate) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	mark, s := *m, g.in.run
	return g.in.send(ctx, &request{text: "mark of " + short(m.Name), row: m.Name, apply: func() (driver.Row, bool, error) {
		row, ok, err := s.store.(driver.Coalescer).Mark(context.Background(), &mark)
		if ok {
			s.mu.Lock()
			s.relying[g.in] = true
			s.mu.Unlock()
		}
		return row, ok, err
	}})
}

// acquire applies a claim, and checks what is granted (P1, P3, P5).
func (s *engineRun) acquire(c *driver.Claim) (driver.Row, bool, error) {
	before := s.read(c.Name)
	row, ok, err := s.store.Acquire(context.Background(), c)
	switch {
	case !ok:
	case before.Token != "" && before.Token != c.Token && !before.Until.Before(c.Now):
		s.breaks("P1: %s was taken over before its lease had ended", c.Name)
	case before.Token != c.Token && row.Fence <= before.Fence:
		s.breaks("P3: the fence of %s is %d after %d", c.Name, row.Fence, before.Fence)
	case c.Event != "" && s.done[strings.TrimPrefix(c.Name, "/")+c.Event]:
		s.breaks("P5: %s was granted for %s, which was completed", c.Name, c.Event)
	}
	if ok {
		s.order[c.Name] = c.Order
	}
	return row, ok, err
}

func (s *engineRun) release(t *driver.Settlement) (driver.Row, bool, error) {
	event := s.read(t.Name).Event
	row, ok, err := s.store.Settle(context.Background(), t)
	if ok && t.Memory != nil && t.Memory.Has(event, time.Now()) {
		s.done[strings.TrimPrefix(t.Name, "/")+event] = true
		s.highest[t.Name] = max(s.highest[t.Name], s.order[t.Name])
	}
	return row, ok, err
}

func (s *engineRun) read(name string) driver.Row {
	row, err := s.store.(driver.Inspector).Read(context.Background(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return row
}

// options returns what may happen next, first what happens by default. Without
// an invocation that is at work, nothing happens any more.
func (s *engineRun) options() []option {
	s.mu.Lock()
	defer s.mu.Unlock()
	var usual, faults []option
	atWork := false
	for _, in := range s.invocations {
		atWork = atWork || !in.over
		for _, r := range in.asked {
			if r.apply == nil {
				usual = append(usual, option{in.name + "'s work succeeds", func() { s.answer(r, reply{ok: true}) }})
				faults = append(faults, option{in.name + "'s work fails", func() { s.answer(r, reply{}) }})
				continue
			}
			what := r.String()
			usual = append(usual, option{what + " is answered", func() { s.answerWith(r, false, true) }})
			faults = append(
				faults,
				option{what + " is answered, and a copy is under way", func() { s.answerWith(r, true, true) }},
				option{what + " is lost, or late", func() { s.lose(r) }},
				option{what + " is rejected", func() { s.answer(r, reply{err: errRejected}) }},
				option{what + " is applied, and its answer lost", func() { s.answerWith(r, false, false) }},
			)
		}
		if !in.over && !in.killed {
			faults = append(faults, option{in.name + " is killed", func() { s.kill(in) }})
		}
	}
	if !atWork {
		return nil
	}
	for i, r := range s.copies {
		if i == 0 || r.String() != s.copies[i-1].String() {
			faults = append(faults, option{"a late copy arrives: " + r.String(), func() { s.applyCopy(i) }})
		}
	}
	faults = append(faults, option{"a second passes", func() { s.pass(1100 * time.Millisecond) }}, option{"the lease passes", func() { time.Sleep(5 * time.Second) }})
	if len(usual) == 0 {
		usual = []option{{"time passes", func() { s.pass(time.Minute) }}}
	}
	return append(usual, faults...)
}

// pass lets time pass until something happens, and then to the end of the tenth
// of a second, because the engine's pauses are random.
func (s *engineRun) pass(d time.Duration) {
	const tenth = 100 * time.Millisecond
	defer func() { time.Sleep(tenth - time.Since(s.began)%tenth) }()
	select {
	case <-s.changed: // before
	default:
	}
	select {
	case <-s.changed:
	case <-time.After(d):
	}
}

func (s *engineRun) answer(r *request, a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.withdraw(r) {
		if a.err == nil && strings.HasPrefix(r.text, "claim") {
			r.in.seen = a.row
		}
		r.in.log = append(r.in.log, fmt.Sprintf("%s: %v %s %v", r.text, a.ok, s.canonical(&a.row), a.err))
		r.reply <- a
	}
}

// answerWith applies a request. A refusal that its sender gets has no copies.
func (s *engineRun) answerWith(r *request, copied, told bool) {
	row, ok, err := r.apply()
	if copied && ok {
		s.keep(r)
	}
	if !told {
		row, ok, err = driver.Row{}, false, errLost
	}
	s.answer(r, reply{row, ok, err})
}

func (s *engineRun) lose(r *request) {
	s.keep(r)
	s.answer(r, reply{err: errLost})
}

// keep keeps a request that may still arrive. The order does not depend on when
// it was lost.
func (s *engineRun) keep(r *request) {
	if r.apply == nil {
		return
	}
	s.copies = append(s.copies, r)
	slices.SortStableFunc(s.copies, func(a, b *request) int { return strings.Compare(a.String(), b.String()) })
}

func (s *engineRun) applyCopy(i int) {
	r := s.copies[i]
	s.copies = slices.Delete(s.copies, i, i+1)
	_, _, _ = r.apply()
}

// kill ends an invocation without another request. What it sent may still
// arrive.
func (s *engineRun) kill(in *invocation) {
	s.mu.Lock()
	in.killed = true
	asked := slices.Clone(in.asked)
	clear(in.held)
	s.mu.Unlock()
	for _, r := range asked {
		s.keep(r)
		s.answer(r, reply{err: &driver.Error{Lasting: true, Store: "explorer", Answered: true, Unapplied: true, Err: errors.New("killed")}})
	}
}

// check looks at all rows (P2, P4).
func (s *engineRun) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		row := s.read(name)
		owner := s.owners[row.Token]
		if row.Token == "" || owner == nil || !owner.over || row.Until.Before(time.Now()) {
			continue
		}
		answered, sent := s.answered[name+row.Token]
		if !owner.killed && (answered || !sent) {
			s.breaks("P4: %s is held for nobody: by %s until %v", name, owner.name, row.Until.Sub(s.began))
		}
	}
	for _, in := range s.invocations {
		for name, work := range in.held {
			if work.Err() == nil && !s.ownsOne(in, name) {
				s.breaks("P2: %s works, and does not hold %s any more", in.name, name)
			}
		}
	}
}

// ownsOne reports whether an invocation owns the name, or a slot of it.
func (s *engineRun) ownsOne(in *invocation, name string) bool {
	for _, row := range s.names {
		if strings.HasSuffix(row, name) && s.owners[s.read(row).Token] == in {
			return true
		}
	}
	return false
}

// late applies all copies that are still under way after the last invocation.
func (s *engineRun) late() {
	for len(s.copies) > 0 && s.violation == "" {
		s.trace = append(s.trace, fmt.Sprintf("at the end, a late copy arrives: %v", s.copies[0]))
		s.applyCopy(0)
		s.check()
	}
	// An event that comes again runs, and serves those who rely on one.
	again := slices.ContainsFunc(s.invocations, func(in *invocation) bool { return in.failed || in.killed })
	for in := range s.relying {
		if !again {
			s.breaks("P6: %s was coalesced, and neither did a run begin since, nor does any event come again", in.name)
		}
	}
}

// hash returns a number for what every invocation was told, and for what is
// still to come.
func (s *engineRun) hash() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := fnv.New64a()
	now := time.Since(s.began).Round(time.Second)
	fmt.Fprintln(h, now)
	for _, in := range s.invocations {
		fmt.Fprintln(h, in.name, in.over, in.killed, in.log)
		for _, r := range in.asked {
			fmt.Fprintln(h, r.text)
		}
	}
	for _, name := range s.names {
		row := s.read(name)
		fmt.Fprintln(h, s.canonical(&row))
	}
	for _, r := range s.copies {
		fmt.Fprintln(h, r)
	}
	return h.Sum64()
}

// canonical describes a row without what differs from run to run.
func (s *engineRun) canonical(row *driver.Row) string {
	owner := "nobody"
	if in := s.owners[row.Token]; in != nil {
		owner = in.name
	}
	var events []string
	for _, c := range row.Memory.Completed {
		events = append(events, c.Event)
	}
	for _, e := range row.Memory.Interrupted {
		events = append(events, "interrupted "+e.Event)
	}
	until := time.Duration(0)
	if row.Token != "" {
		until = row.Until.Sub(s.began).Round(time.Second)
	}
	return fmt.Sprintf("%s until %v, %v %s %d", owner, until, events, row.Memory.HighestOrder, row.Marks)
}

package server

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Server is one server, one group of a primary and its replicas, or one
// cluster. It is safe for concurrent use.
type Server struct {
	client  redis.Scripter
	pool    *redis.Client // that New was given, for its statistics; may be nil
	name    string        // what errors call it
	repeats bool          // the client repeats requests by itself
	cluster bool          // the client follows redirections
	told    atomic.Bool
	process atomic.Pointer[string] // the server's run_id; nil: it has not told it
}

// String returns what errors call the server.
func (s *Server) String() string { return s.name }

// Process returns the server's run_id. It is empty if the server has not told
// it.
func (s *Server) Process() string {
	if id := s.process.Load(); id != nil {
		return *id
	}
	return ""
}

// Check runs a script that only reads, and fails if the user lacks a command
// that another script needs.
func (s *Server) Check(ctx context.Context) error {
	return s.run(ctx, checkScript, "", view{}, s.asks()).Err
}

// CheckRead is Check for a person, who only reads.
func (s *Server) CheckRead(ctx context.Context) error {
	return s.run(ctx, readScript, "", view{}, s.asks()).Err
}

// Read reads a row.
func (s *Server) Read(ctx context.Context, name string, now time.Time) Answer {
	return s.run(ctx, readScript, name, view{now: now}, "")
}

// Answer is what a script answered.
type Answer struct {
	Row driver.Row
	// Applied is 0 if nothing was applied. After a settlement it says what was.
	Applied int64
	// ClaimStamp is the stamp of the claim that has the row: not that of a claim
	// that was given up since, and never above the stamp of the row.
	ClaimStamp string
	Cleared    string // the token whose lock was cleared last, see [Clears]
	// MemoryStamp is the stamp of the claim that completed last, in a quorum.
	MemoryStamp string
	// Before is the fence that the row had before the claim. If that is not known,
	// it is one less than the row's.
	Before int64
	// ClaimBefore is the stamp of the claim that had the row before the claim, or
	// that of the row if nobody held it. It is that of the claim itself if it was
	// granted before, and empty if that is not known.
	ClaimBefore string
	// Dead is the run of the dead owner from whom the claim took over, now or when
	// it was granted before, or another claim did that was given up. DeadClaim is
	// the stamp of that owner's claim. They are zero if there is none.
	Dead      driver.InterruptedEvent
	DeadClaim string
	// Repeatable is whether the client may have repeated the request by itself.
	// Then a refusal may mean that an earlier attempt was applied.
	Repeatable bool
	Err        error
}

// Released is set in [Answer.Applied] if a settlement released the row, and not
// if it only raised the stamp.
const Released = 1

// Acquire sends a claim. The fence becomes leastFence or more. install has the
// fields of a row's memory, for a server that has lost its row; nil otherwise.
//
// A script cannot tell which interrupted events a row must keep, so a dead
// owner whose event is to be kept refuses the claim, and a second request takes
// over from that owner only.
func (s *Server) Acquire(ctx context.Context, c *driver.Claim, leastFence int64, install []any) Answer {
	a := s.acquire(ctx, c, leastFence, nil, install)
	if a.Err == nil && a.Applied == 0 && a.Row.Leaves(c) && a.Row.Judge(c) == driver.Granted {
		return s.acquire(ctx, c, leastFence, &a.Row, install)
	}
	return a
}

// acquire sends a claim, which takes over from the owner of dead if that is not
// nil.
func (s *Server) acquire(ctx context.Context, c *driver.Claim, leastFence int64, dead *driver.Row, install []any) Answer {
	from, interrupted := "", ""
	if dead != nil {
		taken := *dead
		taken.Take(c, c.Stamp)
		from, interrupted = dead.Token, interruptedLines(taken.Memory.Interrupted)
	}
	entry := ""
	if c.Event != "" && install == nil {
		entry = escape(c.Event) + " "
	}
	args := []any{
		c.Token, Timestamp(c.Stamp), Timestamp(c.Until), lease(c.Until.Sub(c.Now)), c.Holder, c.Event, c.Payload,
		entry, moment(c.Now), c.Order, Timestamp(c.DeleteAfter), keep(c.DeleteAfter.Sub(c.Now)), leastFence, s.asks(), c.Place, flag(c.TakesMarks),
		c.InterruptedFor.Milliseconds(), from, interrupted,
	}
	return s.run(ctx, acquireScript, c.Name, view{token: c.Token, now: c.Now}, append(args, install...)...)
}

// Renew sends a renewal. claimStamp replaces that of a row that the token owns
// through an earlier round of its claim, or until its lease ended there; empty:
// none, and an ended lease stays ended. The fence becomes leastFence or more.
func (s *Server) Renew(ctx context.Context, r *driver.Renewal, claimStamp string, leastFence int64) Answer {
	return s.run(ctx, renewScript, r.Name, view{token: r.Token, now: r.Now},
		r.Token, Timestamp(r.Until), lease(r.Until.Sub(r.Now)), Timestamp(r.DeleteAfter), keep(r.DeleteAfter.Sub(r.Now)), claimStamp, leastFence)
}

// Condition says which rows of its owner a settlement does not release. A node
// of a quorum may have what the other nodes have no longer. After SameRound, by
// which a claim is given up, the row still tells from whom that one took over.
type Condition string

// The conditions of a settlement.
const (
	Always    Condition = ""
	SameRound Condition = "same round" // those that a claim with a higher stamp than raise was granted
	Clears    Condition = "clears"     // the same; the owner is told that it was cleared
	InTime    Condition = "in time"    // those whose lease has ended, if it completes something: they become free
	// Takes settles a row without a holder, as if the owner had held it, unless a
	// later owner has completed something there.
	Takes Condition = "takes"
)

// Settle sends a settlement, and raises the row's stamp to raise if that is not
// zero. more has fields and values beside those of the memory.
func (s *Server) Settle(ctx context.Context, t *driver.Settlement, raise time.Time, only Condition, more ...any) Answer {
	stamp := ""
	if !raise.IsZero() {
		stamp = Timestamp(raise)
	}
	now := clock.Wall(clock.From(ctx))
	cooldown := ""
	if !t.Until.IsZero() {
		cooldown = t.CooldownToken
	}
	args := []any{
		t.Token, stamp, Timestamp(t.DeleteAfter), keep(t.DeleteAfter.Sub(now)), string(only),
		cooldown, Timestamp(t.Until), lease(t.Until.Sub(t.Now)), t.MarksBelow,
	}
	if t.Memory != nil {
		args = append(append(args, MemoryFields(t.Memory)...), more...)
	}
	a := s.run(ctx, settleScript, t.Name, view{token: t.Token, now: now}, args...)
	// After another claim, the row does not tell whether the lock was lost, or
	// released by an earlier attempt.
	alone := a.Row.Stamp.Equal(t.Stamp.Truncate(time.Microsecond))
	if a.Err == nil && a.Applied == 0 && a.Repeatable && !t.Abandon && alone && a.SettledBefore(t) {
		a.Applied = Released
	}
	return a
}

// SettledBefore reports whether t was applied before, or in a quorum the rest
// of it when the node was cleared. If t completes something, what the row
// remembers tells that: another claim may have raised the stamp since, and
// later owners may have completed more. If t asks for a cooldown, only a row
// with its token counts: one that was free, or was cleared, would let the next
// claim in. A row that completed the event may have a later owner by now.
func (a *Answer) SettledBefore(t *driver.Settlement) bool {
	row, m := &a.Row, t.Memory
	completes := m != nil && len(m.Completed) > 0
	stamp := t.Stamp.Truncate(time.Microsecond)
	switch {
	case row.Token == t.Token, m != nil && row.Memory.HighestOrder < m.HighestOrder,
		m != nil && interruptedLines(row.Memory.Interrupted) != interruptedLines(m.Interrupted):
		return false
	case !t.Until.IsZero() && row.Cooldown != t.Token && !(completes && row.Stamp.After(stamp)):
		return false
	case completes:
		last := m.Completed[len(m.Completed)-1]
		return slices.ContainsFunc(row.Memory.Completed, func(c driver.CompletedEvent) bool {
			return c.Event == last.Event && c.Until.UnixMilli() == last.Until.UnixMilli()
		})
	case m != nil && m.HighestOrder != "", row.Cooling() && row.Cooldown == t.Token, a.Cleared == t.Token:
		return true
	}
	return row.Token == "" && !t.Stamp.IsZero() && row.Stamp.Equal(stamp)
}

// flag returns how a script is told that something is so.
func flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// Mark sends a mark.
func (s *Server) Mark(ctx context.Context, m *driver.Mark) Answer {
	return s.run(ctx, markScript, m.Name, view{token: m.Token, now: clock.Wall(clock.From(ctx))}, m.Token, Timestamp(m.Stamp), flag(m.Close))
}

// Join gives out the next place in line.
func (s *Server) Join(ctx context.Context, name string) Answer {
	return s.run(ctx, joinScript, name, view{now: clock.Wall(clock.From(ctx))})
}

// asks returns "1" until the server has told its settings, or that it does not
// tell them.
func (s *Server) asks() string {
	if s.told.Load() {
		return ""
	}
	return "1"
}

// run runs a script. Redis forgets scripts when it restarts, and after SCRIPT
// FLUSH; then the text is sent again.
func (s *Server) run(ctx context.Context, script *redis.Script, name string, v view, args ...any) Answer {
	if err := ctx.Err(); err != nil {
		return Answer{Err: &driver.Error{Store: s.name, Unapplied: true, Err: err}}
	}
	out, err := script.Run(withOnce(ctx), s.client, []string{keyPrefix + name}, args...).Result()
	if err != nil {
		return Answer{Err: s.classify(err)}
	}
	repeatable := s.repeats
	if r, ok := out.(redirected); ok {
		out, repeatable = r.answer, true
	}
	r, err := parseReply(out)
	if err != nil {
		return Answer{Err: s.unreadable(err)}
	}
	if len(r.settings) > 0 && !s.told.Swap(true) {
		warnOfEviction(s.name, r.settings)
		s.process.Store(&r.settings[2])
	}
	row, err := parse(&r, v)
	if err != nil {
		return Answer{Err: s.unreadable(err)}
	}
	before := row.Fence - 1
	if r.fenceBefore != "" {
		before = number(r.fenceBefore)
	}
	dead, deadClaim := takenFrom(r.fields)
	return Answer{
		Dead: dead, DeadClaim: deadClaim,
		Row: row, Applied: r.applied, Before: before, ClaimBefore: r.claimBefore, Repeatable: repeatable,
		ClaimStamp: r.fields["claimStamp"], Cleared: r.fields["cleared"], MemoryStamp: r.fields["memoryStamp"],
	}
}

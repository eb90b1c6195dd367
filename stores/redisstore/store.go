package redisstore

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Store implements [driver.Store] and [driver.Inspector] on one server, one
// group of a primary and its replicas, or one cluster. It is safe for
// concurrent use.
type Store struct {
	client  redis.Scripter
	pool    *redis.Client // that New was given, for its statistics; may be nil
	server  string        // what errors call it
	repeats bool          // the client repeats requests by itself
	cluster bool          // the client follows redirections
	told    atomic.Bool
	process atomic.Pointer[string] // the server's run_id; nil: it has not told it
	idle    chan struct{}          // has one for each connection that a quorum has opened and does not use; nil: never
}

// Acquire implements [driver.Store]. A claim that is repeated unchanged while
// its token owns the row changes nothing, not even the fence.
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	a := s.acquire(ctx, c, 0, nil)
	return a.row, a.applied != 0, a.err
}

// Renew implements [driver.Store]. A renewal with the end that the lease has
// already changes nothing but DeleteAfter.
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	a := s.renew(ctx, r, "", 0)
	return a.row, a.applied != 0, a.err
}

// Settle implements [driver.Store]. With Abandon, it never makes another
// owner's row live shorter.
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	raise := time.Time{}
	if t.Abandon {
		raise = t.Stamp
	}
	a := s.settle(ctx, t, raise, always)
	return a.row, a.applied != 0, a.err
}

// Check implements [driver.Checker]. It runs a script that only reads, which
// needs the same commands as an acquire.
func (s *Store) Check(ctx context.Context) error {
	return s.run(ctx, readScript, "", view{}, s.asks()).err
}

// answer is what a script answered.
type answer struct {
	row driver.Row
	// applied is 0 if nothing was applied. After a settlement it says what was.
	applied int64
	// claimStamp is the stamp of the claim that has the row: not that of a claim
	// that was given up since, and never above the stamp of the row.
	claimStamp string
	cleared    string // the token whose lock was cleared last, see [Quorum.clear]
	// memoryStamp is the stamp of the claim that completed last, in a quorum.
	memoryStamp string
	// before is the fence that the row had before the claim. If that is not known,
	// it is one less than the row's.
	before int64
	err    error
}

// The parts of a settlement that were applied.
const (
	released = 1
	raised   = 2
)

// acquire sends a claim. The fence becomes leastFence or more. install has the
// fields of a row's memory, for a server that has lost its row; nil otherwise.
func (s *Store) acquire(ctx context.Context, c *driver.Claim, leastFence int64, install []any) answer {
	entry := ""
	if c.Event != "" && install == nil {
		entry = escape(c.Event) + " "
	}
	args := []any{
		c.Token, timestamp(c.Stamp), timestamp(c.Until), lease(c.Until.Sub(c.Now)), c.Holder, c.Event, c.Payload,
		entry, moment(c.Now), c.Order, timestamp(c.DeleteAfter), keep(c.DeleteAfter.Sub(c.Now)), leastFence, s.asks(),
	}
	return s.run(ctx, acquireScript, c.Name, view{token: c.Token, now: c.Now}, append(args, install...)...)
}

// renew sends a renewal. claimStamp replaces that of a row that the token owns
// through an earlier round of its claim; empty: none. The fence becomes
// leastFence or more.
func (s *Store) renew(ctx context.Context, r *driver.Renewal, claimStamp string, leastFence int64) answer {
	return s.run(ctx, renewScript, r.Name, view{token: r.Token, now: r.Now},
		r.Token, timestamp(r.Until), lease(r.Until.Sub(r.Now)), timestamp(r.DeleteAfter), keep(r.DeleteAfter.Sub(r.Now)), claimStamp, leastFence)
}

// condition says which rows of its owner a settlement does not release. A node
// of a quorum may have what the other nodes have no longer.
type condition string

const (
	always    condition = ""
	sameRound condition = "same round" // those that a claim with a higher stamp than raise was granted
	clears    condition = "clears"     // the same; the owner is told that it was cleared
	inTime    condition = "in time"    // those whose lease has ended, if it completes something: they become free
)

// settle sends a settlement, and raises the row's stamp to raise if that is not
// zero. more has fields and values beside those of the memory.
func (s *Store) settle(ctx context.Context, t *driver.Settlement, raise time.Time, only condition, more ...any) answer {
	stamp := ""
	if !raise.IsZero() {
		stamp = timestamp(raise)
	}
	now := clock.Wall(clock.From(ctx))
	args := []any{t.Token, stamp, timestamp(t.DeleteAfter), keep(t.DeleteAfter.Sub(now)), string(only)}
	if t.Memory != nil {
		args = append(append(args, memoryFields(t.Memory)...), more...)
	}
	return s.run(ctx, settleScript, t.Name, view{token: t.Token, now: now}, args...)
}

// asks returns "1" until the server has told its settings.
func (s *Store) asks() string {
	if s.told.Load() {
		return ""
	}
	return "1"
}

// run runs a script. Redis forgets scripts when it restarts, and after SCRIPT
// FLUSH; then the text is sent again.
func (s *Store) run(ctx context.Context, script *redis.Script, name string, v view, args ...any) answer {
	if err := ctx.Err(); err != nil {
		return answer{err: &driver.Error{Store: s.server, Temporary: true, Unapplied: true, Err: err}}
	}
	out, err := script.Run(context.WithValue(ctx, onceKey{}, true), s.client, []string{keyPrefix + name}, args...).Result()
	if err != nil {
		return answer{err: s.classify(err)}
	}
	r, err := parseReply(out)
	if err != nil {
		return answer{err: s.unreadable(err)}
	}
	if len(r.settings) > 0 && !s.told.Swap(true) {
		warnOfEviction(s.server, r.settings)
		s.process.Store(&r.settings[2])
	}
	row, err := parse(&r, v)
	if err != nil {
		return answer{err: s.unreadable(err)}
	}
	before, err := strconv.ParseInt(r.before, 10, 64)
	if err != nil {
		before = row.Fence - 1
	}
	return answer{
		row: row, applied: r.applied, before: before,
		claimStamp: r.fields["claimStamp"], cleared: r.fields["cleared"], memoryStamp: r.fields["memoryStamp"],
	}
}

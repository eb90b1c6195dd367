package invocation

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
)

const (
	// firstGap between two claims is also the pause in which a store that has begun
	// to throttle gets no claim of this batch.
	firstGap = 200 * time.Millisecond
	// longestGap lets a batch notice soon that the store has recovered.
	longestGap = 2 * time.Second
	// shortestOutage is for how long a store takes nothing if it is not only busy.
	// What it takes afterwards has nothing to do with the gap that it left.
	shortestOutage = 2800 * time.Millisecond
	// firstSafe is the safe gap of a batch that does not know what the store takes.
	firstSafe = 10 * time.Millisecond
	// noGap is a gap that is too short to matter.
	noGap = 50 * time.Microsecond
	// fast is by how much the gap shrinks at most with every request that the store
	// takes.
	fast = 0.8
	// slow is how many claims per second every such request adds otherwise.
	slow = 2
)

// Pace is how fast the records of one batch claim their locks. Package lock
// tells it what the store takes and what it throttles, and package middleware
// asks it when the next claim may begin.
//
// There is no gap between two claims until the store throttles. Then the gap
// doubles with every request that is throttled, and shrinks with every one that
// is taken: fast, until the batch is half as fast as when the store began to
// throttle, and then slowly. The same number of claims per second is added
// whatever the gap, so of several batches that share a table the slower one
// catches up. Chance keeps them from trying at the same moments.
//
// A nil Pace notes nothing.
type Pace struct {
	Chance rand.Source // of the process: its clock

	mu     sync.Mutex
	last   time.Time     // when a claim began, or the gap grew
	part   float64       // of the gap after that, from 0.5 to 1.5
	gap    time.Duration // on average; zero: none
	safe   time.Duration // twice the gap at which the store began to throttle
	slowed time.Time     // when the gap grew
	full   time.Time     // since when the store has taken nothing; zero: it does
	stuck  int           // settlements that the store has throttled and that are still trying
}

// Throttled notes that the store throttled a request that was sent at a time.
// Of those that were under way when the gap grew, only the first one counts.
func (p *Pace) Throttled(sent, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !sent.After(p.slowed) {
		return
	}
	if p.full.IsZero() {
		p.full, p.safe = now, max(2*p.gap, firstSafe)
	}
	p.slowed = now
	p.gap = min(max(2*p.gap, firstGap), longestGap)
	p.begin(now)
}

// Taken notes that the store took a request that was sent at a time.
func (p *Pace) Taken(sent time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.full.IsZero() && sent.Sub(p.full) > shortestOutage {
		p.gap = firstGap
	}
	p.full = time.Time{}
	if !sent.After(p.slowed) {
		return
	}
	shrink := fast
	if p.gap < p.safe {
		shrink = max(fast, 1/(1+slow*p.gap.Seconds()))
	}
	if p.gap = time.Duration(float64(p.gap) * shrink); p.gap < noGap {
		p.gap = 0
	}
}

// Stuck notes that a settlement is throttled and goes on trying, and returns a
// function that notes its end. Until then claims keep the longest gap, because
// work that is done has precedence.
func (p *Pace) Stuck() (end func()) {
	if p == nil {
		return func() {}
	}
	count := func(by int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stuck += by
	}
	count(1)
	return func() { count(-1) }
}

// Next returns how long the next claim must wait, as far as that is known now.
// If it is zero, the claim begins.
func (p *Pace) Next(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap := p.gap
	if p.stuck > 0 {
		gap = longestGap
	}
	wait := p.last.Add(time.Duration(float64(gap) * p.part)).Sub(now)
	if wait <= 0 {
		p.begin(now)
	}
	return max(wait, 0)
}

func (p *Pace) begin(now time.Time) { p.last, p.part = now, 0.5+rand.New(p.Chance).Float64() }

// Full returns for how long the store has taken nothing although it was asked.
func (p *Pace) Full(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full.IsZero() {
		return 0
	}
	return now.Sub(p.full)
}

// RecordClaim is what packages lock and middleware share about the claim of one
// record of a batch.
type RecordClaim struct {
	Pace      *Pace
	Throttled bool // the store throttled the claim, which gave up immediately
	// Serves is whether other records of the batch are acknowledged if the run of
	// this one succeeds.
	Serves bool
	// Coalescer is the event of the holder that was asked for one more run, as it
	// is stored. Empty: none was.
	Coalescer string
	// Owed is whether others, whose events were acknowledged, rely on another run
	// for the event, which has begun and is not completed, or may.
	Owed bool
	// Undecided is whether the claim failed because Options.OnInterrupted returned
	// no decision in time: package lock has not reported why.
	Undecided bool
	// Began is when the record's work began first. Zero: it did not.
	Began time.Time
	// Unlocked is whether the work runs without a lock: no name of the record's
	// own cools down, and nothing ends its context before the deadline.
	Unlocked bool
}

type recordClaimKey struct{}

// WithRecordClaim returns a context for the claim of a record.
func WithRecordClaim(ctx context.Context, c *RecordClaim) context.Context {
	return context.WithValue(ctx, recordClaimKey{}, c)
}

// Begun returns a context for what runs after the claim of a record, which
// begins now, if ctx is that of such a claim: locks inside are not the record's
// own.
func Begun(ctx context.Context) context.Context {
	c, _ := RecordClaimOf(ctx)
	if c == nil {
		return ctx
	}
	c.Began = cmp.Or(c.Began, clock.From(ctx).Now())
	return WithRecordClaim(ctx, nil)
}

// RecordClaimOf returns what is shared about the record whose claim has ctx, or
// nil. It reports whether ctx is that of a record, which may have begun.
func RecordClaimOf(ctx context.Context) (c *RecordClaim, ofRecord bool) {
	c, ofRecord = ctx.Value(recordClaimKey{}).(*RecordClaim)
	return c, ofRecord
}

type failedClaimsKey struct{}

// WithFailedClaims returns a context for the function given to
// middleware.OnFailed, where claim returns the claim of the i-th record that it
// gets.
func WithFailedClaims(ctx context.Context, claim func(i int) *RecordClaim) context.Context {
	return context.WithValue(ctx, failedClaimsKey{}, claim)
}

// FailedClaimOf returns the claim of the i-th record that failed. If its work
// did not begin, the lock that it found held is its own.
func FailedClaimOf(ctx context.Context, i int) *RecordClaim {
	return ctx.Value(failedClaimsKey{}).(func(int) *RecordClaim)(i)
}

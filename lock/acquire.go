package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// Acquire takes key, waiting for it if Options.Wait says so. The error is a
// [*HeldError], [*DoneError], [*StoreError], [*KeyError], [*DeadlineError] or
// [*ConfigError], or a [*LostError] when the store took longer than the lease.
//
// The caller must end the Lock with Complete or Release. One that is dropped
// without either holds the name until its lease ends, and with a heartbeat, which
// goes on renewing it, until the process does. [Locker.Do] cannot forget it.
func (l *Locker) Acquire(ctx context.Context, key Key) (*Lock, error) {
	a := &acquisition{locker: l, ctx: believable(ctx), key: key, began: time.Now()}
	err := a.run()
	if err != nil && a.asking.unsure {
		a.abandon()
	}
	a.decided = time.Now()
	var lk *Lock
	begun := false
	if err == nil {
		lk = a.lock()
		// Whatever keeps the caller from getting the Lock, such as an observer that
		// panics, must not keep the name.
		defer func() {
			if !begun {
				lk.drop()
			}
		}()
		err = lk.check()
	}
	a.report(err)
	if err != nil {
		return nil, err
	}
	lk.begin()
	begun = true
	return lk, nil
}

// acquisition is one call of Acquire.
type acquisition struct {
	locker *Locker
	ctx    context.Context
	key    Key
	timing timing
	claim  Claim
	row    Row       // the last one seen
	floor  time.Time // the next stamp must be above it
	asking sending

	began   time.Time
	decided time.Time
	waited  time.Duration
	seen    sight
}

// run returns nil when the row is the claim's.
func (a *acquisition) run() error {
	if err := a.prepare(); err != nil {
		return err
	}
	asked := 0 // again at once, since the last wait
	for round := 0; ; {
		a.dateClaim()
		granted, err := a.ask()
		if granted || err != nil {
			return err
		}
		again := false
		switch a.verdict() {
		case Done:
			e := &DoneError{Key: a.key}
			if a.row.Memory.Result.Event == a.claim.Event {
				e.Result = a.row.Memory.Result.Body
			}
			return e
		case Stale:
			return &DoneError{Key: a.key, Stale: true}
		case Newer:
			return a.newerError()
		case Behind:
			// Our clock is behind the last owner's, or a claim of somebody else was given
			// up since. We have seen that nobody holds the name, so this claim is no
			// ghost: raise its stamp instead of waiting out the lag.
			a.floor = later(a.floor, a.row.Since)
			again = asked < 3
		case Granted:
			// The store judged by its own clock or saw an earlier state: ask again.
			again = asked < 3 && sleep(a.ctx, jitter(firstPause<<asked)) == nil
		case Held:
			if a.heldByUs() {
				return &ConfigError{Reason: "key " + a.key.Digest() + " is already held by this invocation: nested decorators need different names, for example through keyfuncs.Prefix"}
			}
		}
		asked++
		if !again {
			if err := a.wait(round); err != nil {
				return err
			}
			round, asked = round+1, 0
		}
	}
}

func (a *acquisition) prepare() error {
	if err := a.key.check(); err != nil {
		return err
	}
	var err error
	if a.timing, err = a.locker.timing(a.ctx, a.began); err != nil {
		return err
	}
	a.asking.shed = a.locker.shedClaim
	a.claim = Claim{
		Name:   storedName(a.locker.prefix, a.key.Name),
		Event:  storedEvent(a.key.Event),
		Order:  a.key.Order,
		Token:  rand.Text(),
		Holder: a.locker.opts.Holder(a.ctx),
	}
	return nil
}

// heldByUs: waiting for a name that a surrounding call holds would last to the
// deadline.
func (a *acquisition) heldByUs() bool {
	outer, _ := a.ctx.Value(leaseKey{}).(*Lock)
	for ; outer != nil; outer, _ = outer.ctx.Value(leaseKey{}).(*Lock) {
		if outer.claim.Token == a.row.Token {
			return true
		}
	}
	return false
}

// dateClaim dates the claim of a round. A claim without an answer is repeated
// unchanged, so that its copies cannot outlive it; only a refused one is dated anew,
// with a higher stamp than before, so that the copies of an earlier round can never
// undo those of a later one.
func (a *acquisition) dateClaim() {
	a.floor = later(a.floor, a.claim.Stamp)
	before := a.claim.Until
	a.claim.Now = a.locker.wall().Truncate(time.Microsecond)
	a.claim.Stamp = later(a.locker.nextStamp(a.claim.Now), a.floor.Add(time.Microsecond))
	if a.timing.lease > 0 {
		a.claim.Until = a.claim.Now.Add(a.timing.lease)
	} else {
		a.claim.Until = a.timing.deadline.Add(a.locker.opts.Grace).Round(0).Truncate(time.Microsecond)
	}
	// Also where the clock was set back: else the row of a copy of an earlier round, which
	// ends later, would refuse this one and keep its stamp.
	a.claim.Until = later(a.claim.Until, before)
	a.claim.Keep = keepHeld(a.claim.Until)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextStamp keeps the stamps of one process apart, also where two claims fall
// into the same microsecond.
func (l *Locker) nextStamp(now time.Time) time.Time {
	for {
		last := l.lastStamp.Load()
		next := max(now.UnixMicro(), last+1)
		if l.lastStamp.CompareAndSwap(last, next) {
			return time.UnixMicro(next)
		}
	}
}

// ask sends the claim. The last quarter of the budget is kept for giving up a claim
// of which a copy may still be under way.
func (a *acquisition) ask() (bool, error) {
	a.asking.until, a.asking.turnedAway = time.Now().Add(a.timing.budget*3/4), 0
	ok, err := a.asking.send(a.ctx, "acquire", func(ctx context.Context) (ok bool, err error) {
		a.row, ok, err = a.locker.store.Acquire(ctx, &a.claim)
		return ok, err
	})
	return err == nil && (ok || a.row.Token == a.claim.Token), err
}

// abandon sees to it that no copy of the claim, of any round, is granted from now on.
// If this fails, the lease of such a copy ends by itself.
func (a *acquisition) abandon() {
	s := sending{until: time.Now().Add(a.timing.budget / 4)}
	_, _ = s.send(context.WithoutCancel(a.ctx), "release", func(ctx context.Context) (bool, error) {
		_, ok, err := a.locker.store.Release(ctx, &Settlement{
			Name: a.claim.Name, Token: a.claim.Token, Keep: a.claim.Keep, Abandon: true, Stamp: a.claim.Stamp,
		})
		return ok, err
	})
	a.asking.requests += s.requests
}

func (a *acquisition) verdict() Verdict {
	if a.row.unknown() {
		return Held // the store does not tell why it refused: take the safe reading
	}
	return a.row.Judge(&a.claim)
}

func (a *acquisition) heldError(cause error) error {
	return &HeldError{
		Key: a.key, Holder: a.row.Holder, Since: a.row.Since, Until: a.row.Until, Cause: cause,
		Duplicate: a.claim.Event != "" && a.row.Event == a.claim.Event,
	}
}

func (a *acquisition) newerError() error {
	return &StoreError{
		Op: "acquire", Rejected: true, Requests: a.asking.requests,
		Err: errors.New("the row of key " + a.key.Digest() + " was written by a newer version of lambdalock: deploy that version here too"),
	}
}

// report tells the outcome, and before it that there was a wait.
func (a *acquisition) report(err error) {
	if a.waited > 0 {
		a.observe(Waited, err)
	}
	switch {
	case err != nil:
		a.observe(kindOf(err), err)
	case a.row.Previous != "":
		a.observe(TookOver, nil)
	default:
		a.observe(Acquired, nil)
	}
}

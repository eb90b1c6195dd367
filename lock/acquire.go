package lock

import (
	"context"
	"crypto/rand"
	"time"
)

// Acquire takes key, waiting for it if Options.Wait says so. The error is a
// [*HeldError], [*DoneError], [*StoreError], [*KeyError] or [*ConfigError], or a
// [*LostError] when the store took longer than the lease. The caller must end
// with Complete or Release.
func (l *Locker) Acquire(ctx context.Context, key Key) (*Lock, error) {
	lk := &Lock{acquisition: acquisition{locker: l, ctx: ctx, key: key, began: time.Now()}}
	err := lk.run()
	lk.decided = time.Now()
	if lk.waited > 0 {
		lk.observe(Waited, err)
	}
	if err == nil {
		err = lk.begin()
	}
	switch {
	case err != nil:
		lk.observe(kindOf(err), err)
		return nil, err
	case lk.row.Previous != "":
		lk.observe(TookOver, nil)
	default:
		lk.observe(Acquired, nil)
	}
	return lk, nil
}

// acquisition is one call of Acquire. It becomes part of the Lock, so that a cycle
// allocates one object.
type acquisition struct {
	locker *Locker
	ctx    context.Context
	key    Key
	timing timing
	claim  Claim
	row    Row       // the last one seen
	floor  time.Time // the stamp must be above it
	asking sending

	began   time.Time
	decided time.Time
	waited  time.Duration
}

func (a *acquisition) run() error {
	if err := a.prepare(); err != nil {
		return err
	}
	now, asked := a.began, 0 // asked again at once, since the last wait
	for round := 0; ; {
		a.dateClaim(now)
		granted, err := a.ask(now)
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
		case Behind:
			// Our clock is behind the last owner's. We have seen the row free, so
			// this claim is no ghost: raise its stamp instead of waiting out the lag.
			a.floor = a.row.Since
			again = asked < 3
		case Granted:
			// The store judged by its own clock or saw an earlier state: ask again.
			again = asked < 3 && pause(a.ctx, backoff(asked)) == nil
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
		now = time.Now()
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

// dateClaim dates the claim. A claim without an answer is repeated unchanged, so
// that its copies cannot outlive it; only a refused one is dated anew.
func (a *acquisition) dateClaim(now time.Time) {
	a.claim.Now = now.Round(0).Truncate(time.Microsecond)
	a.claim.Stamp = a.locker.nextStamp(a.claim.Now)
	if !a.claim.Stamp.After(a.floor) {
		a.claim.Stamp = a.floor.Add(time.Microsecond)
	}
	if a.timing.lease > 0 {
		a.claim.Until = a.claim.Now.Add(a.timing.lease)
	} else {
		a.claim.Until = a.timing.deadline.Add(a.locker.opts.Grace).Round(0).Truncate(time.Microsecond)
	}
	a.claim.Keep = a.locker.keep(a.claim.Until)
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

// ask sends the claim. The last quarter of the budget is kept for taking back a
// claim whose outcome stayed unknown.
func (a *acquisition) ask(now time.Time) (bool, error) {
	a.asking.until = now.Add(a.timing.budget * 3 / 4)
	ok, err := a.asking.send("acquire", a.ctx, now, func(ctx context.Context) (ok bool, err error) {
		a.row, ok, err = a.locker.store.Acquire(ctx, &a.claim)
		return ok, err
	})
	if err != nil && a.asking.unsure {
		a.abandon(now.Add(a.timing.budget))
	}
	return err == nil && (ok || a.row.Token == a.claim.Token), err
}

// abandon takes back a claim that may have been applied, or may still be. If this
// fails too, the lease ends by itself.
func (a *acquisition) abandon(until time.Time) {
	s := sending{until: until, detached: true}
	_, _ = s.send("release", a.ctx, time.Now(), func(ctx context.Context) (bool, error) {
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

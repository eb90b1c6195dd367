package lock

import (
	"context"
	"crypto/rand"
	"reflect"
	"time"
)

// Acquire takes key, waiting for it if Options.Wait says so. The error is a
// [*HeldError], [*DoneError], [*StoreError], [*KeyError] or [*ConfigError], or a
// [*LostError] when the store took longer than the lease. The caller must end
// with Complete or Release.
func (l *Locker) Acquire(ctx context.Context, key Key) (*Lock, error) {
	a := acquisition{Locker: l, ctx: ctx, key: key, began: time.Now()}
	lk, err := a.run()
	if a.waited > 0 {
		a.observe(Waited, err)
	}
	switch {
	case err != nil:
		a.observe(kindOf(err), err)
		return nil, err
	case a.row.Previous != "" && !(a.unsure && a.row.Previous == a.claim.Holder):
		a.observe(TookOver, nil)
	default:
		a.observe(Acquired, nil)
	}
	lk.begin()
	return lk, nil
}

// acquisition is one call of Acquire.
type acquisition struct {
	*Locker
	ctx    context.Context
	key    Key
	timing timing
	claim  Claim
	row    Row // the last one seen

	began    time.Time
	waited   time.Duration
	requests int
	unsure   bool // some request had no answer, and may have been applied
}

func (a *acquisition) run() (*Lock, error) {
	if err := a.prepare(); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		a.stampClaim()
		granted, err := a.ask()
		if err != nil {
			return nil, err
		}
		if granted {
			return a.granted()
		}
		switch a.verdict() {
		case Done:
			e := &DoneError{Key: a.key}
			if a.row.Memory.Result.Event == a.claim.Event {
				e.Result = a.row.Memory.Result.Body
			}
			return nil, e
		case Stale:
			return nil, &DoneError{Key: a.key, Stale: true}
		case Behind:
			// Our clock is behind the last owner's. We have seen the row free, so
			// this claim is no ghost: raise its stamp instead of waiting out the lag.
			a.raiseStamp(a.row.Since)
			if round < 3 {
				continue
			}
		case Granted:
			// The store judged by its own clock or saw an earlier state: ask again.
			if round < 3 && pause(a.ctx, backoff(round)) == nil {
				continue
			}
		}
		if err := a.wait(round); err != nil {
			return nil, err
		}
	}
}

func (a *acquisition) prepare() error {
	if err := a.key.check(); err != nil {
		return err
	}
	var err error
	if a.timing, err = a.Locker.timing(a.ctx, a.began); err != nil {
		return err
	}
	name := storedName(a.prefix, a.key.Name)
	if a.heldByUs(name) {
		return &ConfigError{Reason: "key " + a.key.Digest() + " is already held by this invocation: nested decorators need different names, for example through keyfuncs.Prefix"}
	}
	a.claim = Claim{
		Name:   name,
		Event:  storedEvent(a.key.Event),
		Order:  a.key.Order,
		Token:  rand.Text(),
		Holder: a.opts.Holder(a.ctx),
	}
	return nil
}

// heldByUs: waiting for a name that a surrounding call holds would last to the
// deadline.
func (a *acquisition) heldByUs(name string) bool {
	outer, _ := a.ctx.Value(leaseKey{}).(*Lock)
	for ; outer != nil; outer, _ = outer.parent.Value(leaseKey{}).(*Lock) {
		if outer.claim.Name == name && reflect.TypeOf(a.store).Comparable() && outer.locker.store == a.store {
			return true
		}
	}
	return false
}

// stampClaim dates the claim. A claim without an answer is repeated unchanged, so
// that its copies cannot outlive it; only a refused one is dated anew.
func (a *acquisition) stampClaim() {
	now := time.Now().Round(0).Truncate(time.Microsecond)
	a.claim.Now = now
	a.claim.Stamp = a.nextStamp(now)
	if a.timing.lease > 0 {
		a.claim.Until = now.Add(a.timing.lease)
	} else {
		a.claim.Until = a.timing.deadline.Add(a.opts.Grace).Round(0).Truncate(time.Microsecond)
	}
	a.claim.Keep = a.claim.Until.Add(max(keepRow, a.opts.Remember))
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

func (l *Locker) raiseStamp(seen time.Time) {
	for {
		last := l.lastStamp.Load()
		if last >= seen.UnixMicro() || l.lastStamp.CompareAndSwap(last, seen.UnixMicro()) {
			return
		}
	}
}

// ask sends the claim. The last quarter of the budget is kept for taking back a
// claim whose outcome stayed unknown.
func (a *acquisition) ask() (bool, error) {
	began := time.Now()
	s := sending{op: "acquire", until: began.Add(a.timing.budget * 3 / 4)}
	ok, err := s.send(a.ctx, func(ctx context.Context) (ok bool, err error) {
		a.row, ok, err = a.store.Acquire(ctx, &a.claim)
		return ok, err
	})
	a.requests += s.requests
	a.unsure = a.unsure || s.unsure
	if err != nil && a.unsure {
		a.abandon(began.Add(a.timing.budget))
	}
	return ok || a.row.Token == a.claim.Token, err
}

// abandon takes back a claim that may have been applied, or may still be. If this
// fails too, the lease ends by itself.
func (a *acquisition) abandon(until time.Time) {
	s := sending{op: "release", until: until}
	_, _ = s.send(context.WithoutCancel(a.ctx), func(ctx context.Context) (bool, error) {
		_, ok, err := a.store.Release(ctx, &Settlement{
			Name: a.claim.Name, Token: a.claim.Token, Keep: a.claim.Keep, Abandon: true, Stamp: a.claim.Stamp,
		})
		return ok, err
	})
	a.requests += s.requests
}

func (a *acquisition) granted() (*Lock, error) {
	lk := &Lock{
		locker: a.Locker, parent: a.ctx, key: a.key, claim: a.claim, timing: a.timing,
		fence: a.row.Fence, memory: a.row.Memory, acquired: time.Now(),
	}
	// A repeated claim may have been applied by its first copy, whose lease ends earlier.
	if !a.row.Until.IsZero() && a.row.Until.Before(lk.claim.Until) {
		lk.claim.Until = a.row.Until
	}
	if !time.Now().Before(lk.claim.Until.Add(-a.timing.margin)) {
		_ = lk.Release() // reported by settleOnce
		return nil, lk.lostError()
	}
	return lk, nil
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

package simulation

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// handsOver hands the lock over to an invocation of any process that begins
// soon, or never.
func (inv *invocation) handsOver(ctx context.Context) {
	s, key := inv.setup(), inv.key()
	lk, err := inv.p.locker(s).Acquire(ctx, key)
	inv.p.sim.asked(inv, key, err)
	if err != nil {
		return
	}
	defer func() { _ = lk.Release() }()
	inv.step(lk, key, s.lease)
}

// step works, and then completes the event or leaves that to another
// invocation.
func (inv *invocation) step(lk *lock.Lock, key lock.Key, lease lock.LeaseMode) {
	if err := inv.handle(lk.Context(), []lock.Key{key}, lease); err != nil {
		return
	}
	if inv.random.IntN(3) == 0 {
		inv.complete(key, lk.CompleteWith)
		return
	}
	h, err := lk.HandOver(lk.Context(), time.Duration(4+inv.random.IntN(6))*time.Second)
	if inv.p.isDead() {
		return
	}
	if err == nil {
		inv.resumeLater(h, key)
		_ = lk.Complete()
	}
}

// handedOver is a ticket on its way.
type handedOver struct {
	json []byte
	key  lock.Key
}

// resumeLater lets an invocation in a new process resume the lock, or none, or
// two of them at any time.
func (inv *invocation) resumeLater(h lock.Ticket, key lock.Key) {
	b, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	sim, id, random := inv.p.sim, inv.p.id, rand.New(rand.NewPCG(inv.random.Uint64(), 1))
	invocations := 1
	switch random.IntN(10) {
	case 0, 1:
		invocations = 0
	case 2:
		invocations = 2
	}
	sim.handedOver(h, max(invocations, 1))
	for range invocations {
		random := rand.New(rand.NewPCG(random.Uint64(), 2))
		sim.after(time.Duration(random.IntN(9000))*time.Millisecond, id, "resumes", func() {
			sim.start(id, random).turn(random, &handedOver{b, key})
		})
	}
}

func (inv *invocation) resume(ctx context.Context) {
	var h lock.Ticket
	if err := json.Unmarshal(inv.resumes.json, &h); err != nil {
		panic(err)
	}
	s := inv.setup()
	lk, err := inv.p.locker(s).Resume(ctx, h)
	if err != nil {
		return
	}
	inv.p.sim.count(func(r *report) { r.Resumed++ })
	inv.p.sim.resumed(inv, h, lk.Lease().Fence)
	defer func() { _ = lk.Release() }()
	inv.step(lk, inv.resumes.key, s.lease)
}

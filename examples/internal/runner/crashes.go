package main

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// killedAtWork kills the function when its work is done and before that is
// recorded, and delivers the event again when its lease has ended.
func killedAtWork(lock string) act {
	return func(ctx context.Context, st *stage) {
		st.killed(ctx, lock, 2)
		st.expect("after its death", st.once(ctx, st.event), st.answer)
		st.expect("later", st.once(ctx, st.event), st.answer)
		st.effects(st.want...)
	}
}

// killedBeforeWork kills the function when it has the lock and does not know it
// yet.
func killedBeforeWork(lock string, want []string) act {
	return func(ctx context.Context, st *stage) {
		st.answerless(lock)
		st.killed(ctx, lock, 2)
		st.expect("after its death", st.once(ctx, st.event), st.answer)
		st.effects(want...)
	}
}

// answerless lets the answer to the first request of a lock get lost.
func (st *stage) answerless(lock string) {
	lost := false
	st.dynamo.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		fault := st.pass(r)
		st.mu.Lock()
		defer st.mu.Unlock()
		if r.Key == lock && !lost {
			lost = true
			return fakedynamo.ApplyThenDrop
		}
		return fault
	})
}

// killed delivers the event, and kills the function when that request of the
// lock was sent. The request arrives too late.
func (st *stage) killed(ctx context.Context, lock string, nth int) {
	first := st.begin(ctx, st.once, st.event, 1, func(key string, n int) bool { return key == lock && n == nth })
	for env := range environments {
		_ = st.functions[len(st.functions)-1].Kill(env + 1) // one that has no process is not at work
	}
	st.Printf("killed: %v", <-first)
	st.expire(ctx, lock)
}

// killedTransfer kills the function between its first transfer and the end of
// the lock, where both are not one request, and delivers the event again.
func killedTransfer(ctx context.Context, st *stage) {
	st.killed(ctx, "transfer/transfer/t-17", 2)
	st.expire(ctx, "transfer/transfer/t-18") // nobody knows how far the batch came
	st.expect("after its death", st.once(ctx, st.event), st.answer)
	st.end()
	st.checkBalances(st.want) // a line of the log may be lost, but no money
}

// lostPayment loses the bank's answer: the function does not know, and asks.
func lostPayment(ctx context.Context, st *stage) {
	st.loses.Store(true)
	st.expect("the answer gets lost", st.once(ctx, st.event), st.held)
	st.expect("again", st.once(ctx, st.event), st.answer)
	st.effects(st.want...)
}

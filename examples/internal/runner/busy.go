package main

import (
	"context"
	"slices"
)

// swap makes another event: of each pair, the second in the place of the first.
func swap(pairs ...string) func([]byte) ([]byte, error) {
	return func(event []byte) ([]byte, error) {
		for pair := range slices.Chunk(pairs, 2) {
			var err error
			if event, err = edit(event, pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
		return event, nil
	}
}

// swapFirst is swap for a batch: the other event has one record, made of the first.
func swapFirst(pairs ...string) func([]byte) ([]byte, error) {
	return func(event []byte) ([]byte, error) { return swap(pairs...)(batchOf(records(event)[:1])) }
}

// busy delivers another event of the same name while the first is at work. It is
// refused with that label, and does its work afterwards.
func busy(other func([]byte) ([]byte, error), refused, does string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		event, err := other(st.event)
		if err != nil {
			return err
		}
		st.world.gate.close(update.releases)
		first := st.begin(ctx, st.event)
		if err := st.world.gate.await(ctx, max(st.example.holds, 1), first.over); err != nil {
			return err
		}
		// Where nothing refuses it, its own release waits too.
		second := st.begin(ctx, event)
		if err := st.world.gate.await(ctx, max(st.example.holds, 1)+1, second.over); err == nil {
			st.surprise("another event of the same name was not refused")
		} else if ctx.Err() != nil {
			return err
		}
		st.world.gate.open()
		<-first.over
		<-second.over
		later, err := st.invoke(ctx, event)
		if err != nil {
			return err
		}
		st.expect("another event of the same name", second.result, refused)
		st.expect("the same later", later, done)
		st.say("another event of the same name, while at work: %s; later: %s", label(second.result), label(later))
		st.effects(append(slices.Clone(st.example.want), does))
		return nil
	}
}

package demo

import (
	"context"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
)

// scenario holds deliveries that do harm without a lock, or without the memory
// of completed events. It ends when all its deliveries have.
type scenario struct {
	title, caption string
	// shows is the kind of delivery that makes the caption true.
	shows timeline.Kind
	play  func(context.Context, *run)
	// hero scenes are drawn large, compared ones also without lambdalock. The
	// caption of those says what was counted.
	hero, compared bool
}

// late is how long after the work an event comes that is no longer wanted.
const late = workTime / 2

var scenarios = []scenario{
	{title: "The same two deliveries of one upload", shows: timeline.Skipped, hero: true, compared: true, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "cat.png", version: "0001"})
		time.Sleep(workTime / 10)
		r.deliver(ctx, upload{object: "cat.png", version: "0001"})
	}},
	{title: "Killed in the middle", caption: "nothing is lost, nothing overlaps", shows: timeline.TookOver, hero: true, play: func(ctx context.Context, r *run) {
		if env := r.midHandler(r.deliver(ctx, upload{object: "fox.png", version: "0001"})); env > 0 {
			time.Sleep(workTime / 4)
			_ = r.platform.Kill(env) // a process that is already gone would show in the report
		}
	}},
	{title: "A second upload during the first", caption: "both run, one after the other", shows: timeline.Refused, play: func(ctx context.Context, r *run) {
		r.midHandler(r.deliver(ctx, upload{object: "owl.png", version: "0001", lane: "version 1"}))
		r.deliver(ctx, upload{object: "owl.png", version: "0002", lane: "version 2"})
	}},
	{title: "A duplicate after the work", caption: "it is skipped, because the event was completed", shows: timeline.Skipped, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "dog.png", version: "0001"})
		r.wg.Wait()
		time.Sleep(late)
		r.deliver(ctx, upload{object: "dog.png", version: "0001"})
	}},
	{title: "An older event after a newer one", caption: "it is skipped, where the key asks for the latest only", shows: timeline.Skipped, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "latest/map.png", version: "0002", lane: "version 2"})
		r.wg.Wait()
		time.Sleep(late)
		r.deliver(ctx, upload{object: "latest/map.png", version: "0001", lane: "version 1", stale: true})
	}},
	{title: "The handler fails", caption: "the retry runs", shows: timeline.Failed, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "fails-once/bee.png", version: "0001"})
	}},
	{title: "Four uploads at once", caption: "all run, because every object has its own lock", shows: timeline.Ran, play: func(ctx context.Context, r *run) {
		for _, object := range []string{"cow.png", "dog.png", "owl.png", "fox.png"} {
			r.deliver(ctx, upload{object: object, version: "0003", lane: object})
		}
	}},
}

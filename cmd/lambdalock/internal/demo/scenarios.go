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
	// unprotected says that the handler runs without a lock.
	unprotected bool
}

// late is how long after the work an event comes that is no longer wanted.
const late = workTime / 2

// twice delivers one event twice at the same moment.
func twice(ctx context.Context, r *run) {
	r.deliver(ctx, upload{object: "cat.png", version: "0001"})
	r.deliver(ctx, upload{object: "cat.png", version: "0001"})
}

// unprotected has the same deliveries as the first of scenarios. Its caption
// says what happened.
var unprotected = scenario{title: "Without lambdalock: one event, delivered twice", play: twice, unprotected: true}

var scenarios = []scenario{
	{title: "With lambdalock: the same two deliveries", caption: "runs once", shows: timeline.Skipped, play: twice},
	{title: "Four uploads at once", caption: "all run: every object has its own lock", shows: timeline.Ran, play: func(ctx context.Context, r *run) {
		for _, object := range []string{"cow.png", "dog.png", "owl.png", "fox.png"} {
			r.deliver(ctx, upload{object: object, version: "0001"})
		}
	}},
	{title: "A second upload during the first", caption: "both run, one after the other", shows: timeline.Refused, play: func(ctx context.Context, r *run) {
		r.midHandler(r.deliver(ctx, upload{object: "owl.png", version: "0002", remark: "v2"}))
		r.deliver(ctx, upload{object: "owl.png", version: "0003", remark: "v3"})
	}},
	{title: "A duplicate after the work", caption: "is skipped: the event was completed", shows: timeline.Skipped, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "dog.png", version: "0002"})
		r.wg.Wait()
		time.Sleep(late)
		r.deliver(ctx, upload{object: "dog.png", version: "0002"})
	}},
	{title: "An older event after a newer one", caption: "is skipped where the key asks for the latest only", shows: timeline.Skipped, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "latest/map.png", version: "0002", remark: "v2"})
		r.wg.Wait()
		time.Sleep(late)
		r.deliver(ctx, upload{object: "latest/map.png", version: "0001", stale: true, remark: "v1"})
	}},
	{title: "The handler fails", caption: "the retry runs", shows: timeline.Failed, play: func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "fails-once/bee.png", version: "0001"})
	}},
	{title: "The process dies in the handler (kill -9)", caption: "a retry takes over when the lease has ended", shows: timeline.TookOver, play: func(ctx context.Context, r *run) {
		if env := r.midHandler(r.deliver(ctx, upload{object: "fox.png", version: "0002"})); env > 0 {
			_ = r.platform.Kill(env) // a process that is already gone would show in the report
		}
	}},
}

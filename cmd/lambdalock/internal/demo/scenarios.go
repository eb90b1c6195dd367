package demo

import "context"

// scenarios are the deliveries that hurt without a lock, or without the memory of
// what was done. Each ends when all its deliveries have.
var scenarios = []struct {
	title string
	play  func(context.Context, *run)
}{
	{"Four uploads, four environments", func(ctx context.Context, r *run) {
		for _, object := range []string{"cat.png", "dog.png", "owl.png", "fox.png"} {
			r.deliver(ctx, upload{object: object, version: "0001"}, "v1")
		}
	}},
	{"One event, delivered twice at once", func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "cat.png", version: "0002"}, "v2")
		r.deliver(ctx, upload{object: "cat.png", version: "0002"}, "v2 again")
	}},
	{"A late duplicate", func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "dog.png", version: "0001"}, "v1 again")
	}},
	{"An older event after a newer one", func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "latest/map.png", version: "0002"}, "v2")
		r.wg.Wait()
		r.deliver(ctx, upload{object: "latest/map.png", version: "0001", stale: true}, "v1, stale")
	}},
	{"A second upload during the first", func(ctx context.Context, r *run) {
		r.forgetBegins()
		r.midHandler(r.deliver(ctx, upload{object: "owl.png", version: "0002"}, "v2"))
		r.deliver(ctx, upload{object: "owl.png", version: "0003"}, "v3")
	}},
	{"The handler fails, and is retried", func(ctx context.Context, r *run) {
		r.deliver(ctx, upload{object: "fails-once.png", version: "0001"}, "v1")
	}},
	{"kill -9 in the handler, takeover", func(ctx context.Context, r *run) {
		r.forgetBegins()
		if env := r.midHandler(r.deliver(ctx, upload{object: "fox.png", version: "0002"}, "v2")); env > 0 {
			_ = r.platform.Kill(env) // a process that is already gone would show in the report
		}
	}},
}

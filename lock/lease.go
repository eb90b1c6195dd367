package lock

import (
	"context"
	"time"
)

// Lease is what the work under a lock may know of it.
type Lease struct {
	// Key as the caller gave it.
	Key Key
	// Fence rises with every acquisition of the name, for ever. Write it beside
	// your data, and let the write be refused when a larger one is there
	// already: that stops an owner that is late without knowing it.
	Fence int64
	// Until is when the lease ends, by the wall clock. With a heartbeat it
	// moves; this is its value when FromContext was called.
	Until time.Time
}

type leaseKey struct{}

// FromContext returns the lease under which the code runs, the innermost one
// where decorators are nested. It is false outside any lock, and where
// middleware.FailOpen let a handler run without one.
func FromContext(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lock)
	if !ok {
		return Lease{}, false
	}
	return l.Lease(), true
}

type deliveryKey struct{}

// delivery holds the events that came together, by the name of their key.
type delivery map[string]map[string]bool

// WithDelivery says which keys came together in one delivery, such as a batch of
// records, that may come again as a whole. While locks are acquired under ctx, an event
// of the delivery that is completed is not forgotten for lack of room: so whatever a
// delivery completed is recognised when it comes again, unless other events of the name
// are completed in between. Some 2,500 events of usual length with one name are; of
// more, the last ones, because every request pays for the size of the row. Events with
// an Order need no room, since their order tells.
//
// A deadline of ctx that cannot be believed, because it is long past, is left out.
func WithDelivery(ctx context.Context, keys []Key) context.Context {
	d := delivery{}
	for _, k := range keys {
		if k.Event == "" || k.Order != "" {
			continue
		}
		if d[k.Name] == nil {
			d[k.Name] = map[string]bool{}
		}
		d[k.Name][storedEvent(k.Event)] = true
	}
	return context.WithValue(believable(ctx), deliveryKey{}, d)
}

func deliveryOf(ctx context.Context, name string) map[string]bool {
	d, _ := ctx.Value(deliveryKey{}).(delivery)
	return d[name]
}

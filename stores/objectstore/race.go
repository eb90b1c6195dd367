package objectstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// probePrefix is the prefix of the keys that a probe writes. No name maps to
	// such a key.
	probePrefix = "~probe-"
	// probeRaces is the number of races with If-Match; there is one more with
	// If-None-Match. Nine of ten races expose a server that takes 0.2 ms between
	// its check and its write.
	probeRaces = 4
	// racers is the number of writes that race with the same condition.
	racers = 4
)

// race is a set of concurrent writes to one object with the same condition.
type race struct {
	key, version string
	won          []string // versions of the applied writes
	refused      int
	err          error // of a write that failed for another reason
}

// run starts the writes together and waits for all of them.
func (r *race) run(ctx context.Context, o Objects) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range racers {
		body := fmt.Appendf(nil, "{\n  \"probe\": %q\n}\n", clock.From(ctx).Text()) // no two writes have the same version
		wg.Go(func() {
			version, err := o.Put(ctx, r.key, body, r.version)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				r.won = append(r.won, version)
			case errors.Is(err, ErrChanged):
				r.refused++
			case r.err == nil:
				r.err = err
			}
		})
	}
	wg.Wait()
}

// verdict returns an error if the race exposed the service, or proved nothing
// because fewer than two writes were answered. It accepts a race that seems to
// have no winner: a proxy that sends a write twice passes on the refusal of the
// second copy.
func (r *race) verdict(o Objects) error {
	answers := len(r.won) + r.refused
	if len(r.won) > 1 {
		condition := "that an object has not changed (If-Match)"
		if r.version == "" {
			condition = "that an object does not exist (If-None-Match: *)"
		}
		return &driver.ConfigError{Reason: fmt.Sprintf("%s: the service does not check the condition %s, or not in one step with the write: it applied %d of %d writes that were sent at the same time, where one may be applied, "+
			"so several callers could hold a lock at the same time: use a service or version with atomic conditional writes, or another store", o.String(), condition, len(r.won), racers)}
	}
	if answers < 2 {
		return r.err
	}
	return nil
}

// clocksAgree checks that the object's age is no more than the time since its
// write was sent. A proxy may put its own time into a response. If the proxy's
// clock is behind, leases end late, which is safe. Some servers update Date
// only once a second.
func clocksAgree(o Objects, written *Object, passed time.Duration) error {
	const ahead, behind = 2 * time.Second, 10 * time.Second // times may be whole seconds
	age := written.Now.Sub(written.Modified)
	if written.Now.IsZero() || written.Modified.IsZero() || -behind < age && age < passed+ahead {
		return nil
	}
	return &driver.ConfigError{
		Reason: fmt.Sprintf("%s: its answers have times of two clocks, %v apart, so nobody can tell when a lease ends: set the clocks of the server and of the proxy in front of it, or let the proxy pass the server's Date on",
			o.String(), age.Round(time.Second)),
	}
}

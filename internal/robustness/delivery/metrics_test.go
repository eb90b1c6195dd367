package delivery_test

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/lambdalock/lambdalock/internal/robustness/oracle"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// metrics is what happened in an invocation, for the lines that package emf
// writes about it. An invocation whose environment dies before the last one
// counts as far as it was written.
type metrics struct {
	log      oracle.Log     // what the process asked the store
	failed   int            // handlers of records
	observed map[string]int // by metric, as the observer was told
	written  map[string]int // of counters, in all lines
}

// metricOf are the counters that count one outcome.
var metricOf = map[lock.Outcome]string{
	lock.OutcomeAlreadyCompleted: "Duplicates", lock.OutcomeStale: "Stale", lock.OutcomeMismatch: "Mismatched", lock.OutcomeRefused: "Refused",
	lock.OutcomeTakenOver: "TakenOver", lock.OutcomeLost: "Lost", lock.OutcomeCompleteFailed: "CompleteFailed", lock.OutcomeForgotten: "Forgotten",
	lock.OutcomeStoreFailed: "StoreFailed", middleware.OutcomeUnlocked: "Unlocked",
	middleware.OutcomeHandlerFailed: "HandlerFailed", middleware.OutcomeNotBegun: "NotBegun", middleware.OutcomeOverdue: "Overdue",
}

// observe notes an outcome. The caller holds w.mu.
func (m *metrics) observe(o lock.Observation) {
	if m.observed == nil {
		m.observed = map[string]int{}
	}
	name := metricOf[o.Outcome]
	switch {
	case o.Completed:
		name = "Completed"
	case o.Outcome == lock.OutcomeReleased:
		name = "Released"
	case o.Duplicate:
		name = "InProgress"
	case o.Outcome == lock.OutcomeHeld:
		name = "Contended"
	case o.Outcome == lock.OutcomeRequeued:
		name = "requeued" // no metric
	}
	if name != "" {
		m.observed[name] += max(1, o.Records)
	}
	if o.Requests > 0 {
		m.observed["StoreRequests"] += o.Requests
	}
}

// output takes the lines of an environment. Those of a dead one reach nobody.
type output struct{ e *environment }

func (o output) Write(line []byte) (int, error) {
	var members map[string]any
	err := json.Unmarshal(line, &members)
	o.e.w.mu.Lock()
	defer o.e.w.mu.Unlock()
	counted := map[string]int{}
	for name, value := range members {
		if n, ok := value.(float64); ok && name != "AcquireTime" && name != "HoldTime" && name != "Waited" {
			counted[name] = int(n)
		}
	}
	request, _ := members["request"].(string)
	number, _ := strconv.Atoi(request)
	for inv := range o.e.active {
		if inv.number == number && !o.e.dead {
			if err != nil {
				o.e.w.fail("invocation %d wrote %s, %v", number, line, err)
			}
			if inv.written == nil {
				inv.written = map[string]int{}
			}
			for name, n := range counted {
				inv.written[name] += n
			}
		}
	}
	return len(line), nil
}

// checkMetrics compares the lines of an invocation that has returned with what
// it was told and, where the process was not frozen and no callback panicked,
// with what it asked the store: otherwise a lock that was granted may end
// before its caller gets it, and nobody observes its release. The caller holds
// w.mu.
func (w *world) checkMetrics(inv *invocation) {
	for name, n := range inv.written {
		w.counted[name] += n
		if n > inv.observed[name] {
			w.fail("invocation %d wrote %d %s, and was told %v", inv.number, n, name, inv.observed)
		}
	}
	if inv.env.dead {
		return
	}
	want := maps.Clone(inv.observed)
	requeued := want["requeued"]
	delete(want, "requeued")
	if !maps.Equal(inv.written, want) {
		w.fail("invocation %d wrote %v, and was told %v", inv.number, inv.written, want)
	}
	if inv.panicked || inv.env.freezes > 0 {
		return
	}
	claims, ends := inv.log.Outcomes()
	want = map[string]int{
		"Completed": ends["completed"], "Released": ends["released"], "CompleteFailed": ends["complete_failed"],
		"Duplicates": claims["already_completed"], "Stale": claims["stale"], "InProgress": claims["in_progress"], "Contended": claims["held"],
		"TakenOver": claims["taken_over"], "StoreRequests": inv.log.Requests(),
	}
	if !w.managed && !inv.renewed { // no renewal fails
		want["Lost"] = ends["lost"]
		want["StoreFailed"] = claims["store_failed"] + claims["throttled"] + ends["store_failed"] - requeued
	}
	if w.batches {
		want["HandlerFailed"] = inv.failed
		for _, n := range claims {
			want["NotBegun"] -= n
		}
		want["NotBegun"] += len(inv.events) + requeued - inv.written["Refused"]
	}
	for name, n := range want {
		if inv.written[name] != n {
			w.fail("invocation %d wrote that %s is %d, want %d: claims %v, ends %v", inv.number, name, inv.written[name], n, claims, ends)
		}
	}
}

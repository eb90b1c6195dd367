package localtable

import (
	"regexp"
	"sync"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// Claims is what an invocation claimed from an embedded table.
type Claims struct {
	Acquired int  // locks that it got
	Refused  int  // locks that it did not get
	Waited   bool // it claimed one of them again, for the same event
}

// claims counts the requests that claim a lock, by invocation. It needs neither the
// function's log nor the meaning of a row.
type claims struct {
	mu   sync.Mutex
	open map[invocation]map[lock]tries
}

// invocation is the request id of an invocation; its log stream, if its handler
// takes no context and so does not know the request id.
type invocation string

type lock struct{ name, event string }

// tries are the claims of one invocation for one lock.
type tries struct {
	acquired bool
	requests int
}

// holder is how the decorator describes the invocation that claims a lock.
var holder = regexp.MustCompile(` request (\S+) log (\S+)`)

// note counts a request, if it claims a lock for an invocation: no others say who
// the holder is.
func (c *claims) note(u fakedynamo.Update) {
	m := holder.FindStringSubmatch(u.Value(":holder"))
	if m == nil {
		return
	}
	id := invocation(m[1])
	if id == "unknown" {
		id = invocation(m[2])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] == nil {
		c.open[id] = map[lock]tries{}
	}
	l := lock{u.Key, u.Value(":event")}
	t := c.open[id][l]
	c.open[id][l] = tries{t.acquired || u.Applied, t.requests + 1}
}

// Claims returns what an invocation claimed since the last call for it; nothing, if
// the table is not embedded. An invocation whose handler takes no context is known
// by its log stream alone: empty, if others use the log stream at the same time.
func (t *Table) Claims(requestID, logStream string) Claims {
	t.claims.mu.Lock()
	defer t.claims.mu.Unlock()
	var sum Claims
	for _, id := range []invocation{invocation(requestID), invocation(logStream)} {
		for _, tries := range t.claims.open[id] {
			if tries.acquired {
				sum.Acquired++
			} else {
				sum.Refused++
			}
			sum.Waited = sum.Waited || tries.requests > 1
		}
		delete(t.claims.open, id)
	}
	return sum
}

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
	Waited   bool // a claim met another holder, and asked again
}

// claims keeps the requests that claim a lock, by the request id of the
// invocation, or by its log stream if its handler takes no context and so does
// not know the request id.
type claims struct {
	mu sync.Mutex
	of map[string][]fakedynamo.Update
}

// holder is how the wrapper describes the invocation that claims a lock.
var holder = regexp.MustCompile(` request (\S+) log (\S+)`)

// note keeps a request, if it claims a lock for an invocation: no others say
// who the holder is.
func (c *claims) note(u fakedynamo.Update) {
	m := holder.FindStringSubmatch(u.Value("holder"))
	if m == nil {
		return
	}
	id := m[1]
	if id == "unknown" {
		id = m[2]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = append(c.of[id], u)
}

// take returns the requests of an invocation since the last call for it.
func (c *claims) take(id string) []fakedynamo.Update {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.of, id)
	return c.of[id]
}

// Claims returns what an invocation claimed since the last call for it;
// nothing, if the table is not embedded. An invocation whose handler takes no
// context is known by its log stream alone: empty, if others use the log stream
// at the same time.
func (t *Table) Claims(requestID, logStream string) Claims {
	type lock struct{ name, event string }
	type claim struct{ name, token string }
	acquired, met := map[lock]bool{}, map[claim]bool{}
	var sum Claims
	for _, u := range append(t.claims.take(requestID), t.claims.take(logStream)...) {
		l := lock{u.Key, u.Value("event")}
		acquired[l] = acquired[l] || u.Applied
		// Another record of the event makes a claim of its own, and a claim whose clock
		// is behind asks again at once. Its stamp is the time of the claim, or later.
		c := claim{u.Key, u.Value("ownerToken")}
		sum.Waited = sum.Waited || met[c]
		met[c] = met[c] || !u.Applied && u.Refuser("heldUntil") >= u.Value("stamp")
	}
	for _, got := range acquired {
		if got {
			sum.Acquired++
		} else {
			sum.Refused++
		}
	}
	return sum
}

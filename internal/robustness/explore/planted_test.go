package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestPlantedBugs shows that the exploration finds what it is for: each bug
// breaks one rule of a store or one decision of a client, and the trace that is
// found is one of the shortest.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	one := Bounds{Clients: 2, Names: 1, Turns: 2, Kinds: []Kind{{Event: "e1"}}, Ticks: 2, Rounds: 1, Lease: 1, Remember: 20, Unanswered: 1, Copies: 1}
	ordered, renewing, skewed, mutex, two := one, one, one, one, one
	ordered.Kinds = []Kind{{"e1", "1"}, {"e2", "2"}}
	renewing.Turns, renewing.Heartbeat, renewing.Lease, renewing.Ticks, renewing.Copies, renewing.Rounds = 1, true, 3, 5, 0, 0
	skewed.Turns, skewed.Grace, skewed.Lease, skewed.Ticks, skewed.Slow, skewed.Skew = 1, 1, 2, 5, 1, [maxClients]int{0, 2}
	mutex.Kinds, mutex.Turns, mutex.Unanswered, mutex.Skew = []Kind{{}}, 1, 0, [maxClients]int{1, 0}
	two.Unanswered = 2
	for name, c := range map[string]struct {
		bounds Bounds
		plant  func(*Rules, *Client)
		memory Complete // nil: the right one
		want   string
	}{
		"abandon leaves the stamp": {bounds: one, want: "P4", plant: func(r *Rules, _ *Client) {
			r.Settle = func(row *driver.Row, s *driver.Settlement) bool {
				plain := *s
				plain.Abandon = false
				return row.Settle(&plain)
			}
		}},
		"abandon leaves another owner's stamp": {bounds: one, want: "P4", plant: func(r *Rules, _ *Client) {
			r.Settle = func(row *driver.Row, s *driver.Settlement) bool {
				if row.Token != "" && row.Token != s.Token {
					return false
				}
				return row.Settle(s)
			}
		}},
		"release of any owner": {bounds: one, want: "P1", plant: func(r *Rules, _ *Client) {
			r.Settle = func(row *driver.Row, s *driver.Settlement) bool {
				own := *s
				own.Token = row.Token
				return row.Settle(&own)
			}
		}},
		"release forgets the stamp": {bounds: one, want: "P4", plant: func(r *Rules, _ *Client) {
			r.Settle = func(row *driver.Row, s *driver.Settlement) bool {
				ok := row.Settle(s)
				if ok && !s.Abandon {
					row.Stamp = zero
				}
				return ok
			}
		}},
		"renewal makes a row": {bounds: renewing, want: "P4", plant: func(r *Rules, _ *Client) {
			r.Extend = func(row *driver.Row, q *driver.Renewal) bool {
				if row.Token == "" {
					row.Token, row.Until = q.Token, q.Until
					return true
				}
				return row.Extend(q)
			}
		}},
		"renewal moves the end back": {bounds: renewing, want: "P2", plant: func(r *Rules, _ *Client) {
			r.Extend = func(row *driver.Row, q *driver.Renewal) bool {
				if row.Token == q.Token {
					row.Until = q.Until
					return true
				}
				return row.Extend(q)
			}
		}},
		"own token is enough": {bounds: renewing, want: "P2", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			if row.Token == c.Token && row.Token != "" {
				return driver.Granted
			}
			return row.Judge(c)
		})},
		"own token is enough, whatever the stamp": {bounds: two, want: "P4", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			if row.Token == c.Token && row.Token != "" && !row.Until.After(c.Until) {
				return driver.Granted
			}
			return row.Judge(c)
		})},
		"stamps decide nothing": {bounds: one, want: "P4", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			v := row.Judge(c)
			if v == driver.Behind {
				v = driver.Granted
			}
			return v
		})},
		"an equal stamp is enough": {bounds: one, want: "P4", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			later := *c
			later.Stamp = c.Stamp.Add(time.Microsecond)
			return row.Judge(&later)
		})},
		"a dead holder's stamp decides nothing": {bounds: one, want: "P4", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			v := row.Judge(c)
			if v == driver.Behind && row.Token != "" {
				v = driver.Granted
			}
			return v
		})},
		"lease ends a moment early": {bounds: one, want: "P1", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			early := *row
			early.Until = row.Until.Add(-time.Microsecond)
			return early.Judge(c)
		})},
		"dead holder for ever": {bounds: one, want: "P4", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			if row.Token != "" && row.Token != c.Token {
				return driver.Held
			}
			return row.Judge(c)
		})},
		"completed events run again": {bounds: one, want: "P5", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			other := *c
			other.Event = ""
			return row.Judge(&other)
		})},
		"stale orders run": {bounds: ordered, want: "P5", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			other := *c
			other.Order = ""
			return row.Judge(&other)
		})},
		"an event in progress counts as completed": {bounds: one, want: "P6", plant: judge(func(row *driver.Row, c *driver.Claim) driver.Verdict {
			if v := row.Judge(c); v != driver.Held || row.Event != c.Event {
				return v
			}
			return driver.Completed
		})},
		"memory of the last event only": {bounds: ordered, want: "P5", memory: func(_ driver.Memory, k Kind, now, until time.Time) driver.Memory {
			return Remember(driver.Memory{}, k, now, until)
		}},
		"release clears the memory": {bounds: one, want: "P5", plant: func(r *Rules, _ *Client) {
			r.Settle = func(row *driver.Row, s *driver.Settlement) bool {
				ok := row.Settle(s)
				if ok && s.Memory == nil {
					row.Memory = driver.Memory{}
				}
				return ok
			}
		}},
		"no claim is abandoned": {bounds: one, want: "P4", plant: func(_ *Rules, c *Client) {
			c.Abandons = func(bool, driver.Verdict) bool { return false }
		}},
		"a claim refused by a holder is not abandoned": {bounds: one, want: "P4", plant: func(_ *Rules, c *Client) {
			c.Abandons = func(unsure bool, v driver.Verdict) bool { return unsure && v != driver.Held }
		}},
		"lease counted from the answer": {bounds: skewed, want: "P2", plant: func(_ *Rules, c *Client) {
			c.LeaseFrom = func(_, answered int8) int8 { return answered }
		}},
		"no margin": {bounds: skewed, want: "P2", plant: func(_ *Rules, c *Client) { c.Margin = 0 }},
		"stamps are not raised": {bounds: mutex, want: "P4", plant: func(_ *Rules, c *Client) {
			c.Raises = false
		}},
		"a refused completion is believed": {bounds: one, want: "P5", plant: func(_ *Rules, c *Client) {
			c.Believes = func(bool) bool { return true }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, plan, memory := Right(), Careful(c.bounds.Grace), c.memory
			if c.plant != nil {
				c.plant(&rules, &plan)
			}
			if memory == nil {
				memory = Remember
			}
			r := Run(c.bounds, rules, plan, memory)
			switch {
			case r.Violation == nil:
				t.Errorf("not found in %v", r)
			case !strings.HasPrefix(r.Violation.What, c.want):
				t.Errorf("want a violation of %s, found %v", c.want, r.Violation)
			default:
				t.Logf("found in %v: %v", r, r.Violation)
			}
		})
	}
}

func judge(j func(*driver.Row, *driver.Claim) driver.Verdict) func(*Rules, *Client) {
	return func(r *Rules, _ *Client) { r.Judge = j }
}

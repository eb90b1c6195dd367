package redisquorum_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// fields is a row as a server keeps it.
type fields map[string]string

func (q *quorum) row(node int, name string) fields {
	f := fields{}
	keys, _ := q.minis[node].HKeys("lambdalock:" + name)
	for _, key := range keys {
		f[key] = q.minis[node].HGet("lambdalock:"+name, key)
	}
	return f
}

func (f fields) number(field string) int64 {
	n, _ := strconv.ParseInt(f[field], 10, 64)
	return n
}

// stampOf returns a time as a row has it.
func stampOf(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// completedAs is the line of a completed event.
func completedAs(event string, until time.Time) string {
	return event + " " + until.UTC().Format("2006-01-02T15:04:05.000Z") + "\n"
}

// leads has what one server may have of a later state than the others. It
// returns the fields that it has then. c is the claim that the others have, or
// the server too.
var leads = map[string]func(row fields, c *driver.Claim) fields{
	"nothing": func(fields, *driver.Claim) fields { return nil },
	"stamp":   func(_ fields, c *driver.Claim) fields { return fields{"stamp": stampOf(c.Stamp.Add(time.Hour))} },
	"fence": func(_ fields, c *driver.Claim) fields {
		return fields{"fence": fmt.Sprint(c.Now.Add(time.Hour).UnixMicro())}
	},
	"an earlier run": func(_ fields, c *driver.Claim) fields {
		return fields{"completed": completedAs("e", c.Now.Add(time.Second)), "memoryStamp": stampOf(c.Stamp.Add(-time.Hour))}
	},
	"another event": func(_ fields, c *driver.Claim) fields {
		return fields{"completed": completedAs("f", c.Now.Add(time.Hour)), "memoryStamp": stampOf(c.Stamp.Add(-time.Hour))}
	},
	"a later run": func(_ fields, c *driver.Claim) fields {
		return fields{"completed": completedAs("g2", c.Now.Add(time.Hour)), "memoryStamp": stampOf(c.Stamp.Add(time.Hour))}
	},
	"an earlier order": func(fields, *driver.Claim) fields { return fields{"highestOrder": "4"} },
	"a later order":    func(fields, *driver.Claim) fields { return fields{"highestOrder": "7"} },
	"cleared":          func(fields, *driver.Claim) fields { return fields{"cleared": "another's"} },
	"end": func(row fields, _ *driver.Claim) fields { // by its own clock
		if row["ownerToken"] == "" {
			return nil
		}
		return fields{"leaseEnd": fmt.Sprint(row.number("leaseEnd") + 3*time.Hour.Microseconds())}
	},
	"marks": func(fields, *driver.Claim) fields { return fields{"marks": "3"} },
	"another owner": func(_ fields, c *driver.Claim) fields {
		end := c.Until.Add(time.Hour)
		return fields{"ownerToken": "another's", "claimStamp": stampOf(c.Stamp.Add(-time.Second)), "heldUntil": stampOf(end), "leaseEnd": fmt.Sprint(end.UnixMicro())}
	},
	"life": func(_ fields, c *driver.Claim) fields {
		return fields{"deleteAfter": stampOf(c.DeleteAfter.Add(time.Hour))}
	},
	"lease": func(row fields, c *driver.Claim) fields {
		if row["ownerToken"] == "" {
			return nil
		}
		end := row.number("leaseEnd") + time.Hour.Microseconds()
		return fields{"heldUntil": stampOf(c.Until.Add(time.Hour)), "leaseEnd": fmt.Sprint(end)}
	},
}

// lags has how the same server may be behind in the rest.
var lags = map[string]func(m *miniredis.Miniredis, key string, c *driver.Claim){
	"":                 func(*miniredis.Miniredis, string, *driver.Claim) {},
	"missed the claim": nil,
	"earlier round": func(m *miniredis.Miniredis, key string, c *driver.Claim) {
		m.HSet(key, "claimStamp", stampOf(c.Stamp.Add(-time.Microsecond)))
	},
	"lease is over": func(m *miniredis.Miniredis, key string, c *driver.Claim) {
		m.HSet(key, "leaseEnd", fmt.Sprint(c.Now.Add(-time.Second).UnixMicro()), "heldUntil", stampOf(c.Now.Add(-time.Second)))
	},
}

// TestOneServerIsAhead lets one server of three have a later state in one field
// than the others, and sends each request to it and one or both of them. What
// the quorum says is true of a majority, and no server goes back.
func TestOneServerIsAhead(t *testing.T) { // F24, F42, F44
	t.Parallel()
	q := newQuorum(t, 3)
	cases := 0
	for _, lead := range slices.Sorted(maps.Keys(leads)) {
		for _, lag := range slices.Sorted(maps.Keys(lags)) {
			if (lead == "another owner" || strings.HasPrefix(lead, "a later")) && lags[lag] != nil || lag == "lease is over" && (lead == "end" || lead == "lease") {
				continue
			}
			for _, step := range []string{"acquire", "renew", "longer", "complete", "order", "release", "cool", "abandon"} {
				for _, nodes := range [][]int{{0, 1, 2}, {0, 1}} {
					if lead == "another owner" && len(nodes) == 2 {
						continue // nobody has a majority of these
					}
					if cases++; testing.Short() && cases%3 > 0 && len(nodes) == 3 { // two say more
						continue
					}
					a := &leadTest{quorum: q, nodes: nodes, step: step, name: fmt.Sprintf("%s, %s, %s, %v", lead, lag, step, nodes)}
					a.run(t, lead, lag)
				}
			}
		}
	}
}

// TestNewerRowOnOneServer: one row of a later format refuses claims and
// renewals, and does not keep a release from the other servers.
func TestNewerRowOnOneServer(t *testing.T) { // F41
	t.Parallel()
	q := newQuorum(t, 3)
	c := redistest.Claim("n")
	redistest.MustAcquire(t, q, c)
	q.minis[0].HSet("lambdalock:n", "rowFormat", "2")
	if row, ok, err := q.Renew(t.Context(), redistest.Renewal(c)); ok || !row.Newer || err != nil {
		t.Errorf("renewal: applied %v, %+v, %v", ok, row, err)
	}
	if _, ok, err := q.Settle(t.Context(), redistest.Settlement(c)); !ok || err != nil || q.owner(1, "n")+q.owner(2, "n") != "" {
		t.Errorf("release: applied %v, %v", ok, err)
	}
	if row, ok, err := q.Acquire(t.Context(), redistest.Claim("n")); ok || !row.Newer || err != nil || q.owner(1, "n")+q.owner(2, "n") != "" {
		t.Errorf("claim: granted %v, %+v, %v", ok, row, err)
	}
}

type leadTest struct {
	*quorum
	nodes []int
	step  string
	name  string // of the case, and of the lock
	next  *driver.Claim
	c     *driver.Claim
	s     *driver.Settlement
	r     *driver.Renewal
}

func (a *leadTest) run(t *testing.T, lead, lag string) {
	t.Helper()
	a.only(0, 1, 2)
	first := redistest.Claim(a.name)
	redistest.MustAcquire(t, a, first)
	redistest.MustRelease(t, a, first, nil)
	a.c = redistest.Claim(a.name)
	a.c.Event = "e"
	missed := lags[lag] == nil
	if missed {
		a.only(1, 2)
	}
	held := redistest.MustAcquire(t, a, a.c)
	a.only(0, 1, 2)
	if !missed {
		lags[lag](a.minis[0], "lambdalock:"+a.name, a.c)
	}
	for field, value := range leads[lead](a.row(0, a.name), a.c) {
		a.minis[0].HSet("lambdalock:"+a.name, field, value)
	}
	known := expect.Value(a.Read(t.Context(), a.name))(t)
	before := []fields{a.row(0, a.name), a.row(1, a.name), a.row(2, a.name)}
	a.only(a.nodes...)
	row, ok, err := a.send(t, known.Memory)
	// A claim that was given up has raised the stamp of a free server, which then
	// takes no row from the others.
	unsure := missed && lead == "stamp" && a.r != nil && len(a.nodes) == 2
	if lead != "a later run" && (ok == unsure || err != nil != unsure) {
		t.Errorf("%s: applied %v, error %v, row %+v", a.name, ok, err, row)
	}
	var e *driver.Error
	if unsure && (!errors.As(err, &e) || e.Unapplied || !strings.Contains(err.Error(), "1 of 3 servers failed")) {
		t.Errorf("%s: error %#v, want one that names the server that is down", a.name, err)
	}
	a.only(0, 1, 2)
	for _, i := range a.nodes {
		if a.next != nil && ok && row.Fence <= before[i].number("fence") {
			t.Errorf("%s: fence %d, server %d had %s before", a.name, row.Fence, i, before[i]["fence"])
		}
	}
	for i, was := range before {
		a.neverBack(t, i, was, a.row(i, a.name))
	}
	have := 0
	for i := range a.minis {
		if a.done(a.row(i, a.name), row.Fence) {
			have++
		}
	}
	if ok && have < 2 {
		t.Errorf("%s: applied, but %d servers have it", a.name, have)
	}
	if lead == "fence" && a.r != nil && len(a.nodes) == 3 && row.Fence >= before[0].number("fence") {
		t.Errorf("%s: fence %d, which one server has", a.name, row.Fence)
	}
	if ok && a.s == nil && row.Fence < held.Fence {
		t.Errorf("%s: fence %d, the claim had %d", a.name, row.Fence, held.Fence)
	}
}

// send sends the request of the step, as package lock does.
func (a *leadTest) send(t *testing.T, m driver.Memory) (driver.Row, bool, error) {
	a.s = redistest.Settlement(a.c)
	a.s.Now = a.c.Now
	switch a.step {
	case "acquire":
		a.s = nil
		redistest.MustRelease(t, a, a.c, nil)
		a.next = redistest.Claim(a.name)
		a.next.Event = "g"
		row, ok, err := a.Acquire(t.Context(), a.next)
		if !ok && err == nil && row.Token == "" && !row.Stamp.Before(a.next.Stamp) {
			a.next.Stamp = row.Stamp.Add(time.Microsecond)
			row, ok, err = a.Acquire(t.Context(), a.next)
		}
		return row, ok, err
	case "renew", "longer":
		a.s, a.r = nil, redistest.Renewal(a.c)
		if a.step == "longer" {
			a.r.Until = a.r.Until.Add(2 * time.Hour)
		}
		return a.Renew(t.Context(), a.r)
	case "complete":
		a.s.Memory = &driver.Memory{HighestOrder: m.HighestOrder, Completed: append(m.Completed, driver.CompletedEvent{Event: "e", Until: a.c.Now.Add(time.Hour)})}
	case "order":
		a.s.Memory = &driver.Memory{Completed: m.Completed, HighestOrder: "5"}
	case "cool":
		a.s.Until = a.s.Now.Add(time.Hour)
	case "abandon":
		a.s.Abandon = true
	}
	return a.Settle(t.Context(), a.s)
}

// neverBack reports what a server has of an earlier state than before.
func (a *leadTest) neverBack(t *testing.T, node int, was, is fields) {
	t.Helper()
	for _, field := range []string{"stamp", "memoryStamp", "highestOrder"} {
		if is[field] < was[field] {
			t.Errorf("%s: %s of server %d went from %q back to %q", a.name, field, node, was[field], is[field])
		}
	}
	if is.number("fence") < was.number("fence") {
		t.Errorf("%s: the fence of server %d went from %s back to %s", a.name, node, was["fence"], is["fence"])
	}
	if owner := is["ownerToken"]; owner == a.c.Token && owner == was["ownerToken"] && (is["heldUntil"] < was["heldUntil"] || is.number("leaseEnd") < was.number("leaseEnd") || is["claimStamp"] < was["claimStamp"]) {
		t.Errorf("%s: the lease of server %d went from %v back to %v", a.name, node, was, is)
	}
	if a.s != nil && a.s.Memory == nil && is["ownerToken"] == was["ownerToken"] && is["deleteAfter"] < was["deleteAfter"] {
		t.Errorf("%s: server %d keeps the row until %s instead of %s", a.name, node, is["deleteAfter"], was["deleteAfter"])
	}
}

// done reports whether a server has what was asked for.
func (a *leadTest) done(row fields, fence int64) bool {
	switch {
	case a.next != nil:
		return row["ownerToken"] == a.next.Token && row["stamp"] >= stampOf(a.next.Stamp) && row.number("fence") >= fence
	case a.r != nil:
		return row["ownerToken"] == a.c.Token && row["heldUntil"] >= stampOf(a.r.Until) && row.number("fence") >= fence
	case a.step == "cool" && row["ownerToken"] != a.s.CooldownToken:
		return false
	case row["ownerToken"] == a.c.Token || row["stamp"] < stampOf(a.c.Stamp):
		return false
	case a.s.Memory == nil:
		return true
	}
	for _, e := range a.s.Memory.Completed {
		if !strings.Contains(row["completed"], completedAs(e.Event, e.Until)) {
			return false
		}
	}
	return cmp.Compare(row["highestOrder"], a.s.Memory.HighestOrder) >= 0
}

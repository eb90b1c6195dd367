package driver_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	moment = time.Microsecond // the resolution of stamps and leases
	milli  = time.Millisecond // the resolution of completed events
)

// TestJudge has the cases of every clause of [driver.Row.Judge], with the
// moments on both sides of its boundary. The claim has an event and an order,
// is dated noon, and asks for a minute.
func TestJudge(t *testing.T) {
	t.Parallel()
	claim := driver.Claim{Name: "n", Event: "e1", Order: "05", Token: "mine", Now: noon, Stamp: noon, Until: noon.Add(time.Minute)}
	mutex := claim
	mutex.Event, mutex.Order = "", ""
	anHourLater := claim // in a store that judges by its own clock
	anHourLater.Now = noon.Add(time.Hour)

	completed := func(event string, until time.Time) driver.Memory {
		return driver.Memory{Completed: []driver.CompletedEvent{{Event: "e0", Until: noon.Add(time.Hour)}, {Event: event, Until: until}}}
	}
	highest := func(order string) driver.Memory { return driver.Memory{HighestOrder: order} }
	held := func(token string, stamp, until time.Time) driver.Row {
		return driver.Row{Token: token, Stamp: stamp, Until: until}
	}
	before, after := noon.Add(-moment), noon.Add(moment)
	end, later := claim.Until, claim.Until.Add(moment)

	for name, c := range map[string]struct {
		row   driver.Row
		claim driver.Claim
		want  driver.Verdict
	}{
		"no row": {driver.Row{}, claim, driver.Granted},

		"newer format, free":            {driver.Row{Newer: true}, claim, driver.Newer},
		"newer format, before the rest": {driver.Row{Newer: true, Memory: completed("e1", end)}, claim, driver.Newer},

		"completed, remembered":           {driver.Row{Memory: completed("e1", end)}, claim, driver.Completed},
		"completed, last moment":          {driver.Row{Memory: completed("e1", noon)}, claim, driver.Completed},
		"completed, forgotten":            {driver.Row{Memory: completed("e1", noon.Add(-milli))}, claim, driver.Granted},
		"completed, forgotten meanwhile":  {driver.Row{Memory: completed("e1", end)}, anHourLater, driver.Granted},
		"completed, another event":        {driver.Row{Memory: completed("e2", end)}, claim, driver.Granted},
		"completed, but a mutex":          {driver.Row{Memory: completed("", end)}, mutex, driver.Granted},
		"completed, and held by another":  {driver.Row{Token: "other", Until: end, Memory: completed("e1", end)}, claim, driver.Completed},
		"completed, and held by itself":   {driver.Row{Token: "mine", Stamp: noon, Until: end, Memory: completed("e1", end)}, claim, driver.Completed},
		"completed, and stale":            {driver.Row{Memory: driver.Memory{Completed: completed("e1", end).Completed, HighestOrder: "09"}}, claim, driver.Completed},
		"completed, and its stamp is old": {driver.Row{Stamp: after, Memory: completed("e1", end)}, claim, driver.Completed},

		"order below the highest":      {driver.Row{Memory: highest("06")}, claim, driver.Stale},
		"order equal to the highest":   {driver.Row{Memory: highest("05")}, claim, driver.Stale},
		"order above the highest":      {driver.Row{Memory: highest("04")}, claim, driver.Granted},
		"order compared bytewise":      {driver.Row{Memory: highest("1")}, claim, driver.Stale},
		"no highest order":             {driver.Row{Memory: highest("")}, claim, driver.Granted},
		"unordered claim":              {driver.Row{Memory: highest("06")}, mutex, driver.Granted},
		"stale, and held by another":   {driver.Row{Token: "other", Until: end, Memory: highest("06")}, claim, driver.Stale},
		"stale, and held by itself":    {driver.Row{Token: "mine", Stamp: noon, Until: end, Memory: highest("06")}, claim, driver.Stale},
		"stale, and its stamp is old":  {driver.Row{Stamp: after, Memory: highest("06")}, claim, driver.Stale},
		"stale, and the event is new":  {driver.Row{Memory: driver.Memory{Completed: completed("e2", end).Completed, HighestOrder: "06"}}, claim, driver.Stale},
		"above the highest, but held":  {driver.Row{Token: "other", Until: end, Memory: highest("04")}, claim, driver.Held},
		"forgotten, but still ordered": {driver.Row{Memory: driver.Memory{Completed: completed("e1", noon.Add(-milli)).Completed, HighestOrder: "05"}}, claim, driver.Stale},

		"own row, repeated claim":            {held("mine", noon, end), claim, driver.Granted},
		"own row, claim of a later round":    {held("mine", before, end), claim, driver.Granted},
		"own row, claim of an earlier round": {held("mine", after, end), claim, driver.Held},
		"own row, claim for longer":          {held("mine", noon, end.Add(-moment)), claim, driver.Granted},
		"own row, renewed since":             {held("mine", noon, later), claim, driver.Held},
		"own row, lease ended":               {held("mine", noon, before), claim, driver.Granted},

		"held by another":              {held("other", before, end), claim, driver.Held},
		"held to this very moment":     {held("other", before, noon), claim, driver.Held},
		"lease ended a moment ago":     {held("other", before.Add(-moment), before), claim, driver.Granted},
		"held, and its stamp is old":   {held("other", after, end), claim, driver.Held},
		"dead holder, stamp is old":    {held("other", after, end), anHourLater, driver.Behind},
		"dead holder, equal stamp":     {held("other", noon, end), anHourLater, driver.Behind},
		"dead holder, stamp is newer":  {held("other", before, end), anHourLater, driver.Granted},
		"held without a token is free": {driver.Row{Stamp: before, Until: end}, claim, driver.Granted},

		"free, stamp above":        {driver.Row{Stamp: before}, claim, driver.Granted},
		"free, stamp equal":        {driver.Row{Stamp: noon}, claim, driver.Behind},
		"free, stamp below":        {driver.Row{Stamp: after}, claim, driver.Behind},
		"free, never acquired":     {driver.Row{Memory: completed("e2", end)}, claim, driver.Granted},
		"free, tokens are empty":   {driver.Row{Stamp: after}, driver.Claim{Now: noon, Stamp: noon}, driver.Behind},
		"no row, claim of no date": {driver.Row{}, driver.Claim{Token: "mine"}, driver.Granted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.row.Judge(&c.claim); got != c.want {
				t.Errorf("verdict %d on %+v, want %d", got, c.row, c.want)
			}
		})
	}
}

func TestMemoryHas(t *testing.T) {
	t.Parallel()
	m := driver.Memory{Completed: []driver.CompletedEvent{{Event: "e1", Until: noon}, {Event: "e2", Until: noon.Add(time.Hour)}, {Event: "e1", Until: noon.Add(time.Minute)}}}
	for name, c := range map[string]struct {
		event string
		now   time.Time
		want  bool
	}{
		"remembered":                    {"e2", noon, true},
		"last millisecond":              {"e2", noon.Add(time.Hour + milli - 1), true},
		"forgotten":                     {"e2", noon.Add(time.Hour + milli), false},
		"unknown":                       {"e3", noon, false},
		"twice, the first is forgotten": {"e1", noon.Add(time.Second), true},
		"twice, both are forgotten":     {"e1", noon.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.Has(c.event, c.now); got != c.want {
				t.Errorf("Has(%q) at %v is %v, want %v", c.event, c.now, got, c.want)
			}
		})
	}
	if new(driver.Memory).Has("e1", noon) {
		t.Error("an empty memory has an event")
	}
}

func TestRowUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row  driver.Row
		want bool
	}{
		"zero":     {driver.Row{}, true},
		"acquired": {driver.Row{Stamp: noon}, false},
		"newer":    {driver.Row{Newer: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.row.Unknown(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"all":            {&driver.Error{Store: "DynamoDB table t", Action: "dynamodb:UpdateItem", Hint: "allow it", Err: cause}, "lambdalock: DynamoDB table t: dynamodb:UpdateItem was denied: cause (allow it)"},
		"store only":     {&driver.Error{Store: "memory", Err: cause}, "lambdalock: memory: cause"},
		"no cause":       {&driver.Error{Store: "memory", Hint: "wait"}, "lambdalock: memory (wait)"},
		"empty":          {&driver.Error{}, "lambdalock"},
		"setting":        {&driver.ConfigError{Reason: "no table"}, "lambdalock: no table"},
		"setting, cause": {&driver.ConfigError{Reason: "no table", Err: cause}, "lambdalock: no table: cause"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got, want := errors.Is(c.err, cause), strings.Contains(c.want, "cause"); got != want {
				t.Errorf("unwraps to its cause: %v, want %v", got, want)
			}
		})
	}
}

// TestConformance shows that the store of the example is a store.
func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Harness{
		Open: func(*testing.T) driver.Store { return &tinyStore{rows: map[string]driver.Row{}} },
		Save: func(_ *testing.T, s driver.Store, name string) func() {
			tiny := s.(*tinyStore)
			tiny.mu.Lock()
			defer tiny.mu.Unlock()
			saved := tiny.rows[name]
			return func() {
				tiny.mu.Lock()
				defer tiny.mu.Unlock()
				tiny.rows[name] = saved
			}
		},
	})
}

// TestTake shows that a fence is the time by which the store judges, that it is
// above the row's whatever that time is, and that a claim that meets its own
// earlier copy does not lower it.
func TestTake(t *testing.T) { // F14, F56
	t.Parallel()
	now, none := noon, driver.InterruptedEvent{}
	for name, c := range map[string]struct {
		row      driver.Row
		fence    int64
		previous driver.InterruptedEvent
	}{
		"new":                      {driver.Row{}, now.UnixMicro(), none},
		"earlier":                  {driver.Row{Fence: 7, Holder: "dead", Token: "other", Event: "x", Payload: "y", Stamp: now.Add(-9)}, now.UnixMicro(), driver.InterruptedEvent{Holder: "dead", Event: "x", Payload: "y", Since: now.Add(-9)}},
		"after a cooldown":         {driver.Row{Fence: 7, Token: "cooldown", Cooldown: "dead", Stamp: now.Add(-9)}, now.UnixMicro(), none},
		"by a clock that is ahead": {driver.Row{Fence: now.UnixMicro()}, now.UnixMicro() + 1, none},
		"its own copy":             {driver.Row{Fence: now.UnixMicro(), Token: "t", Holder: "h"}, now.UnixMicro(), none},
		"its own copy, ahead":      {driver.Row{Fence: now.UnixMicro() + 9, Token: "t", Holder: "h", Event: "e"}, now.UnixMicro() + 9, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &driver.Claim{Token: "t", Holder: "h", Event: "e", Payload: "p", Now: now, Stamp: now.Add(1), Until: now.Add(2), DeleteAfter: now.Add(3)}
			c.row.Memory.HighestOrder = "5"
			c.row.Take(claim, now)
			want := driver.Row{Token: "t", Holder: "h", Event: "e", Payload: "p", Stamp: now.Add(1), Until: now.Add(2), DeleteAfter: now.Add(3), Fence: c.fence, Previous: c.previous, Memory: driver.Memory{HighestOrder: "5"}}
			if !reflect.DeepEqual(c.row, want) {
				t.Errorf("got %+v, want %+v", c.row, want)
			}
		})
	}
}

// TestInterrupted shows which owner leaves its event in the row, until when,
// and that none is there twice or after its time.
func TestInterrupted(t *testing.T) { // F19
	t.Parallel()
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	old := driver.InterruptedEvent{Event: "e0", Holder: "older", Since: ago(time.Hour), Until: noon}
	dead := driver.Row{
		Token: "dead", Event: "e1", Payload: "p", Holder: "holder", Stamp: ago(time.Minute), Until: ago(time.Second), InterruptedFor: time.Minute,
		Memory: driver.Memory{Interrupted: []driver.InterruptedEvent{old}},
	}
	left := driver.InterruptedEvent{Event: "e1", Payload: "p", Holder: "holder", Since: ago(time.Minute), Until: ago(time.Second).Add(time.Minute)}
	with := func(change func(*driver.Row)) driver.Row {
		row := dead
		change(&row)
		return row
	}
	for name, c := range map[string]struct {
		row  driver.Row
		want []driver.InterruptedEvent
	}{
		"dead":              {dead, []driver.InterruptedEvent{old, left}},
		"dead, not to keep": {with(func(r *driver.Row) { r.InterruptedFor = 0 }), []driver.InterruptedEvent{old}},
		"its own copy":      {with(func(r *driver.Row) { r.Token = "t" }), []driver.InterruptedEvent{old}},
		"free":              {with(func(r *driver.Row) { r.Token, r.Holder, r.InterruptedFor = "", "", 0 }), []driver.InterruptedEvent{old}},
		"again": {with(func(r *driver.Row) {
			r.Memory.Interrupted = []driver.InterruptedEvent{{Event: "e1", Until: noon.Add(time.Hour)}, old}
		}), []driver.InterruptedEvent{old, left}},
		"an older one is over": {with(func(r *driver.Row) {
			r.Memory.Interrupted = []driver.InterruptedEvent{{Event: "e0", Until: noon.Add(-1)}}
		}), []driver.InterruptedEvent{left}},
		"over":                     {with(func(r *driver.Row) { r.InterruptedFor = time.Second - time.Millisecond }), []driver.InterruptedEvent{old}},
		"to its last moment":       {with(func(r *driver.Row) { r.InterruptedFor = time.Second }), []driver.InterruptedEvent{old, {Event: "e1", Payload: "p", Holder: "holder", Since: ago(time.Minute), Until: noon}}},
		"in whole milliseconds":    {with(func(r *driver.Row) { r.Until = r.Until.Add(999 * time.Microsecond) }), []driver.InterruptedEvent{old, left}},
		"one more than fit in all": {with(func(r *driver.Row) { r.Memory.Interrupted = many("older", 64) }), append(many("older", 64)[1:], left)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.row.Memory.Interrupted)
			row := c.row
			row.Take(&driver.Claim{Token: "t", Event: "e2", Now: noon, Stamp: noon.Add(time.Hour), Until: noon.Add(1), InterruptedFor: time.Hour}, noon.Add(time.Hour))
			if !reflect.DeepEqual(row.Memory.Interrupted, c.want) || row.InterruptedFor != time.Hour {
				t.Errorf("got %+v\nwant %+v", row.Memory.Interrupted, c.want)
			}
			if !reflect.DeepEqual(c.row.Memory.Interrupted, before) {
				t.Error("a slice that another row may share has changed")
			}
			cools := row
			if !cools.Settle(&driver.Settlement{Token: "t", Until: noon, CooldownToken: "cools"}) || cools.Token != "cools" || cools.InterruptedFor != 0 {
				t.Errorf("in a cooldown: %+v", cools)
			}
			if !row.Settle(&driver.Settlement{Token: "t"}) || row.InterruptedFor != 0 || !reflect.DeepEqual(row.Memory.Interrupted, c.want) {
				t.Errorf("after a release: %+v", row)
			}
		})
	}
}

// many returns so many events that are interrupted.
func many(event string, n int) (all []driver.InterruptedEvent) {
	for i := range n {
		all = append(all, driver.InterruptedEvent{Event: fmt.Sprint(event, i), Until: noon.Add(time.Hour)})
	}
	return all
}

// TestInterruptSharesNothing: two memories may share a slice that has room.
func TestInterruptSharesNothing(t *testing.T) {
	t.Parallel()
	both := []driver.InterruptedEvent{{Event: "e1", Until: noon}, {Event: "e2", Until: noon}}
	m := driver.Memory{Interrupted: both[:1]}
	m.Interrupt(driver.InterruptedEvent{Event: "e3", Until: noon}, noon)
	if both[1].Event != "e2" || len(m.Interrupted) != 2 {
		t.Errorf("%+v, and beside it %+v", m.Interrupted, both)
	}
}

func TestFindInterrupted(t *testing.T) {
	t.Parallel()
	m := driver.Memory{Interrupted: []driver.InterruptedEvent{{Event: "e1", Until: noon}, {Event: "e2", Until: noon.Add(time.Hour)}}}
	for name, c := range map[string]struct {
		event string
		now   time.Time
		want  bool
	}{
		"there":       {"e2", noon, true},
		"last moment": {"e1", noon, true},
		"over":        {"e1", noon.Add(1), false},
		"unknown":     {"e3", noon, false},
	} {
		if got := m.FindInterrupted(c.event, c.now); (got != nil) != c.want || got != nil && got.Event != c.event {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestKeepUntil shows that a row is kept for as long as what it remembers
// longest, and for a day at least.
func TestKeepUntil(t *testing.T) { // F23
	t.Parallel()
	const day = 24 * time.Hour
	completed := []driver.CompletedEvent{{Event: "e1", Until: noon.Add(2 * day)}, {Event: "e2", Until: noon.Add(time.Hour)}}
	interrupted := []driver.InterruptedEvent{{Event: "e1", Until: noon.Add(3 * day)}, {Event: "e2", Until: noon.Add(time.Hour)}}
	for name, c := range map[string]struct {
		m    driver.Memory
		want time.Duration
	}{
		"nothing":                    {driver.Memory{}, day},
		"events":                     {driver.Memory{Completed: completed}, 2 * day},
		"events, for less than that": {driver.Memory{Completed: completed[1:], Interrupted: interrupted[1:]}, day},
		"interrupted events":         {driver.Memory{Completed: completed, Interrupted: interrupted}, 3 * day},
		"an order":                   {driver.Memory{HighestOrder: "1"}, 4 * day},
		"an order, and events":       {driver.Memory{HighestOrder: "1", Completed: completed, Interrupted: interrupted}, 4 * day},
	} {
		if got := c.m.KeepUntil(noon, 4*day).Sub(noon); got != c.want {
			t.Errorf("%s: kept for %v, want %v", name, got, c.want)
		}
	}
}

// TestSince shows that marks and claims that were given up do not make a lock
// look younger, nor does a late copy of its own claim.
func TestSince(t *testing.T) {
	t.Parallel()
	began := noon.Add(moment)
	c := driver.Claim{Token: "t", Now: began, Stamp: began, Until: noon.Add(time.Hour)}
	var row driver.Row
	row.Take(&c, began)
	row.Settle(&driver.Settlement{Token: "given up", Abandon: true, Stamp: noon.Add(time.Minute)})
	if got := row.Since(); !got.Equal(began) || !row.Stamp.After(began) {
		t.Errorf("the row with the stamp %v is held since %v, want %v", row.Stamp, got, began)
	}
	row.Fence = noon.Add(time.Hour).UnixMicro() // of a clock that was ahead before
	if got := row.Since(); !got.Equal(row.Stamp) {
		t.Errorf("with a fence that is ahead since %v, want %v", got, row.Stamp)
	}
	if row = (driver.Row{Stamp: noon}); !row.Since().Equal(noon) { // a store without fences
		t.Errorf("without a fence since %v, want %v", row.Since(), noon)
	}
}

// Package alike compares stores with a model of what a store must do: the same
// random requests go to both, one after the other, and every answer and every
// row must be the same. It shows that the condition of an acquire, in whatever
// language a store expresses it, grants what [driver.Row.Judge] grants.
package alike

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Store is what can be compared.
type Store interface {
	driver.Store
	driver.Inspector
}

// Config says how a store may differ from others.
type Config struct {
	// Open returns a store for one history. If the store has a clock of its own,
	// now is what it shows.
	Open func(t *testing.T, now func() time.Time) Store
	// Histories is how many are played. Default: 60.
	Histories uint64
	// ServerClock says that the store judges leases by its own clock. Then a claim
	// that is repeated unchanged changes nothing; otherwise it raises the fence.
	ServerClock bool
	// Resolution is by how much a lease may last longer than the model's.
	Resolution time.Duration
	// Shortens says that a later claim or renewal of the owner decides alone when
	// the lease ends by the store's clock. Otherwise that end never moves back.
	Shortens bool
	// KeepsLonger says that only the owner of a row can shorten its life.
	KeepsLonger bool
	// Terse says that the answer to a renewal or settlement that was applied has
	// no complete row.
	Terse bool
	// After is called after each request, if it is not nil.
	After func(t *testing.T, name string, m *Model)
}

// unit is the time between two moments: longer than the resolution of any
// store.
const unit = 4 * time.Second

// Run compares a store with the model.
func Run(t *testing.T, c Config) {
	t.Helper()
	if c.Histories == 0 {
		c.Histories = 60
	}
	verdicts := map[driver.Verdict]int{}
	for seed := range c.Histories {
		h := &history{T: t, c: &c, verdicts: verdicts, requests: requests{
			Rand: rand.New(rand.NewPCG(seed, 7)), c: &c, name: fmt.Sprint("alike/", seed),
		}}
		h.store = c.Open(t, h.now)
		h.model = &Model{c: &c, clock: h.now}
		for i := range 60 {
			h.step(fmt.Sprintf("seed %d, step %d", seed, i))
			if c.After != nil {
				c.After(t, h.name, h.model)
			}
			if t.Failed() {
				return
			}
		}
	}
	for _, v := range []driver.Verdict{driver.Granted, driver.Completed, driver.Stale, driver.Held, driver.Behind} {
		if verdicts[v] < 30 {
			t.Errorf("verdict %d came up only %d times", v, verdicts[v])
		}
	}
}

// history is the state of the store and of the model.
type history struct {
	*testing.T
	requests
	c        *Config
	store    Store
	model    *Model
	fence    int64  // the highest that the store gave
	owner    string // to whom
	verdicts map[driver.Verdict]int
}

func (h *history) step(what string) {
	h.Helper()
	request := h.next(h.model.Row)
	if c, ok := request.(*claim); ok {
		seen := h.model.seenBy(c.Token, c.Now)
		h.verdicts[seen.Judge((*driver.Claim)(c))]++
	}
	before := h.model.Row
	got, gotOK, err := request.send(h.Context(), h.store)
	if err != nil {
		h.Fatalf("%s: %+v: %v", what, request, err)
	}
	want, wantOK := request.apply(h.model)
	if _, settles := request.(*settlement); settles { // it has no time by which to tell the end of another's lease
		got.Until, want.Until = time.Time{}, time.Time{}
	}
	_, claims := request.(*claim)
	mute := h.c.Terse && wantOK && !claims
	if gotOK != wantOK || !mute && !h.same(got, want) {
		h.Fatalf("%s, token %q: %+v\nto     %+v\nstore  %v %+v\nmodel  %v %+v", what, request.from(), request, before, gotOK, got, wantOK, want)
	}
	row, err := h.store.Read(h.Context(), h.name)
	if err != nil {
		h.Fatalf("%s: %v", what, err)
	}
	row.Until, want = time.Time{}, h.model.Row // the reader is nobody
	want.Until = time.Time{}
	if !h.same(row, want) {
		h.Fatalf("%s: after %+v\nstore  %+v\nmodel  %+v", what, request, row, want)
	}
}

// sameFence compares the fences of a row. A server gives those of its own
// clock, which rise with every owner and never fall.
func (h *history) sameFence(got, want *driver.Row) bool {
	if !h.c.ServerClock || want.Fence == 0 {
		return got.Fence == want.Fence
	}
	same := got.Fence > h.fence || got.Fence == h.fence && (want.Token == "" || want.Token == h.owner)
	h.fence = got.Fence
	if want.Token != "" {
		h.owner = want.Token
	}
	want.Fence = got.Fence
	return same
}

// same compares a row of the store with one of the model.
func (h *history) same(got, want driver.Row) bool {
	if !h.sameFence(&got, &want) {
		return false
	}
	if longer := got.Until.Sub(want.Until); got.Token != "" && (longer < 0 || longer > h.c.Resolution) {
		return false
	}
	for _, r := range []*driver.Row{&got, &want} {
		r.Until = time.Time{} // of a free row it means nothing
		r.Stamp, r.DeleteAfter = r.Stamp.UTC(), r.DeleteAfter.UTC()
		var completed []driver.CompletedEvent
		for _, c := range r.Memory.Completed {
			c.Until = c.Until.UTC()
			completed = append(completed, c)
		}
		r.Memory.Completed = completed
		if len(r.Memory.Result.Body) == 0 {
			r.Memory.Result.Body = nil
		}
	}
	return reflect.DeepEqual(got, want)
}

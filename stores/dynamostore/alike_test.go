package dynamostore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestAgreesWithMemstore sends the same random requests to both stores: claims
// and copies of earlier claims, renewals, releases, completions and claims that
// are given up. There are so few owners and moments that all of them meet. It
// shows that the condition of an acquire grants what [driver.Row.Judge] grants,
// and that the rows are the same after every step.
func TestAgreesWithMemstore(t *testing.T) { // F1, F3, F5, F21, F44
	t.Parallel()
	f := newFixture(t)
	verdicts := map[driver.Verdict]int{}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := steps{random: random, name: fmt.Sprint("alike/", seed), noon: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
		memory := memstore.New()
		readRow(t, f.store, s) // creates the row, as the first call does in memory
		for i := range 60 {
			before := readRow(t, memory, s)
			request := s.next(before)
			got, gotOK := request.send(t, f.store)
			want, wantOK := request.send(t, memory)
			if c, ok := request.(claim); ok {
				verdict := before.Judge((*driver.Claim)(&c))
				verdicts[verdict]++
				if (verdict == driver.Granted) != gotOK {
					t.Fatalf("seed %d, step %d: %+v: the condition says %v, and Judge says %v of %+v", seed, i, c, gotOK, verdict, before)
				}
			}
			if gotOK != wantOK || !gotOK && !same(got, want) {
				t.Fatalf("seed %d, step %d: %+v\nDynamoDB %v %+v\nmemory   %v %+v", seed, i, request, gotOK, got, wantOK, want)
			}
			if c, ok := request.(claim); ok && gotOK && !same(got, want) {
				t.Fatalf("seed %d, step %d: %+v was granted\nDynamoDB %+v\nmemory   %+v", seed, i, c, got, want)
			}
			if a, b := readRow(t, f.store, s), readRow(t, memory, s); !same(a, b) {
				t.Fatalf("seed %d, step %d: after %+v\nDynamoDB %+v\nmemory   %+v", seed, i, request, a, b)
			}
		}
	}
	for _, v := range []driver.Verdict{driver.Granted, driver.Completed, driver.Stale, driver.Held, driver.Behind} {
		if verdicts[v] < 30 {
			t.Errorf("verdict %d came up only %d times", v, verdicts[v])
		}
	}
}

// readRow returns a row, by a claim that every row refuses. If there is no row,
// it creates one.
func readRow(t *testing.T, store driver.Store, s steps) driver.Row {
	t.Helper()
	past := s.noon.Add(-time.Hour)
	row, ok, err := store.Acquire(t.Context(), &driver.Claim{Name: s.name, Token: "reader", Event: "never", Now: past, Stamp: past, Until: past, DeleteAfter: s.noon.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if ok { // there was none
		if _, _, err := store.Release(t.Context(), &driver.Settlement{Name: s.name, Token: "reader", DeleteAfter: s.noon.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		return readRow(t, store, s)
	}
	return row
}

func same(a, b driver.Row) bool {
	for _, r := range []*driver.Row{&a, &b} {
		for _, at := range []*time.Time{&r.Stamp, &r.Until, &r.DeleteAfter} {
			*at = at.UTC()
		}
		if r.Token == "" {
			r.Until = time.Time{} // it means nothing then
		}
		completed := make([]driver.CompletedEvent, 0)
		for _, c := range r.Memory.Completed {
			completed = append(completed, driver.CompletedEvent{Event: c.Event, Payload: c.Payload, Until: c.Until.UTC()})
		}
		r.Memory.Completed = completed
	}
	return reflect.DeepEqual(a, b)
}

type sender interface {
	send(*testing.T, driver.Store) (driver.Row, bool)
}

type (
	claim      driver.Claim
	renewal    driver.Renewal
	settlement driver.Settlement
)

func (c claim) send(t *testing.T, s driver.Store) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Acquire(t.Context(), (*driver.Claim)(&c)))
}

func (r renewal) send(t *testing.T, s driver.Store) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Renew(t.Context(), (*driver.Renewal)(&r)))
}

func (r settlement) send(t *testing.T, s driver.Store) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Release(t.Context(), (*driver.Settlement)(&r)))
}

func answer(t *testing.T) func(driver.Row, bool, error) (driver.Row, bool) {
	t.Helper()
	return func(row driver.Row, ok bool, err error) (driver.Row, bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return row, ok
	}
}

// steps makes random requests. Time passes slowly, and each claim may be dated
// by a different clock.
type steps struct {
	random *rand.Rand
	name   string
	noon   time.Time
	clock  int
	sent   []claim
}

func (s *steps) at(spread int) time.Time {
	return s.noon.Add(time.Duration(s.clock+s.random.IntN(spread)) * time.Second)
}

func (s *steps) pick(of ...string) string { return of[s.random.IntN(len(of))] }

func (s *steps) next(row driver.Row) sender {
	s.clock += s.random.IntN(2)
	token := s.pick("a", "b", row.Token)
	keep := s.noon.Add(time.Duration(1+s.random.IntN(5)) * time.Hour)
	switch s.random.IntN(10) {
	case 0, 1, 2, 3:
		c := claim{
			Name: s.name, Token: s.pick("a", "b", "c"), Holder: s.pick("h", "i"), Event: s.pick("", "e", "f"), Order: s.pick("", "", "1", "2", "3"), Payload: s.pick("", "p", "q"),
			Now: s.at(4), Stamp: s.at(4), DeleteAfter: keep,
		}
		if c.Event == "" {
			c.Payload = ""
		}
		c.Until = c.Now.Add(time.Duration(s.random.IntN(8)) * time.Second)
		s.sent = append(s.sent, c)
		return c
	case 4:
		if len(s.sent) > 0 { // a copy
			return s.sent[s.random.IntN(len(s.sent))]
		}
		return renewal{Name: s.name, Token: token, Until: s.at(8), DeleteAfter: keep}
	case 5:
		return renewal{Name: s.name, Token: token, Until: s.at(8), DeleteAfter: keep}
	case 6:
		return settlement{Name: s.name, Token: token, DeleteAfter: keep}
	case 7, 8:
		m := driver.Memory{HighestOrder: s.pick(row.Memory.HighestOrder, "1", "2"), Result: row.Memory.Result}
		for _, e := range []string{"e", "f", "g"} {
			if s.random.IntN(2) == 0 {
				m.Completed = append(m.Completed, driver.CompletedEvent{Event: e, Payload: s.pick("", "p", "q"), Until: s.at(6)})
			}
		}
		if m.HighestOrder == "" {
			m.HighestOrder = row.Memory.HighestOrder
		}
		if n := len(m.Completed); n > 0 && s.random.IntN(2) == 0 {
			m.Result = driver.Result{Event: m.Completed[n-1].Event, Body: []byte(s.pick("x", "y"))}
		} else {
			m.Result = driver.Result{}
		}
		if len(m.Completed) == 0 {
			m.Completed = row.Memory.Completed
		}
		return settlement{Name: s.name, Token: token, DeleteAfter: keep, Memory: &m}
	}
	return settlement{Name: s.name, Token: token, DeleteAfter: keep, Abandon: true, Stamp: s.at(4)}
}

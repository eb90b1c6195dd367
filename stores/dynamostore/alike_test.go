package dynamostore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestSameRuleAsTheMemoryStore sends the same requests to both stores: claims and copies
// of earlier ones, renewals, releases, completions and claims that are given up, of few
// owners in few moments, so that everything meets everything. What the condition grants
// is what [lock.Row.Judge] grants, and the rows are the same after every step.
func TestSameRuleAsTheMemoryStore(t *testing.T) { // F1, F3, F5, F21, F44
	t.Parallel()
	e := newEndpoint(t)
	verdicts := map[lock.Verdict]int{}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := steps{random: random, name: fmt.Sprint("alike/", seed), noon: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
		memory := memstore.New()
		look(t, e.store, s) // makes the row, as the first look at the other does
		for i := range 60 {
			before := look(t, memory, s)
			request := s.next(before)
			got, gotOK := request.send(t, e.store)
			want, wantOK := request.send(t, memory)
			if c, ok := request.(claim); ok {
				verdict := before.Judge((*lock.Claim)(&c))
				verdicts[verdict]++
				if (verdict == lock.Granted) != gotOK {
					t.Fatalf("seed %d, step %d: %+v: the condition says %v, and the rule %v of %+v", seed, i, c, gotOK, verdict, before)
				}
			}
			if gotOK != wantOK || !gotOK && !same(got, want) {
				t.Fatalf("seed %d, step %d: %+v\nDynamoDB %v %+v\nmemory   %v %+v", seed, i, request, gotOK, got, wantOK, want)
			}
			if c, ok := request.(claim); ok && gotOK && !same(got, want) {
				t.Fatalf("seed %d, step %d: %+v was granted\nDynamoDB %+v\nmemory   %+v", seed, i, c, got, want)
			}
			if a, b := look(t, e.store, s), look(t, memory, s); !same(a, b) {
				t.Fatalf("seed %d, step %d: after %+v\nDynamoDB %+v\nmemory   %+v", seed, i, request, a, b)
			}
		}
	}
	for _, v := range []lock.Verdict{lock.Granted, lock.Done, lock.Stale, lock.Held, lock.Behind} {
		if verdicts[v] < 30 {
			t.Errorf("verdict %d was met %d times: this test sees too little", v, verdicts[v])
		}
	}
}

// look reads a row by a claim that nobody grants.
func look(t *testing.T, store lock.Store, s steps) lock.Row {
	t.Helper()
	past := s.noon.Add(-time.Hour)
	row, ok, err := store.Acquire(t.Context(), &lock.Claim{Name: s.name, Token: "looks", Event: "never", Now: past, Stamp: past, Until: past, Keep: s.noon.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if ok { // there was none
		if _, _, err := store.Release(t.Context(), &lock.Settlement{Name: s.name, Token: "looks", Keep: s.noon.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		return look(t, store, s)
	}
	return row
}

func same(a, b lock.Row) bool {
	for _, r := range []*lock.Row{&a, &b} {
		for _, at := range []*time.Time{&r.Since, &r.Until, &r.Keep} {
			*at = at.UTC()
		}
		if r.Token == "" {
			r.Until = time.Time{} // of nobody
		}
		done := make([]lock.Completed, 0)
		for _, c := range r.Memory.Done {
			done = append(done, lock.Completed{Event: c.Event, Until: c.Until.UTC()})
		}
		r.Memory.Done = done
	}
	return reflect.DeepEqual(a, b)
}

type sender interface {
	send(*testing.T, lock.Store) (lock.Row, bool)
}

type (
	claim      lock.Claim
	renewal    lock.Renewal
	settlement lock.Settlement
)

func (c claim) send(t *testing.T, s lock.Store) (lock.Row, bool) {
	t.Helper()
	return answer(t)(s.Acquire(t.Context(), (*lock.Claim)(&c)))
}

func (r renewal) send(t *testing.T, s lock.Store) (lock.Row, bool) {
	t.Helper()
	return answer(t)(s.Renew(t.Context(), (*lock.Renewal)(&r)))
}

func (r settlement) send(t *testing.T, s lock.Store) (lock.Row, bool) {
	t.Helper()
	return answer(t)(s.Release(t.Context(), (*lock.Settlement)(&r)))
}

func answer(t *testing.T) func(lock.Row, bool, error) (lock.Row, bool) {
	t.Helper()
	return func(row lock.Row, ok bool, err error) (lock.Row, bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return row, ok
	}
}

// steps makes requests. Time goes on slowly, and each claim may be dated by another
// clock.
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

func (s *steps) next(row lock.Row) sender {
	s.clock += s.random.IntN(2)
	token := s.pick("a", "b", row.Token)
	keep := s.noon.Add(time.Duration(1+s.random.IntN(5)) * time.Hour)
	switch s.random.IntN(10) {
	case 0, 1, 2, 3:
		c := claim{
			Name: s.name, Token: s.pick("a", "b", "c"), Holder: s.pick("h", "i"), Event: s.pick("", "e", "f"), Order: s.pick("", "", "1", "2", "3"),
			Now: s.at(4), Stamp: s.at(4), Keep: keep,
		}
		c.Until = c.Now.Add(time.Duration(s.random.IntN(8)) * time.Second)
		s.sent = append(s.sent, c)
		return c
	case 4:
		if len(s.sent) > 0 { // a copy
			return s.sent[s.random.IntN(len(s.sent))]
		}
		return renewal{Name: s.name, Token: token, Until: s.at(8), Keep: keep}
	case 5:
		return renewal{Name: s.name, Token: token, Until: s.at(8), Keep: keep}
	case 6:
		return settlement{Name: s.name, Token: token, Keep: keep}
	case 7, 8:
		m := lock.Memory{Top: s.pick(row.Memory.Top, "1", "2"), Result: row.Memory.Result}
		for _, e := range []string{"e", "f", "g"} {
			if s.random.IntN(2) == 0 {
				m.Done = append(m.Done, lock.Completed{Event: e, Until: s.at(6)})
			}
		}
		if m.Top == "" {
			m.Top = row.Memory.Top
		}
		if n := len(m.Done); n > 0 && s.random.IntN(2) == 0 {
			m.Result = lock.Result{Event: m.Done[n-1].Event, Body: []byte(s.pick("x", "y"))}
		} else {
			m.Result = lock.Result{}
		}
		if len(m.Done) == 0 {
			m.Done = row.Memory.Done
		}
		return settlement{Name: s.name, Token: token, Keep: keep, Memory: &m}
	}
	return settlement{Name: s.name, Token: token, Keep: keep, Abandon: true, Stamp: s.at(4)}
}

package objectstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestRowsGoOn: what somebody else has put below the prefix hides no row.
func TestRowsGoOn(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	for _, name := range []string{"a", "b", "damaged", "z"} {
		mustAcquire(t, s, claimAt(noon, name, "token"))
	}
	f.edit(t, "damaged", func(fields map[string]any) { delete(fields, "stamp") })
	if _, ok := f.apply("README.md", []byte("# Locks"), ""); !ok {
		t.Fatal("not written")
	}
	var rows, unreadable []string
	for row, err := range s.Rows(t.Context(), "") {
		if err == nil {
			rows = append(rows, row.Name)
			continue
		}
		unreadable = append(unreadable, row.Name)
		var e *driver.Error
		if !errors.As(err, &e) || !e.Lasting || row.Token != "" {
			t.Errorf("got %+v, error %v", row, err)
		}
	}
	slices.Sort(rows)
	slices.Sort(unreadable)
	if !slices.Equal(rows, []string{"a", "b", "z"}) || !slices.Equal(unreadable, []string{"README.md", "damaged"}) {
		t.Errorf("the rows %q, and errors of %q", rows, unreadable)
	}
}

// TestRefusedRow: an object that the service refuses hides no row. If the
// service refuses all, as it does once the credentials have expired, the rows
// are not damaged: they end.
func TestRefusedRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  bool
		busy bool // meanwhile
		want []string
	}{
		"one":                {false, false, []string{"a <nil>", "b lambdalock: fake: broken"}},
		"one, and throttled": {false, true, []string{"a <nil>", "b lambdalock: fake: broken"}},
		"all":                {true, false, []string{" lambdalock: fake: broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			for _, name := range []string{"a", "b"} {
				mustAcquire(t, objectstore.New(f), claimAt(noon, name, "token"))
			}
			var got []string
			for row, err := range objectstore.New(&refusal{fake: f, all: c.all, busy: c.busy}).Rows(t.Context(), "") {
				got = append(got, fmt.Sprint(row.Name, " ", err))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// refusal refuses to read the object b, or all.
type refusal struct {
	*fake
	all  bool
	busy bool // at the next read of another object than a and b
}

func (r *refusal) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if key == "b" || r.all {
		return objectstore.Object{}, &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Err: errors.New("broken")}
	}
	if key != "a" && r.busy {
		r.busy = false
		return objectstore.Object{}, &driver.Error{Store: "fake", Err: errors.New("busy")}
	}
	return r.fake.Get(ctx, key)
}

// TestRowsOfManyObjects: 10,000 rows are read in 10 s if a request takes 20 ms.
func TestRowsOfManyObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := objectstore.New(f)
		const all = 10_000
		for i := range all {
			mustAcquire(t, s, claimAt(time.Now(), fmt.Sprint(i), "token"))
		}
		f.before = func(string) { time.Sleep(20 * time.Millisecond) }
		began, n := time.Now(), 0
		for _, err := range s.Rows(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if took := time.Since(began); n != all || took > 10*time.Second {
			t.Errorf("read %d rows in %v", n, took)
		}
	})
}

// cutList lists all objects, and fails then.
type cutList struct{ *fake }

func (c cutList) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key := range c.fake.Keys(ctx) {
			if !yield(key, nil) {
				return
			}
		}
		yield("", errNoAnswer)
	}
}

// TestRowsBeforeAnError: a listing that fails half-way hides no row before.
func TestRowsBeforeAnError(t *testing.T) { // F39
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for i := range 3 {
			mustAcquire(t, objectstore.New(f), claimAt(time.Now(), fmt.Sprint(i), "token"))
		}
		f.before = func(string) { time.Sleep(20 * time.Millisecond) }
		var got []string
		for row, err := range objectstore.New(cutList{f}).Rows(t.Context(), "") {
			got = append(got, fmt.Sprint(row.Name, " ", err))
		}
		slices.Sort(got)
		if want := []string{" " + errNoAnswer.Error(), "0 <nil>", "1 <nil>", "2 <nil>"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// slowReads are objects of which only the first that is read is answered. The
// others hang until their callers give up.
type slowReads struct {
	*fake
	answered atomic.Pointer[string]
}

func (s *slowReads) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if s.answered.CompareAndSwap(nil, &key) || *s.answered.Load() == key {
		return s.fake.Get(ctx, key)
	}
	_, _ = s.begin(ctx, "get", key)
	<-ctx.Done()
	return objectstore.Object{}, &driver.Error{Store: "fake", Err: ctx.Err()}
}

// TestRowsEnd: no read goes on after the caller has stopped, or after an error
// that ends the rows. synctest finds what is left.
func TestRowsEnd(t *testing.T) { // F39
	t.Parallel()
	for name, c := range map[string]struct {
		fault fault
		want  error
		took  time.Duration
	}{
		"the caller stops": {none, nil, 0},
		"an error":         {noRequest, errNoAnswer, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				for i := range 500 {
					mustAcquire(t, objectstore.New(f), claimAt(time.Now(), fmt.Sprint(i), "token"))
				}
				f.requests()
				f.fault = func(method string) fault {
					if method == "get" {
						return c.fault
					}
					return none
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began, n := time.Now(), 0
				for _, err := range objectstore.New(&slowReads{fake: f}).Rows(ctx, "") {
					if n++; !errors.Is(err, c.want) {
						t.Errorf("error %v, want %v", err, c.want)
					}
					if c.want == nil {
						break
					}
				}
				if sent := len(f.requests()); n != 1 || sent > 70 || time.Since(began) > c.took {
					t.Errorf("%d rows or errors, %d requests, in %v", n, sent, time.Since(began))
				}
			})
		})
	}
}

// TestPatientReads: a person does not have to begin again because one of many
// requests failed.
func TestPatientReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults   []fault
		takes    time.Duration // a request
		requests int           // for the object
		want     string
	}{
		"passes":      {[]fault{noRequest, lostAnswer, noRequest}, 0, 4, "<nil>"},
		"goes on":     {slices.Repeat([]fault{noRequest}, 9), 0, 4, errNoAnswer.Error()},
		"hangs":       {slices.Repeat([]fault{noRequest}, 9), 10 * time.Second, 2, errNoAnswer.Error()},
		"lasts":       {[]fault{noRequest, broken}, 0, 2, "lambdalock: fake: broken"},
		"not allowed": {[]fault{denied}, 0, 1, "lambdalock: fake: s3:PutObject was denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				s := objectstore.New(f)
				mustAcquire(t, s, claimAt(time.Now(), "n", "token"))
				f.before = func(string) { time.Sleep(c.takes) }
				var faults []fault
				f.fault = func(method string) fault {
					if method != "get" || len(faults) == 0 {
						return none
					}
					next := faults[0]
					faults = faults[1:]
					return next
				}
				read := func() (driver.NamedRow, error) {
					row, err := s.Read(t.Context(), "n")
					return driver.NamedRow{Name: "n", Row: row}, err
				}
				list := func() (found driver.NamedRow, err error) {
					for found, err = range s.Rows(t.Context(), "n") {
					}
					return found, err
				}
				for way, look := range map[string]func() (driver.NamedRow, error){"read": read, "list": list} {
					faults = c.faults
					f.requests()
					row, err := look()
					sent := len(slices.DeleteFunc(f.requests(), func(r string) bool { return r != "get n" }))
					if fmt.Sprint(err) != c.want || sent != c.requests || err == nil && (row.Name != "n" || row.Row.Token != "token") {
						t.Errorf("%s: %+v, error %v after %d requests, want %s after %d", way, row, err, sent, c.want, c.requests)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				f.requests()
				if _, err := s.Read(ctx, "n"); !errors.Is(err, context.Canceled) || len(f.requests()) != 1 {
					t.Errorf("after the end of its context: %v", err)
				}
			})
		})
	}
}

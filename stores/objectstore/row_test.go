package objectstore_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestBody shows the object of a name that is held, after a completed event.
func TestBody(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.clock = func() time.Time { return noon }
	s := objectstore.New(f)
	c := claimAt(noon, "order/7 <é>", "TOKEN1")
	mustAcquire(t, s, c)
	m := &driver.Memory{
		Completed:    []driver.CompletedEvent{{Event: "e1", Payload: "Zm9v", Until: noon.Add(time.Hour)}, {Event: "e2", Until: noon.Add(time.Hour)}},
		HighestOrder: "05", Result: driver.Result{Event: "e2", Body: []byte("ok")},
	}
	answer(t)(s.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: m, DeleteAfter: noon.Add(48 * time.Hour)}))
	c = claimAt(noon.In(time.FixedZone("", 3600)).Add(1500*time.Microsecond), c.Name, "TOKEN2")
	c.Event, c.Payload = "e3", "YmFy"
	mustAcquire(t, s, c)
	abandon(t, s, claimAt(noon.Add(2*time.Second), c.Name, "TOKEN3"))
	const want = `{
  "name": "order/7 <é>",
  "fence": 1795262400001500,
  "fenceBefore": 1795262400000000,
  "stamp": "2026-11-21T12:00:02Z",
  "ownerToken": "TOKEN2",
  "heldUntil": "2026-11-21T12:00:15.0015Z",
  "lease": "15s",
  "leasedAt": "2026-11-21T12:00:00Z",
  "holder": "holder TOKEN2",
  "event": "e3",
  "payload": "YmFy",
  "completed": [
    {
      "event": "e1",
      "payload": "Zm9v",
      "until": "2026-11-21T13:00:00Z"
    },
    {
      "event": "e2",
      "until": "2026-11-21T13:00:00Z"
    }
  ],
  "highestOrder": "05",
  "resultEvent": "e2",
  "resultBody": "b2s=",
  "deleteAfter": "2026-11-22T12:00:02Z",
  "writes": 4
}
`
	if got := string(f.objects["order%2F7%20%3C%C3%A9%3E"].Body); got != want {
		t.Errorf("the object is\n%swant\n%s", got, want)
	}
}

// TestUnreadableObjects: an object that is not the name's row is neither taken
// nor changed.
func TestUnreadableObjects(t *testing.T) {
	t.Parallel()
	const free = `{"name": "n", "stamp": "2026-11-21T12:00:00Z", "fence": 1, "writes": 1`
	for name, c := range map[string]struct{ body, want string }{
		"empty":              {"", "not a lock"},
		"no JSON":            {"hello", "not a lock"},
		"another JSON":       {`{"id": 7}`, `lock of another name, ""`},
		"another type":       {`{"name": 7}`, "not a lock"},
		"array":              {"[]", "not a lock"},
		"null":               {"null", `lock of another name, ""`},
		"two values":         {free + "} {}", "not a lock"},
		"another name":       {strings.Replace(free, `"n"`, `"m"`, 1) + "}", `lock of another name, "m"`},
		"no stamp":           {`{"name": "n", "fence": 1}`, "no stamp"},
		"stamp, not a time":  {`{"name": "n", "stamp": "noon"}`, "not a lock"},
		"held without lease": {free + `, "ownerToken": "t", "heldUntil": "2026-11-21T12:00:00Z"}`, "no readable lease"},
		"lease, not a time":  {free + `, "ownerToken": "t", "lease": "long"}`, "no readable lease"},
		"interruptedFor":     {free + `, "ownerToken": "t", "lease": "5s", "interruptedFor": "long"}`, "no readable interruptedFor"},
		"completed":          {free + `, "completed": [{"event": "e"}]}`, "no readable time"},
		"interrupted":        {free + `, "interrupted": [{"event": "e"}]}`, "no readable time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			s := objectstore.New(f)
			if _, ok := f.apply("n", []byte(c.body), ""); !ok {
				t.Fatal("not written")
			}
			claim := claimAt(noon.Add(time.Hour), "n", "mine")
			for step, request := range map[string]func() error{
				"acquire": func() error { _, _, err := s.Acquire(t.Context(), claim); return err },
				"renew": func() error {
					_, _, err := s.Renew(t.Context(), &driver.Renewal{Name: "n", Token: "mine", Now: claim.Now, Until: claim.Until})
					return err
				},
				"abandon": func() error {
					_, _, err := s.Settle(t.Context(), &driver.Settlement{Name: "n", Token: "mine", Abandon: true, Stamp: claim.Stamp})
					return err
				},
				"read": func() error { _, err := s.Read(t.Context(), "n"); return err },
				"rows": func() error {
					for _, err := range s.Rows(t.Context(), "") {
						return err
					}
					return nil
				},
			} {
				err := request()
				var e *driver.Error
				if !errors.As(err, &e) || !e.Lasting || !e.Answered || !e.Unapplied || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "fake bucket: object n") {
					t.Errorf("%s: got %v, want a permanent error with %q", step, err, c.want)
				}
			}
			if got := string(f.objects["n"].Body); got != c.body {
				t.Errorf("the object was changed to %s", got)
			}
		})
	}
}

// TestServiceWithoutTime: without the service's times nobody knows whether a
// lease has ended.
func TestServiceWithoutTime(t *testing.T) {
	t.Parallel()
	for name, blank := range map[string]func(*objectstore.Object){
		"not when it was written": func(o *objectstore.Object) { o.Modified = time.Time{} },
		"not when it was read":    func(o *objectstore.Object) { o.Now = time.Time{} },
		"no version":              func(o *objectstore.Object) { o.Version = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			mustAcquire(t, objectstore.New(f), claimAt(noon, "n", "a"))
			f.tells = blank
			_, ok, err := objectstore.New(f).Acquire(t.Context(), claimAt(noon.Add(time.Hour), "n", "b"))
			var e *driver.Error
			if !errors.As(err, &e) || !e.Lasting || !e.Answered || !e.Unapplied || ok {
				t.Errorf("granted %v, error %v", ok, err)
			}
		})
	}
	t.Run("no version after a write", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		f.anonymous = true
		s := objectstore.New(f)
		c := claimAt(noon, "n", "a")
		mustAcquire(t, s, c)
		mustRelease(t, s, c)
		if got := f.requests(); !slices.Equal(got, []string{"put n", "get n", "put n"}) {
			t.Errorf("made the requests %q", got)
		}
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"order-7_a.b":             "order-7_a.b",
		"main:hello":              "main%3Ahello",
		"a/b":                     "a%2Fb",
		"a%2Fb":                   "a%252Fb",
		"é ":                      "%C3%A9%20",
		"~probe":                  "%7Eprobe",
		".":                       "%2E",
		"..":                      "%2E%2E",
		".a.":                     "%2Ea%2E",
		"\x00":                    "%00",
		strings.Repeat("a", 200):  strings.Repeat("a", 200),
		strings.Repeat("é", 33):   strings.Repeat("%C3%A9", 33),
		strings.Repeat("a", 201):  strings.Repeat("a", 135) + "~",
		strings.Repeat("é", 1024): strings.Repeat("%C3%A9", 22) + "%C3~",
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			t.Parallel()
			got := objectstore.Key(name)
			if strings.HasSuffix(want, "~") {
				want += got[max(0, len(got)-64):]
			}
			if got != want || len(got) > 200 {
				t.Errorf("key %s, want %s", got, want)
			}
		})
	}
}

// TestKeysDiffer: long names that differ only at the end have different keys.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for n := range 300 {
		for _, end := range []string{"a", "b", ".", "%", "/", "é"} {
			name := strings.Repeat("x", n) + end
			key := objectstore.Key(name)
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q have the key %s", name, other, key)
			}
			seen[key] = name
		}
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.clock = time.Now
	s := objectstore.New(f)
	long := "ns/" + strings.Repeat("é", 300)
	names := []string{"ns/a", "ns/.b", "ns/a/" + strings.Repeat("x", 400), long + "1", long + "2", "other", "ns", "nsé"}
	for _, name := range names {
		mustAcquire(t, s, claimAt(time.Now(), name, "token of "+name))
	}
	for _, key := range []string{"a/b", "%zz", "%6Es", "~probe", "x~y"} { // no name has these keys
		if _, ok := f.apply(key, []byte("hello"), ""); !ok {
			t.Fatal("not written")
		}
	}
	for prefix, want := range map[string][]string{
		"":          names,
		"ns/":       {names[0], names[1], names[2], names[3], names[4]},
		"ns/a":      {names[0], names[2]},
		"ns/.":      {names[1]},
		long:        {names[3], names[4]},
		long + "2":  {names[4]},
		long[:200]:  {names[3], names[4]},
		long + "xx": nil,
		"z":         nil,
	} {
		t.Run(fmt.Sprintf("%.20q, %d bytes", prefix, len(prefix)), func(t *testing.T) {
			var got []string
			for row, err := range s.Rows(t.Context(), prefix) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, row.Name)
				read, err := s.Read(t.Context(), row.Name)
				if err != nil || read.Token != "token of "+row.Name || row.Token != read.Token {
					t.Errorf("read %+v, error %v; listed %+v", read, err, row)
				}
				if left := time.Until(row.Until); left < lease-5*time.Second || left > lease+3*time.Second {
					t.Errorf("the lease ends in %v", left)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestRowsOfLongNames: a key may be cut anywhere in an encoded byte.
func TestRowsOfLongNames(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	var want []string
	for n := range 7 {
		name := strings.Repeat("x", n) + strings.Repeat("é", 100)
		mustAcquire(t, s, claimAt(noon, name, "a"))
		want = append(want, name)
	}
	var got []string
	for row, err := range s.Rows(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
	f.requests()
	for row, err := range s.Rows(t.Context(), "y") {
		t.Errorf("got %+v, error %v", row, err)
	}
	if got := f.requests(); len(got) != 1 {
		t.Errorf("reading no row made the requests %q", got)
	}
}

func TestRowsFail(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"list", "get"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			s := objectstore.New(f)
			for i := range 5 {
				mustAcquire(t, s, claimAt(noon, fmt.Sprint(i), "a"))
			}
			f.fault = func(m string) fault {
				if m == method {
					return noRequest
				}
				return none
			}
			n := 0
			for row, err := range s.Rows(t.Context(), "") {
				if n++; !errors.Is(err, errNoAnswer) {
					t.Errorf("got %+v, error %v", row, err)
				}
			}
			if n != 1 {
				t.Errorf("went on for %d rows", n)
			}
		})
	}
	t.Run("deleted meanwhile", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		s := objectstore.New(f)
		mustAcquire(t, s, claimAt(noon, "n", "a"))
		f.before = func(method string) {
			if method == "get" {
				f.mu.Lock()
				defer f.mu.Unlock()
				clear(f.objects)
			}
		}
		for row, err := range s.Rows(t.Context(), "") {
			t.Errorf("got %+v, error %v", row, err)
		}
	})
}

// TestNewerRows: rows of a later format are listed, and nothing else is known
// of them.
func TestNewerRows(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	for _, name := range []string{"plain", strings.Repeat("long", 100)} {
		mustAcquire(t, s, claimAt(noon, name, "a"))
		f.edit(t, objectstore.Key(name), func(fields map[string]any) { fields["rowFormat"], fields["fence"] = 2, "text" })
	}
	n := 0
	for row, err := range s.Rows(t.Context(), "") {
		n++
		if err != nil || !row.Newer || row.Token != "" || row.Name == "" {
			t.Errorf("got %+v, error %v", row, err)
		}
	}
	if n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ err, want error }{
		"works":           {nil, nil},
		"action denied":   {errDenied, nil},
		"no answer":       {errNoAnswer, errNoAnswer},
		"no such bucket":  {errGone, errGone},
		"a wrong setting": {errSetting, errSetting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.refuses = c.err
			if err := objectstore.New(f).Check(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if len(f.objects) != 0 {
				t.Errorf("wrote %v", slices.Collect(maps.Keys(f.objects)))
			}
		})
	}
}

var (
	errDenied  = &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Action: "s3:ListBucket"}
	errGone    = &driver.Error{Lasting: true, Store: "fake", Answered: true, Unapplied: true, Err: errors.New("no such bucket")}
	errSetting = &driver.ConfigError{Reason: "no bucket"}
)

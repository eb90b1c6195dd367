package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestNoOtherMeaning: what Safe does not print is only itself.
func TestNoOtherMeaning(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"a"`, `"a b"`, "`a\n`", `'a'`, `"\x61\n"`} {
		if got := inspect.Meanings(text); len(got) != 1 || got[0] != text {
			t.Errorf("%s is taken as %q", text, got)
		}
	}
}

func TestSafe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"plain":            {"orders/s3/b/k é.jpg", "orders/s3/b/k é.jpg"},
		"empty":            {"", `""`},
		"escape sequence":  {"a\x1b[2Jb", `"a\x1b[2Jb"`},
		"8-bit control":    {"a\u009b2Jb", `"a\u009b2Jb"`},
		"newline":          {"a\nheld", `"a\nheld"`},
		"right to left":    {"a\u202eb", `"a\u202eb"`},
		"replacement":      {"a\ufffdb", "\"a\ufffdb\""},
		"not UTF-8":        {"a\xffb", `"a\xffb"`},
		"looks quoted":     {`"a"`, `"\"a\""`},
		"quote inside":     {`a"b`, `a"b`},
		"space at the end": {"a ", `"a "`},
		"only a space":     {" ", `" "`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inspect.Safe(c.text); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if got := inspect.Meanings(c.want); got[len(got)-1] != c.text {
				t.Errorf("%s is taken as %q", c.want, got)
			}
		})
	}
}

// TestJSONIsSafe: what is printed holds nothing that a terminal obeys, and
// still says the same.
func TestJSONIsSafe(t *testing.T) {
	t.Parallel()
	const strange = "a\x1b[2J\u009b\u202e\x7f\U0001d173\U000e0041\u2028<é>\"\\"
	var out strings.Builder
	expect.Must(t, inspect.WriteJSON(&out, inspect.Row{Name: strange}, "  "))
	for _, r := range out.String() {
		if r != '\n' && !strconv.IsPrint(r) {
			t.Errorf("prints %q in %s", r, out.String())
		}
	}
	var row inspect.Row
	if err := json.Unmarshal([]byte(out.String()), &row); err != nil || row.Name != strange {
		t.Errorf("decoded %q, error %v", row.Name, err)
	}
	if !strings.Contains(out.String(), "<é>") {
		t.Errorf("escapes what can be printed: %s", out.String())
	}
	if inspect.WriteJSON(&out, make(chan int), "") == nil {
		t.Error("no error for what is not JSON")
	}
}

// TestJSONOfAnyTime: a row whose times JSON cannot express is printed too.
func TestJSONOfAnyTime(t *testing.T) { // F41
	t.Parallel()
	for _, at := range []time.Time{time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<63-1, 0), time.UnixMilli(-1 << 63)} {
		row := driver.Row{
			Token: "t", Stamp: at, Until: at, Fence: at.UnixMicro(), DeleteAfter: at,
			Memory: driver.Memory{
				Completed:   []driver.CompletedEvent{{Event: "e1", At: at, Until: at}},
				Interrupted: []driver.InterruptedEvent{{Event: "e2", Since: at, Until: time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC)}},
			},
		}
		changes := expect.Value(new(inspect.Changes).Next(func(yield func(driver.NamedRow, error) bool) {
			yield(driver.NamedRow{Name: "a", Row: row}, nil)
		}, noon))(t)
		expect.Must(t, inspect.WriteJSON(io.Discard, changes, ""))
		expect.Must(t, inspect.WriteJSON(io.Discard, inspect.Describe("a", &row, noon), ""))
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Duration{
		"2026-11-21T12:00:00Z (in 0s)":     0,
		"2026-11-21T12:00:28Z (in 28s)":    28 * time.Second,
		"2026-11-21T11:58:57Z (1m3s ago)":  -63 * time.Second,
		"2026-11-21T14:05:07Z (in 2h5m)":   2*time.Hour + 5*time.Minute + 7*time.Second,
		"2026-11-18T08:00:00Z (3d4h ago)":  -76 * time.Hour,
		"2026-11-21T12:01:00Z (in 1m0s)":   time.Minute,
		"2027-11-21T12:00:00Z (in 365d0h)": 365 * 24 * time.Hour,
		"2026-11-21T12:59:59Z (in 1h0m)":   time.Hour - 300*time.Millisecond,
		"2026-11-21T11:59:59Z (0s ago)":    -300 * time.Millisecond,
		"2026-11-22T11:59:59Z (in 23h59m)": 24*time.Hour - time.Second,
		"2026-11-21T12:00:59Z (in 59s)":    59 * time.Second,
		"2026-11-22T12:00:00Z (in 1d0h)":   24 * time.Hour,
		"2026-11-21T13:00:00Z (in 1h0m)":   time.Hour,
		"2026-11-21T12:00:59Z (in 1m0s)":   time.Minute - 300*time.Millisecond,
		"2026-11-20T12:00:00Z (1d0h ago)":  -24 * time.Hour,
		"2026-11-21T11:00:00Z (1h0m ago)":  -time.Hour,
		"2026-11-21T11:59:01Z (59s ago)":   -59 * time.Second,
		"2026-11-21T11:01:00Z (59m0s ago)": -59 * time.Minute,
		"2026-11-21T11:00:59Z (59m1s ago)": -59*time.Minute - time.Second,
		"2026-10-22T12:00:00Z (30d0h ago)": -30 * 24 * time.Hour,
		"2026-11-21T12:00:01Z (in 1s)":     time.Second,
		"2026-11-22T13:00:00Z (in 1d1h)":   25 * time.Hour,
		"2026-11-21T12:10:00Z (in 10m0s)":  10 * time.Minute,
	} {
		t.Run(want, func(t *testing.T) {
			if got := inspect.Moment(noon.Add(at).In(time.FixedZone("", 3600)), noon); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func locker(t *testing.T, store driver.Store, o lock.Options) *lock.Locker {
	t.Helper()
	o.Logger, o.Lease = slog.New(slog.DiscardHandler), lock.FixedLease(time.Hour)
	o.Holder = func(context.Context) string { return "f request 1" }
	l := expect.Value(lock.New(store, &o))(t)
	return l
}

func acquire(t *testing.T, l *lock.Locker, key lock.Key) *lock.Lock {
	t.Helper()
	lk := expect.Value(l.Acquire(t.Context(), key))(t)
	return lk
}

// names are names of every kind that the engine stores differently.
var names = map[string]string{
	"plain":         "s3/pictures/cat.jpg",
	"slash":         "/",
	"long":          strings.Repeat("x", 3000),
	"almost long":   strings.Repeat("x", 2045), // the row fits, a slot's does not
	"not UTF-8":     "a\xff",
	"like a hash":   "sha256:abc",
	"like a slot":   "slot:2:abc",
	"like no slot":  "slots",
	"escape":        "a\x1b[2J",
	"a namespace's": "a%2Fb/x",
}

// TestNames: whatever the name, the row is found by it, and its digest is that
// of the logs.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"", "orders", "a/b %"} {
		for kind, name := range names {
			t.Run(namespace+", "+kind, func(t *testing.T) {
				t.Parallel()
				store := memstore.New()
				key := lock.Key{Name: name}
				acquire(t, locker(t, store, lock.Options{Namespace: namespace}), key)
				acquire(t, locker(t, store, lock.Options{Namespace: "another"}), lock.Key{Name: "x"})

				row, err := inspect.Find(t.Context(), store, namespace, name)
				if err != nil || row.Token == "" {
					t.Fatalf("by the name: %+v, error %v", row, err)
				}
				r := inspect.Describe(row.Name, &row.Row, time.Now())
				if r.Namespace != namespace || r.Digest != key.Digest() || r.Slot != 1 || r.Key != "" && r.Key != name {
					t.Errorf("described as %+v", r)
				}
				for _, other := range []string{"", "else", namespace} {
					again, err := inspect.Find(t.Context(), store, other, row.Name)
					if err != nil || again.Name != row.Name {
						t.Errorf("by the stored name in %q: %q, error %v", other, again.Name, err)
					}
				}
				found, err := inspect.FindDigest(t.Context(), store, "", key.Digest())
				if err != nil || len(found) != 1 || found[0].Name != row.Name || found[0].Token == "" {
					t.Errorf("by the digest: %+v, error %v", found, err)
				}
			})
		}
	}
}

// TestSlots: all slots of a limited lock are found by its name and its digest,
// even if nobody ever had the first one.
func TestSlots(t *testing.T) {
	t.Parallel()
	for kind, name := range names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			limited := locker(t, store, lock.Options{Namespace: "orders"})
			key := lock.Key{Name: name}
			for range 3 {
				expect.Value(limited.AcquireOneOf(t.Context(), name, 3))(t)
			}
			row, err := inspect.Find(t.Context(), store, "orders", name)
			if err != nil {
				t.Fatal(err)
			}
			slots, err := inspect.Slots(t.Context(), store, row.Name)
			if err != nil || len(slots) != 2 {
				t.Fatalf("%d slots, error %v", len(slots), err)
			}
			for i, s := range slots {
				r := inspect.Describe(s.Name, &s.Row, time.Now())
				if r.Slot != i+2 || r.Digest != key.Digest() || r.State != inspect.Held {
					t.Errorf("slot %d: %+v", i+2, r)
				}
				if again, err := inspect.Find(t.Context(), store, "orders", s.Name); err != nil || again.Name != s.Name {
					t.Errorf("slot %d by its own name: %+v, error %v", i+2, again, err)
				}
			}
			others := only{store, func(n string) bool { return n != row.Name }}
			found, err := inspect.Find(t.Context(), others, "orders", name)
			if err != nil || found.Name != row.Name || !found.Unknown() {
				t.Errorf("without the first slot: %+v, error %v", found, err)
			}
			digests, err := inspect.FindDigest(t.Context(), others, "", key.Digest())
			if err != nil || len(digests) != 1 || !digests[0].Unknown() || kind != "almost long" && digests[0].Name != row.Name {
				t.Errorf("by the digest without the first slot: %+v, error %v", digests, err)
			}
		})
	}
}

// TestLastSlot: the highest slot that a limit can have is shown.
func TestLastSlot(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	limited := locker(t, store, lock.Options{Namespace: "orders"})
	for range lock.MaxLimit {
		expect.Value(limited.AcquireOneOf(t.Context(), "a", lock.MaxLimit))(t)
	}
	slots, err := inspect.Slots(t.Context(), store, "orders/a")
	if err != nil || len(slots) != lock.MaxLimit-1 || slots[len(slots)-1].Name != "orders/slot:100:a" {
		t.Errorf("%d slots, error %v", len(slots), err)
	}
}

// TestOnlyTheRowMayBeRead: a store that denies to read what does not exist, as
// S3 does without s3:ListBucket, is enough for one name. If the first slot is
// denied, too, nothing is known of the others.
func TestOnlyTheRowMayBeRead(t *testing.T) {
	t.Parallel()
	all := memstore.New()
	limited := locker(t, all, lock.Options{Namespace: "orders"})
	for range 3 {
		expect.Value(limited.AcquireOneOf(t.Context(), "a", 3))(t)
	}
	var read []string
	for row, err := range inspect.ReadAll(t.Context(), hiding{all}, "orders", []string{"a", "b"}) {
		read = append(read, fmt.Sprint(row.Name, err != nil))
	}
	if got := strings.Join(read, ", "); got != "orders/afalse, true" {
		t.Errorf("watch reads %s", got)
	}
	slots, err := inspect.Slots(t.Context(), hiding{all}, "orders/a")
	if err != nil || len(slots) != 2 {
		t.Errorf("%d further slots, error %v; want two", len(slots), err)
	}
	for key, want := range map[string]string{"a": "orders/a", "orders/a": "orders/a", "b": ""} { // the second after orders/orders/a
		if row, err := inspect.Find(t.Context(), hiding{all}, "orders", key); row.Name != want || inspect.Denied(err) != (want == "") {
			t.Errorf("%s is %q, error %v", key, row.Name, err)
		}
	}
	if _, err := inspect.Slots(t.Context(), without{hiding{all}, of("orders/slot:2:a", io.ErrUnexpectedEOF)}, "orders/a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want that of the slot", err)
	}
	others := only{all, func(n string) bool { return n != "orders/a" }}
	if _, err := inspect.Slots(t.Context(), hiding{others}, "orders/a"); !inspect.Denied(err) {
		t.Errorf("%v, want the denial", err)
	}
}

// TestUnreadableByKey: a damaged row hides no other one, as in Rows, and a
// store that answers about no name at all does not do so because of the rows.
func TestUnreadableByKey(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	acquire(t, locker(t, store, lock.Options{Namespace: "orders"}), lock.Key{Name: "a"})
	gone, silent := &driver.Error{Lasting: true, Store: "gone"}, &driver.Error{Store: "silent"}
	for name, c := range map[string]struct {
		failing func(name string) error
		keys    []string
		want    string
	}{
		"damaged":                {of("orders/b", gone), []string{"b", "a"}, "orders/a <nil>, orders/b lambdalock: gone"},
		"alone":                  {of("orders/b", gone), []string{"b"}, "orders/b lambdalock: gone"},
		"and the other denied":   {denying(of("orders/b", gone), "b"), []string{"b"}, "orders/b lambdalock: gone"},
		"without table":          {of("", gone), []string{"b", "a"}, " lambdalock: gone"},
		"does not answer for it": {of("orders/b", silent), []string{"b", "a"}, " lambdalock: silent"},
	} {
		var got []string
		for row, err := range inspect.ReadAll(t.Context(), without{store, c.failing}, "orders", c.keys) {
			got = append(got, fmt.Sprint(row.Name, " ", err))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestDeniedSinceItWasRead: a row that may not be read any more is not deleted,
// also where the key has another row. One that was never read may not exist.
func TestDeniedSinceItWasRead(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	acquire(t, locker(t, store, lock.Options{Namespace: "orders"}), lock.Key{Name: "a"})
	acquire(t, locker(t, store, lock.Options{}), lock.Key{Name: "orders/a"})
	nothing := of("-", nil)
	for name, c := range map[string]struct {
		looks []func(name string) error
		want  string
	}{
		"denied":         {[]func(string) error{nothing, denying(nothing, "/orders/a"), denying(nothing, "/orders/a"), nothing}, "held held, skipped /orders/a, , , "},
		"always denied":  {[]func(string) error{denying(nothing, "/orders/a"), nothing, denying(nothing, "/orders/a")}, "held, acquired, skipped /orders/a, "},
		"deleted before": {[]func(string) error{nothing, of("/orders/a", errUnknown), denying(nothing, "/orders/a")}, "held held, deleted, "},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			changes := inspect.Changes{Skipped: func(name string, _ error) { got = append(got, "skipped "+name) }}
			now := without{Inspector: store}
			rows := inspect.ReadAll(t.Context(), &now, "", []string{"orders/a"})
			for _, now.failing = range c.looks {
				var words []string
				for _, ch := range expect.Value(changes.Next(rows, time.Now()))(t) {
					words = append(words, ch.Change)
				}
				got = append(got, strings.Join(words, " "))
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// denying denies to read one name, and fails as failing does for the others.
func denying(failing func(name string) error, denied string) func(name string) error {
	return func(name string) error {
		if name == denied {
			return &driver.Error{Lasting: true, Action: "GetItem", Store: "denied"}
		}
		return failing(name)
	}
}

// of returns err for a name, or for every one if that is empty.
func of(failing string, err error) func(name string) error {
	return func(name string) error {
		if failing == "" || failing == name {
			return err
		}
		return nil
	}
}

// hiding is a store that denies to read what does not exist.
type hiding struct{ driver.Inspector }

func (h hiding) Read(ctx context.Context, name string) (driver.Row, error) {
	row, err := h.Inspector.Read(ctx, name)
	if err == nil && row.Unknown() {
		err = &driver.Error{Lasting: true, Action: "s3:GetObject"}
	}
	return row, err
}

// without is a store with an error for some rows.
type without struct {
	driver.Inspector
	failing func(name string) error
}

func (w without) Read(ctx context.Context, name string) (driver.Row, error) {
	switch err := w.failing(name); {
	case errors.Is(err, errUnknown):
		return driver.Row{}, nil
	case err != nil:
		return driver.Row{}, err
	}
	return w.Inspector.Read(ctx, name)
}

// errUnknown stands for the answer that there is no row.
var errUnknown = errors.New("unknown")

// only is a store that lacks some rows.
type only struct {
	driver.Inspector
	has func(name string) bool
}

func (o only) Read(ctx context.Context, name string) (driver.Row, error) {
	if !o.has(name) {
		return driver.Row{}, nil
	}
	return o.Inspector.Read(ctx, name)
}

func (o only) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for row, err := range o.Inspector.Rows(ctx, prefix) {
			if o.has(row.Name) && !yield(row, err) {
				return
			}
		}
	}
}

var errDenied = errors.New("denied")

// failing is a store that cannot be read after some requests.
type failing struct {
	driver.Inspector
	left *atomic.Int64
}

func (f failing) Read(context.Context, string) (driver.Row, error) {
	if f.left.Add(-1) < 0 {
		return driver.Row{}, errDenied
	}
	return driver.Row{}, nil
}

func (f failing) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) { yield(driver.NamedRow{}, errDenied) }
}

func TestFindErrors(t *testing.T) {
	t.Parallel()
	_, err := inspect.Find(t.Context(), memstore.New(), "orders", "cat\x1b")
	if e := (*inspect.NotFoundError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), `"orders/cat\x1b"`) {
		t.Errorf("%v, want that there is no row", err)
	}
	for n := range int64(3) {
		left := new(atomic.Int64)
		left.Store(n)
		if _, err := inspect.Find(t.Context(), failing{left: left}, "orders", "cat"); !errors.Is(err, errDenied) {
			t.Errorf("%v, want the store's error", err)
		}
	}
	if _, err := inspect.FindDigest(t.Context(), failing{}, "", "0123456789ab"); !errors.Is(err, errDenied) {
		t.Errorf("%v, want the store's error", err)
	}
	yielded := 0
	for _, err := range inspect.ReadAll(t.Context(), failing{left: new(atomic.Int64)}, "", []string{"a", "b"}) {
		if yielded++; !errors.Is(err, errDenied) {
			t.Errorf("%v, want the store's error", err)
		}
	}
	if yielded != 1 {
		t.Errorf("%d errors, want one", yielded)
	}
	if _, err := inspect.Inspector(struct{ driver.Store }{}); err == nil {
		t.Error("a store without Inspector is taken for one")
	}
	if _, err := inspect.Inspector(memstore.New()); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	full := driver.Row{
		Token: "t", Stamp: noon.Add(-time.Minute), Until: noon.Add(28 * time.Second), Fence: noon.Add(-time.Minute).UnixMicro(), Event: "e\x1b", Payload: "p", Holder: "f\nrequest",
		Memory: driver.Memory{
			Completed: []driver.CompletedEvent{
				{Event: "e0", Until: noon.Add(-time.Hour), At: noon.Add(-2 * time.Hour)},
				{Event: "e1", Payload: "p1", Until: noon},
				{Event: "e2", Until: noon.Add(time.Hour), At: noon.Add(-10 * time.Minute)},
			},
			HighestOrder: "05", Result: driver.Result{Event: "e1", Body: []byte("12345")},
		},
		DeleteAfter: noon.Add(time.Hour),
	}
	expired := full
	expired.Until = noon.Add(-time.Microsecond)
	last := full
	last.Until = noon
	free := driver.Row{Stamp: noon, Fence: 9}
	cooling := driver.Row{Token: "cools", Cooldown: "t", Stamp: noon, Until: noon.Add(time.Minute), Fence: 9}
	cooled := cooling
	cooled.Until = noon.Add(-time.Microsecond)
	coalescing := full
	coalescing.Event, coalescing.Marks, coalescing.Stamp = "", 3, noon.Add(2*time.Second)
	closed := coalescing
	closed.Marks = -1
	for name, c := range map[string]struct {
		row  driver.Row
		want string
	}{
		"held": {full, `orders/a
  digest         ca978112ca1b
  state          held
  holder         "f\nrequest"
  since          2026-11-21T11:59:00Z (1m0s ago)
  until          2026-11-21T12:00:28Z (in 28s)
  event          "e\x1b"
  fence          1795262340000000
  completed      e0  at 2026-11-21T10:00:00Z (2h0m ago), forgotten since 2026-11-21T11:00:00Z (1h0m ago)
  completed      e1  remembered until 2026-11-21T12:00:00Z (in 0s)
  completed      e2  at 2026-11-21T11:50:00Z (10m0s ago), remembered until 2026-11-21T13:00:00Z (in 1h0m)
  highest order  05
  result         5 bytes kept for replay, of e1
  kept until     2026-11-21T13:00:00Z (in 1h0m)
`},
		"expired":     {expired, "state          expired: the holder did not release it, and the next claim gets it\n  holder"},
		"last moment": {last, "state          held\n"},
		"coalescing":  {coalescing, "since          2026-11-21T11:59:00Z (1m0s ago)\n  until          2026-11-21T12:00:28Z (in 28s)\n  coalesced      3: they are served by a run of the holder, or of its event when that comes again\n"},
		"last run":    {closed, "coalesced      the holder is in its last run, and others are refused\n"},
		"free":        {free, "state          free\n  fence          9\n"},
		"cooling":     {cooling, "state          held\n  holder         nobody: its last holder's HoldAtLeast\n"},
		"cooled":      {cooled, "state          free\n  fence          9\n"},
		"newer":       {driver.Row{Newer: true}, "state          newer: a newer version of lambdalock wrote this row, so use that version to read it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := inspect.Describe("orders/a", &c.row, noon)
			if err := r.Text(&out, noon); err != nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("error %v, got\n%s\nwant\n%s", err, out.String(), c.want)
			}
		})
	}
	r := inspect.Describe("orders/a", &full, noon)
	for _, c := range []driver.Row{free, full, {Newer: true}} {
		r.Slots = append(r.Slots, inspect.Describe(fmt.Sprintf("orders/slot:%d:a", len(r.Slots)+2), &c, noon))
	}
	var out strings.Builder
	if err := r.Text(&out, noon); err != nil || !strings.Contains(out.String(), "slot 2         free\n  slot 3         held by \"f\\nrequest\" until 2026-11-21T12:00:28Z (in 28s)\n  slot 4         newer\n") {
		t.Errorf("error %v, got\n%s", err, out.String())
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	hold := func(token, holder, event string, fence int64, stamp, until time.Duration, memory ...driver.CompletedEvent) driver.Row {
		return driver.Row{Token: token, Holder: holder, Event: event, Fence: fence, Stamp: noon.Add(stamp), Until: noon.Add(until), Memory: driver.Memory{Completed: memory}}
	}
	free := func(fence int64, memory ...driver.CompletedEvent) driver.Row {
		return driver.Row{Fence: fence, Stamp: noon, Memory: driver.Memory{Completed: memory}}
	}
	none, newer := driver.Row{}, driver.Row{Newer: true}
	cooling := hold("cools", "", "", 5, -5*time.Second, time.Minute)
	cooling.Cooldown = "A"
	e1 := driver.CompletedEvent{Event: "e1", Until: noon.Add(time.Hour)}
	e2 := driver.CompletedEvent{Event: "e2", Until: noon.Add(2 * time.Hour)}
	again := driver.CompletedEvent{Event: "e1", Until: noon.Add(3 * time.Hour)}
	interrupted := driver.InterruptedEvent{Event: "e1", Holder: "fa", Since: noon.Add(-time.Minute), Until: noon.Add(-time.Second + time.Hour)}
	asks := hold("A", "fa", "e1", 5, -time.Minute, -time.Second)
	asks.InterruptedFor = time.Hour
	open := hold("B", "fb", "e2", 6, time.Second, time.Minute)
	open.Memory.Interrupted = []driver.InterruptedEvent{interrupted}
	unknown, once, twice := cooling, free(5), free(6)
	unknown.Memory.Interrupted = open.Memory.Interrupted
	once.Memory.Interrupted = open.Memory.Interrupted
	later := interrupted
	later.Since = noon.Add(-time.Second)
	twice.Memory.Interrupted = []driver.InterruptedEvent{later}
	a, dead := hold("A", "fa", "e1", 5, -5*time.Second, 20*time.Second), hold("A", "fa", "e1", 5, -time.Minute, -time.Second)
	for name, c := range map[string]struct {
		before, after driver.Row
		want          []string
	}{
		"nothing":                     {a, a, nil},
		"still free":                  {free(5, e1), free(5, e1), nil},
		"still dead":                  {dead, dead, nil},
		"renewal":                     {a, hold("A", "fa", "e1", 5, -5*time.Second, 30*time.Second), nil},
		"new row":                     {none, a, []string{"acquired fa e1"}},
		"acquired":                    {free(4), a, []string{"acquired fa e1"}},
		"released":                    {a, free(5), []string{"released fa e1"}},
		"released, and cooling":       {a, cooling, []string{"released fa e1"}},
		"cooled":                      {cooling, hold("B", "fb", "e2", 6, time.Minute, time.Hour), []string{"acquired fb e2"}},
		"completed":                   {a, free(5, e1), []string{"completed fa e1"}},
		"expired":                     {a, dead, []string{"expired fa e1"}},
		"expired immediately":         {none, dead, []string{"acquired fa e1", "expired fa e1"}},
		"renewed late":                {dead, a, []string{"renewed fa e1"}},
		"taken over":                  {dead, hold("B", "fb", "e2", 6, 0, time.Minute), []string{"taken_over fb<fa e2"}},
		"taken over between":          {hold("A", "fa", "e1", 5, -time.Minute, 0), hold("B", "fb", "e1", 6, time.Second, time.Minute), []string{"taken_over fb<fa e1"}},
		"completed late, then taken":  {dead, hold("B", "fb", "e2", 6, 0, time.Minute, e1), []string{"completed fa e1", "acquired fb e2"}},
		"handed to the next":          {a, hold("B", "fb", "e2", 6, 0, time.Minute), []string{"released fa e1", "acquired fb e2"}},
		"handed on, stamps ahead":     {hold("A", "fa", "e1", 5, time.Hour, 30*time.Second), hold("B", "fb", "e2", 6, time.Hour+time.Microsecond, 35*time.Second), []string{"released fa e1", "acquired fb e2"}},
		"taken over, stamp ahead":     {hold("A", "fa", "e1", 5, 0, time.Second), hold("B", "fb", "e2", 6, time.Hour, time.Minute), []string{"taken_over fb<fa e2"}},
		"completed, and the next":     {a, hold("B", "fb", "e2", 6, 0, time.Minute, e1), []string{"completed fa e1", "acquired fb e2"}},
		"two completed between":       {free(5, e1), free(7, e1, e2, again), []string{"completed  e2", "completed  e1"}},
		"one released between":        {free(5), free(6), []string{"released  "}},
		"forgotten by a tool":         {free(5, e1, e2), free(6, e1), []string{"released  "}},
		"interrupted":                 {a, asks, []string{"expired fa e1", "interrupted fa e1"}},
		"interrupted, then taken":     {asks, open, []string{"taken_over fb<fa e2"}},
		"interrupted between":         {hold("A", "fa", "e1", 5, -time.Minute, 0), open, []string{"taken_over fb<fa e2", "interrupted fa e1"}},
		"interrupted, and cooling":    {a, unknown, []string{"released fa e1", "interrupted fa e1"}},
		"interrupted again":           {once, twice, []string{"released  ", "interrupted fa e1"}},
		"the next one died, too":      {dead, hold("B", "fb", "e2", 6, -time.Millisecond, -time.Microsecond), []string{"taken_over fb<fa e2", "expired fb e2"}},
		"another one completed":       {a, free(6, e2), []string{"completed  e2"}},
		"decided":                     {open, hold("B", "fb", "e2", 6, 0, time.Minute), nil},
		"deleted":                     {free(5), none, []string{"deleted  "}},
		"row of a newer format":       {a, newer, []string{"newer  "}},
		"new row of a newer format":   {none, newer, []string{"newer  "}},
		"still of a newer format":     {newer, newer, nil},
		"of a known format again":     {newer, a, []string{"held fa e1"}},
		"claim given up, nobody held": {none, driver.Row{Stamp: noon}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var changes inspect.Changes
			look := func(row driver.Row, at time.Time) []inspect.Change {
				all := expect.Value(changes.Next(func(yield func(driver.NamedRow, error) bool) {
					if !row.Unknown() {
						yield(driver.NamedRow{Name: "orders/a", Row: row}, nil)
					}
				}, at))(t)
				return all
			}
			earlier := c.before
			if earlier.Token != "" {
				earlier.Until = earlier.Until.Add(-10 * time.Second)
			}
			look(earlier, noon.Add(-2*time.Minute))
			look(c.before, noon.Add(-time.Minute)) // so a holder renews, but has not done so by noon
			look(c.before, noon)
			var got []string
			second := noon.Add(2 * time.Second)
			for _, ch := range look(c.after, second) {
				holder := ch.Holder
				if ch.Previous != "" {
					holder += "<" + ch.Previous
				}
				got = append(got, ch.Change+" "+holder+" "+ch.Event)
				if fence := fenceOf(c.before, c.after, &ch); ch.Fence != fence {
					t.Errorf("%s has the fence %d, want %d", ch.Change, ch.Fence, fence)
				}
				if ch.Name != "orders/a" || ch.Digest != "ca978112ca1b" || !ch.Time.Equal(second) {
					t.Errorf("%+v", ch)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := look(c.after, second); len(again) != 0 {
				t.Errorf("reported again: %+v", again)
			}
		})
	}
}

// TestTakenOverBetweenLooks: a holder whose lease has ended between two looks
// may have renewed it since the first of them, and released it. One that does
// not renew may have released it in time.
func TestTakenOverBetweenLooks(t *testing.T) {
	t.Parallel()
	row := func(token string, fence int64, began, until int) driver.Row {
		return driver.Row{Token: token, Holder: "f" + token, Fence: fence, Stamp: noon.Add(time.Duration(began) * time.Second), Until: noon.Add(time.Duration(until) * time.Second)}
	}
	for name, c := range map[string]struct {
		interval int
		until    []int // of the holder's lease, at each look but the last
		next     int   // when the next one began
		want     string
	}{
		"seldom":               {60, []int{0 + 25, 60 + 25}, 100, "acquired"},
		"seldom, at first":     {60, []int{25}, 40, "acquired"},
		"seldom, and in time":  {60, []int{25}, 20, "released acquired"},
		"renewed, then missed": {10, []int{28, 38, 38, 38}, 39, "taken_over"},
		"it had ended":         {10, []int{28, 28, 28, 28}, 39, "taken_over"},
		"a fixed lease":        {10, []int{28, 28, 28}, 29, "acquired"},
		"a short fixed lease":  {5, []int{9, 9}, 10, "acquired"},
		"in whole seconds":     {10, []int{28, 29, 28}, 30, "acquired"},
		"missed, in seconds":   {10, []int{28, 38, 38, 39}, 40, "taken_over"},
		"renewed for less":     {30, []int{100, 100, 100, 90 + 28}, 119, "acquired"},
	} {
		t.Run(name, func(t *testing.T) {
			var changes inspect.Changes
			look := func(n int, row driver.Row) (words []string) {
				at := noon.Add(time.Duration(n*c.interval) * time.Second)
				for _, ch := range expect.Value(changes.Next(func(yield func(driver.NamedRow, error) bool) {
					yield(driver.NamedRow{Name: "a", Row: row}, nil)
				}, at))(t) {
					words = append(words, ch.Change)
				}
				return words
			}
			for n, until := range c.until {
				look(n, row("A", 5, -1, until))
			}
			if got := strings.Join(look(len(c.until), row("B", 6, c.next, 1000)), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// fenceOf returns the fence of those whom a change is about. It is not known
// who completed an event, or was interrupted, between two looks.
func fenceOf(before, after driver.Row, c *inspect.Change) int64 {
	switch {
	case c.Change == "deleted", c.Change == "newer", c.Change == "interrupted", c.Change == "completed" && c.Holder == "":
		return 0
	case (c.Change == "released" || c.Change == "completed") && c.Holder != "":
		return before.Fence
	}
	return after.Fence
}

// TestFirstLook: the first look at a row tells who has it, dead or alive, and
// of interrupted events, but not of what has ended.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	held := driver.Row{Token: "A", Holder: "fa", Event: "e1", Fence: 5, Stamp: noon.Add(-time.Minute), Until: noon.Add(time.Minute)}
	held.Memory.Completed = []driver.CompletedEvent{{Event: "e0", Until: noon.Add(time.Hour)}}
	dead, asks, cooling, free := held, held, held, driver.Row{Fence: 5, Stamp: noon, Memory: held.Memory}
	dead.Until = noon.Add(-time.Second)
	asks.Until, asks.InterruptedFor = dead.Until, time.Hour
	cooling.Cooldown = "t"
	for name, c := range map[string]struct {
		row  driver.Row
		want string
	}{
		"held":        {held, "held fa 5"},
		"dead":        {dead, "expired fa 5"},
		"interrupted": {asks, "expired fa 5, interrupted fa 0"},
		"cooling":     {cooling, ""},
		"free":        {free, ""},
		"newer":       {driver.Row{Newer: true}, "newer  0"},
	} {
		var got []string
		for _, ch := range expect.Value(new(inspect.Changes).Next(func(yield func(driver.NamedRow, error) bool) {
			yield(driver.NamedRow{Name: "orders/a", Row: c.row}, nil)
		}, noon))(t) {
			got = append(got, fmt.Sprint(ch.Change, " ", ch.Holder, " ", ch.Fence))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestChangesOfAnUnreadableRow: nothing is known of a row that cannot be read,
// so nothing has happened to it, and what it was before is not forgotten.
func TestChangesOfAnUnreadableRow(t *testing.T) {
	t.Parallel()
	held := driver.Row{Token: "A", Holder: "fa", Event: "e1", Fence: 5, Stamp: noon, Until: noon.Add(time.Minute)}
	free := driver.Row{Fence: 5, Stamp: noon}
	for name, c := range map[string]struct {
		looks []driver.NamedRow // without a name: unreadable
		want  []string
	}{
		"as before":      {[]driver.NamedRow{{Name: "a", Row: held}, {}, {}, {Name: "a", Row: held}}, []string{"held", "skipped", "", "", ""}},
		"released":       {[]driver.NamedRow{{Name: "a", Row: held}, {}, {Name: "a", Row: free}}, []string{"held", "skipped", "", "released"}},
		"never read":     {[]driver.NamedRow{{}, {Name: "a", Row: held}, {}}, []string{"skipped", "", "held", "skipped", ""}},
		"never, removed": {[]driver.NamedRow{{}, {Name: "b"}}, []string{"skipped", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			changes := inspect.Changes{Skipped: func(name string, err error) {
				if name != "a" || !errors.Is(err, errDenied) {
					t.Errorf("skipped %q: %v", name, err)
				}
				got = append(got, "skipped")
			}}
			for _, row := range c.looks {
				err := error(nil)
				if row.Name == "" {
					row.Name, err = "a", errDenied
				}
				all := expect.Value(changes.Next(func(yield func(driver.NamedRow, error) bool) { yield(row, err) }, noon))(t)
				words := make([]string, 0, len(all))
				for _, ch := range all {
					words = append(words, ch.Change)
				}
				got = append(got, strings.Join(words, " "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestChangesAfterAnError: a look that fails loses nothing.
func TestChangesAfterAnError(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	lk := acquire(t, locker(t, store, lock.Options{}), lock.Key{Name: "a"})
	var changes inspect.Changes
	first, err := changes.Next(store.Rows(t.Context(), ""), time.Now())
	if err != nil || len(first) != 1 || first[0].Change != "held" {
		t.Fatalf("%+v, error %v", first, err)
	}
	if _, err := changes.Next(failing{}.Rows(t.Context(), ""), time.Now()); !errors.Is(err, errDenied) {
		t.Fatal(err)
	}
	expect.Must(t, lk.Release())
	all, err := changes.Next(store.Rows(t.Context(), ""), time.Now())
	if err != nil || len(all) != 1 || all[0].Change != "released" || !strings.Contains(all[0].Text(), "released     /a  by f request 1") {
		t.Errorf("%+v, error %v", all, err)
	}
}

package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/doctor"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/hostile"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestHostileKeys shows that whatever names, events and holders contain, the
// commands print lines of their own, without a raw control character.
func TestHostileKeys(t *testing.T) { // F27, F30
	t.Parallel()
	const seed = 3
	keys := 200
	if os.Getenv("LAMBDALOCK_SEEDS") != "" {
		keys = 10_000
	}
	every, n := memstore.New(), 0
	for text := range hostile.Keys(seed, keys) {
		n++
		var out strings.Builder
		say := func(err error) {
			if err != nil {
				out.WriteString(err.Error() + "\n")
			}
		}
		ask := func(_ context.Context, question string) error {
			out.WriteString(question + "\n")
			return nil
		}
		store := memstore.New()
		rowtest.Complete(t, store, lock.Key{Name: text, Event: "done " + text}, []byte(text))
		rowtest.Acquire(t, store, "holder "+text, time.Hour, lock.Key{Name: text, Event: text})
		rowtest.Acquire(t, every, "holder "+text, time.Hour, lock.Key{Name: text, Event: text})
		var changes inspect.Changes
		for row, err := range store.Rows(t.Context(), "") {
			say(err)
			if found, err := inspect.Find(t.Context(), store, "", inspect.Safe(row.Name)); err != nil || found.Name != row.Name {
				t.Errorf("what is printed for %q finds %q: %v", row.Name, found.Name, err)
			}
			if e := row.Memory.Completed[0].Event; findCompleted(&row.Memory, inspect.Safe(e)) != 0 {
				t.Errorf("what is printed for the event %q does not find it", e)
			}
			for _, c := range []*Show{{}, {jsonFlag: jsonFlag{true}}} {
				say(c.print(t.Context(), &out, store, &row))
			}
		}
		watched, err := changes.Next(store.Rows(t.Context(), ""), time.Now())
		say(err)
		for _, c := range []*Watch{{}, {jsonFlag: jsonFlag{true}}} {
			say(c.print(&out, watched))
		}
		forget := &Forget{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: text, Event: "done " + text}
		say(forget.forget(t.Context(), store, &out, ask)) // is held
		say(release(t.Context(), store, "orders", text, &out, ask))
		say(release(t.Context(), store, "orders", text, &out, ask)) // nobody holds it
		say(release(t.Context(), store, text, text, &out, ask))     // there is no such row
		say(forget.forget(t.Context(), store, &out, ask))
		say(forget.forget(t.Context(), store, &out, ask)) // is not remembered
		object := map[string]any{"key": url.QueryEscape(text), "sequencer": text}
		event := expect.Value(json.Marshal(map[string]any{"Records": []any{map[string]any{
			"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": map[string]any{"bucket": map[string]any{"name": text}, "object": object},
		}}}))(t)
		if e, err := explain.Explain(t.Context(), event); err != nil {
			say(err)
		} else {
			say(e.Judge(t.Context(), store, "orders", time.Now()))
			out.WriteString(explained(text, e))
			say(inspect.WriteJSON(&out, e, "  "))
		}
		say((&redriven{out: &out}).list([]deadletter.Decision{{Message: text, Group: text, Name: text, Event: text, Action: deadletter.Leave, Why: text}}))
		undone := []deadletter.Decision{{Message: text, Action: deadletter.Leave, Why: text, Error: text, To: text}}
		for _, r := range []*redriven{{Run: &deadletter.Run{}, out: &out}, {Run: &deadletter.Run{}, out: &out, json: true}} {
			say(r.do(t.Context(), undone, ask))
		}
		for _, c := range []*Doctor{{}, {jsonFlag: jsonFlag{true}}} {
			say(c.print(&out, []doctor.Line{{Level: doctor.Error, Check: "mapping", For: "you", Text: text}}))
		}
		checkPrinted(t, n, text, out.String())
	}
	var out strings.Builder
	for _, c := range []*List{{All: true}, {jsonFlag: jsonFlag{true}}} {
		expect.Must(t, c.print(t.Context(), every, &out, io.Discard))
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2*keys+1 {
		t.Errorf("list prints %d lines for %d rows, twice, and a heading", lines, keys)
	}
	checkPrinted(t, n, "list", out.String())
	t.Logf("%d keys", n)
}

func checkPrinted(t *testing.T, n int, key, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if raw, found := hostile.Raw(line); found {
			t.Fatalf("key %d, %q: raw %q in %.500q", n, key, raw, line)
		}
		for _, forged := range []string{"time=2026-01-01", "lambdalock: lost"} {
			if strings.HasPrefix(line, forged) {
				t.Fatalf("key %d, %q wrote the line %.500q", n, key, line)
			}
		}
	}
}

// TestChangesStayInTheNamespace: a name that the namespace lacks is not looked
// for in the one that it begins with.
func TestChangesStayInTheNamespace(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	rowtest.Acquire(t, store, "f request 1", time.Hour, lock.Key{Name: "a"}) // in the namespace orders
	for name, change := range map[string]func() error{
		"release": func() error {
			return release(t.Context(), store, "other", "orders/a", io.Discard, answering(nil, nil))
		},
		"forget": func() error {
			return (&Forget{StoreFlags: console.StoreFlags{Namespace: "other"}, Key: "orders/a", Event: "e"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
		},
	} {
		if err := change(); status(err) != 1 || !strings.Contains(err.Error(), "orders/a is in another namespace than other, which has no such row that can be read: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := rowtest.Read(t, store, "orders/a"); row.Token == "" {
		t.Error("the lock of the other namespace was released")
	}
	if err := release(t.Context(), store, "orders", "orders/a", io.Discard, answering(nil, nil)); err != nil {
		t.Errorf("the whole name of a row of the namespace: %v", err)
	}
}

// TestChangesRefuseTwoLocks: without a namespace, a name with a slash may be
// that of a lock without one, or the whole name of another lock.
func TestChangesRefuseTwoLocks(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	rowtest.Complete(t, store, lock.Key{Name: "a", Event: "e"}, nil) // in the namespace orders
	rowtest.Acquire(t, store, "f request 1", time.Hour, lock.Key{Name: "orders/a"}, func(o *lock.Options) { o.Namespace = "" })
	for name, change := range map[string]func() error{
		"release": func() error {
			return release(t.Context(), store, "", "orders/a", io.Discard, answering(nil, nil))
		},
		"forget": func() error {
			return (&Forget{Key: "orders/a", Event: "e"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
		},
	} {
		if err := change(); status(err) != 1 || !strings.Contains(err.Error(), "orders/a and /orders/a both have a row") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := rowtest.Read(t, store, "orders/a"); len(row.Memory.Completed) != 1 {
		t.Error("the event of the first was forgotten")
	}
	expect.OK(t, release(t.Context(), store, "", "/orders/a", io.Discard, answering(nil, nil)))
	expect.OK(t, (&Forget{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: "e"}).forget(t.Context(), store, io.Discard, answering(nil, nil)))
}

// TestReleaseOfOneOfTwo: a limited lock is another one, too, if the row of its
// first slot is gone, and so is a lock whose name begins with a slash.
func TestReleaseOfOneOfTwo(t *testing.T) {
	t.Parallel()
	limited := "orders/slot:2:a"
	for name, c := range map[string]struct {
		rows []string
		key  string
		says string
	}{
		"a slot, and a row":      {[]string{limited, "/orders/a"}, "orders/a", "orders/a and /orders/a both have a row: for the first give its --namespace"},
		"a row, and a slot":      {[]string{"orders/a", "/slot:2:orders/a"}, "orders/a", "orders/a and /orders/a both have a row"},
		"a slash":                {[]string{"/orders/a", "//orders/a"}, "/orders/a", "/orders/a and //orders/a both have a row: for the first leave out its first slash, for the second give that whole name"},
		"a slash, as it says":    {[]string{"/orders/a", "//orders/a"}, "orders/a", "Released /orders/a."},
		"two, as it says":        {[]string{"/orders/a", "//orders/a"}, "//orders/a", "Released //orders/a."},
		"only a slot is another": {[]string{limited}, "orders/a", "release another one by its own name, for example orders/slot:2:a"},
	} {
		store := memstore.New()
		now := time.Now()
		for _, row := range c.rows {
			expect.Granted(store.Acquire(t.Context(), &driver.Claim{Name: row, Token: "t", Now: now, Stamp: now, Until: now.Add(time.Hour)}))(t)
		}
		var out strings.Builder
		err := release(t.Context(), store, "", c.key, &out, answering(nil, nil))
		if text := out.String() + fmt.Sprint(err); !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestChangesBesideAnUnreadableRow: where the other row that a name may mean
// may not be read, there is none, as S3 denies to read what does not exist,
// unless s3:ListBucket is allowed. A damaged one exists.
func TestChangesBesideAnUnreadableRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"denied":    {&driver.Error{Lasting: true, Action: "s3:ListBucket"}, 0, "Released orders/a."},
		"damaged":   {&driver.Error{Lasting: true, Err: errors.New("no readable stamp")}, 1, "orders/a and /orders/a both have a row"},
		"no answer": {&driver.Error{Err: io.ErrUnexpectedEOF}, 69, "unexpected EOF"},
	} {
		store := readsOnly{memstore.New(), "orders/a", c.err}
		rowtest.Acquire(t, store, "f request 1", time.Hour, lock.Key{Name: "a"})
		var out strings.Builder
		err := release(t.Context(), store, "", "orders/a", &out, answering(nil, nil))
		if got := status(trouble(err)); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
			t.Errorf("%s: status %d: %s%v", name, got, out.String(), err)
		}
	}
}

// readsOnly is a store that answers reads of all names but one with an error.
type readsOnly struct {
	*memstore.Store
	name string
	err  error
}

func (s readsOnly) Read(ctx context.Context, name string) (driver.Row, error) {
	if name != s.name {
		return driver.Row{}, s.err
	}
	return s.Store.Read(ctx, name)
}

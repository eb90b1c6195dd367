package lock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/hostile"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// say uses a key in every way that is logged or returns an error.
func say(t *testing.T, key lock.Key, holder string, logKeys bool) *hostile.Said {
	said := &hostile.Said{}
	var plan fault.Script
	var late fault.Kept
	store := memstore.New()
	l, err := lock.New(fault.NewStore(store, &plan, &late), &lock.Options{
		Logger: slog.New(said), LogKeys: logKeys, Lease: lock.FixedLease(time.Minute), Holder: func(context.Context) string { return holder },
	})
	if err != nil {
		t.Fatal(err)
	}
	other := key
	other.Payload += "other"
	plan.Plan(fault.Acquire, fault.Deny)
	said.Error(l.Do(t.Context(), key, nothing))
	said.Error(l.Do(t.Context(), key, func(ctx context.Context) error {
		said.Error(l.Do(ctx, key, nothing)) // inside itself
		for _, k := range []lock.Key{key, other, {Name: key.Name, Event: "another", Order: key.Order}} {
			said.Error(l.Do(t.Context(), k, nothing))
		}
		return nil
	}))
	said.Error(l.Do(t.Context(), key, nothing))
	said.Error(l.Do(t.Context(), other, nothing))
	said.Error(l.Do(t.Context(), lock.Key{Name: key.Name, Order: key.Name + "\xff"}, nothing))
	lk := expect.Value(l.Acquire(t.Context(), lock.Key{Name: key.Name}))(t)
	row := expect.Value(store.Read(t.Context(), rowName(t, store)))(t)
	expect.Granted(store.Settle(t.Context(), &driver.Settlement{Name: rowName(t, store), Token: row.Token}))(t)
	said.Error(lk.Complete()) // lost
	lk, err = l.Acquire(t.Context(), lock.Key{Name: key.Name})
	if err != nil {
		t.Fatal(err)
	}
	plan.Always(fault.Release, fault.Deny)
	said.Error(lk.Complete())
	said.Error(lk.Complete())
	return said
}

// sayMore does so with sets, limits, handles, transactions, rows of a newer
// version, waits, heartbeats and takeovers.
func sayMore(t *testing.T, key lock.Key, holder string, logKeys bool) *hostile.Said {
	said := &hostile.Said{}
	store := memstore.New()
	locker := func(s driver.Store, o lock.Options) *lock.Locker {
		o.Logger, o.LogKeys, o.Holder = slog.New(said), logKeys, func(context.Context) string { return holder }
		l := expect.Value(lock.New(s, &o))(t)
		return l
	}
	must := func(lk *lock.Lock, err error) *lock.Lock {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return lk
	}
	transact := func(ctx context.Context) {
		held, _ := driver.FromContext(ctx)
		said.Error(held.CompleteWith(t.Context(), nil, store.Settle))
	}
	l := locker(store, lock.Options{Lease: lock.FixedLease(10 * time.Second), MaxWait: 3 * time.Second})
	said.Error(oneOf{locker(store, lock.Options{}), 2}.Do(t.Context(), key, nothing))
	said.Error(locker(newerRow{store}, lock.Options{}).Do(t.Context(), key, nothing))
	set := expect.Value(l.AcquireAll(t.Context(), key, lock.Key{Name: key.Name + "2", Event: key.Event}))(t)
	transact(set.Context())
	said.Error(l.Do(t.Context(), key, nothing)) // waits in vain
	said.Error(set.Release())

	lk := must(l.Acquire(t.Context(), key))
	said.Error(lk.Release())
	said.Error(lk.Complete())
	lk = must(l.Acquire(t.Context(), lock.Key{Name: key.Name}))
	said.Error(lk.Complete())
	transact(lk.Context()) // of a lock that has ended

	lk = must(l.Acquire(t.Context(), key))
	time.Sleep(time.Minute)
	said.Error(context.Cause(lk.Context()))
	next := must(locker(store, lock.Options{Lease: lock.Heartbeat(6 * time.Second)}).Acquire(t.Context(), key)) // takes it over
	said.Error(lk.Complete())
	time.Sleep(time.Minute)
	said.Error(next.Complete())
	return said
}

// rowName returns the name of the only row.
func rowName(t *testing.T, store *memstore.Store) string {
	t.Helper()
	for row, err := range store.Rows(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		return row.Name
	}
	t.Fatal("no row")
	return ""
}

// hostileKeys returns how many keys a test tries: 10,000 in the long form,
// which LAMBDALOCK_SEEDS chooses.
func hostileKeys() int {
	if os.Getenv("LAMBDALOCK_SEEDS") != "" {
		return 10_000
	}
	return 500
}

// TestHostileKeys shows that whatever a key and a holder contain, each outcome
// is one line, without a raw control character, and that keys are shown only on
// request.
func TestHostileKeys(t *testing.T) { // F27, F29, F30
	t.Parallel()
	const seed = 1
	holder, stop := iter.Pull(hostile.Keys(seed+1, hostileKeys()))
	defer stop()
	records, n := 0, 0
	for text := range hostile.Keys(seed, hostileKeys()) {
		n++
		key := lock.Key{Name: text, Event: "event " + text, Payload: text}
		holder, _ := holder()
		for _, logKeys := range []bool{false, true} {
			about := fmt.Sprintf("seed %d, key %d, %q", seed, n, text)
			records += checkSaid(t, about, say(t, key, holder, logKeys), key, logKeys)
			synctest.Test(t, func(t *testing.T) {
				records += checkSaid(t, about, sayMore(t, key, holder, logKeys), key, logKeys)
			})
		}
	}
	t.Logf("%d keys, %d log records", n, records)
}

// checkSaid checks what was said about a key, and returns the number of log
// records.
func checkSaid(t *testing.T, about string, said *hostile.Said, key lock.Key, logKeys bool) int {
	t.Helper()
	for _, line := range said.Lines() {
		if raw, found := hostile.Raw(line); found {
			t.Fatalf("%s: raw %q in %.500q", about, raw, line)
		}
		if part, found := hostile.Shows(line, key.Name[:12]); found && !logKeys {
			t.Fatalf("%s: shows %q in %.500q", about, part, line)
		}
	}
	text, lines := said.Records()
	if len(text) != len(lines) {
		t.Fatalf("%s: %d lines of text for %d of JSON", about, len(text), len(lines))
	}
	for _, line := range lines {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil || !strings.HasPrefix(fmt.Sprint(record["msg"]), "lambdalock: ") {
			t.Fatalf("%s: not a record: %v %s", about, err, line)
		}
	}
	return len(lines)
}

package keyfuncs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/hostile"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestHashedKeysShowNothing shows that of a key that was hashed, no eight bytes
// are in a row, a log line or an error, even where keys are logged.
func TestHashedKeysShowNothing(t *testing.T) { // F29
	t.Parallel()
	const seed = 2
	most, n := 500, 0
	if os.Getenv("LAMBDALOCK_SEEDS") != "" {
		most = 10_000
	}
	for text := range hostile.Keys(seed, most) {
		n++
		plain := func(context.Context, string) (lock.Key, error) {
			return lock.Key{Name: text, Event: text, Payload: text}, nil
		}
		hashes := []keyfuncs.Func[string]{keyfuncs.Hash(plain), keyfuncs.HMAC(plain, []byte("a secret of 16 bytes"))}
		key := expect.Value(hashes[n%len(hashes)](t.Context(), text))(t)
		for _, line := range useAsKey(t, key) {
			for _, own := range []string{text[:12], text[len(text)-12:]} { // what is between may be in any text
				if part, found := hostile.Shows(line, own); found {
					t.Fatalf("seed %d, key %d, %q: %q is in %.700q", seed, n, text, part, line)
				}
			}
		}
	}
	t.Logf("%d keys", n)
}

// useAsKey locks a key in every way that is logged or returns an error, and
// returns all that was said and stored.
func useAsKey(t *testing.T, key lock.Key) []string {
	t.Helper()
	said, rows := &hostile.Said{}, memstore.New()
	var seen strings.Builder // all that is sent to the store and stored there
	hooks := fault.Hooks{Store: rows, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		row, ok, err := rows.Acquire(ctx, c)
		fmt.Fprintf(&seen, "%+v %+v\n", *c, row)
		return row, ok, err
	}, OnSettle: func(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
		row, ok, err := rows.Settle(ctx, t)
		fmt.Fprintf(&seen, "%+v %+v %+v\n", *t, t.Memory, row)
		return row, ok, err
	}}
	var plan fault.Script
	l := expect.Value(lock.New(fault.NewStore(hooks, &plan, &fault.Kept{}), &lock.Options{Logger: slog.New(said), LogKeys: true, Lease: lock.FixedLease(time.Minute)}))(t)
	other := key
	other.Payload += "other"
	nothing := func(context.Context) error { return nil }
	plan.Plan(fault.Acquire, fault.Deny)
	said.Error(l.Do(t.Context(), key, nothing))
	said.Error(l.Do(t.Context(), key, func(ctx context.Context) error {
		said.Error(l.Do(ctx, key, nothing)) // inside itself
		for _, k := range []lock.Key{key, other, {Name: key.Name, Event: "another"}} {
			said.Error(l.Do(t.Context(), k, nothing))
		}
		return nil
	}))
	said.Error(l.Do(t.Context(), key, nothing))
	said.Error(l.Do(t.Context(), other, nothing))
	return append(said.Lines(), seen.String())
}

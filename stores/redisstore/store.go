package redisstore

import (
	"context"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/server"
)

// Store implements [driver.Store] and [driver.Inspector] on one server, one
// group of a primary and its replicas, or one cluster. It is safe for
// concurrent use.
type Store struct{ server *server.Server }

// Callers look for these by their methods, and tests skip what is not there.
var (
	_ driver.Coalescer = (*Store)(nil)
	_ driver.Line      = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store that uses client: a *redis.Client, a
// *redis.ClusterClient, or what wraps one. It returns a [*driver.ConfigError]
// if the client cannot keep locks.
//
// A *redis.Client may have any settings, because New adds a hook that sends the
// Store's requests with its own: so call New before the client is used
// elsewhere, and after your own hooks are added. Any other client needs
// ContextTimeoutEnabled.
func New(client redis.Scripter) (*Store, error) {
	s, err := server.New(client)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// String returns what errors call the store.
func (s *Store) String() string { return s.server.String() }

// Acquire implements [driver.Store]. A claim that is repeated unchanged while
// its token owns the row changes nothing, not even the fence.
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return result(s.server.Acquire(ctx, c, 0, nil))
}

// Renew implements [driver.Store]. A renewal with the end that the lease has
// already changes nothing but DeleteAfter.
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return result(s.server.Renew(ctx, r, "", 0))
}

// Mark implements [driver.Coalescer].
func (s *Store) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return result(s.server.Mark(ctx, m))
}

// Settle implements [driver.Store]. With Abandon, it never makes another
// owner's row live shorter. If the client repeats requests by itself, what the
// row shows to have been applied before counts as applied, unless another claim
// came since.
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	raise := time.Time{}
	if t.Abandon {
		raise = t.Stamp
	}
	return result(s.server.Settle(ctx, t, raise, server.Always))
}

// Join implements [driver.Line].
func (s *Store) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	return result(s.server.Join(ctx, name))
}

func result(a server.Answer) (driver.Row, bool, error) { return a.Row, a.Applied != 0, a.Err }

// Check implements [driver.Checker]. It runs a script that only reads, and
// fails if the user lacks a command that another script needs.
func (s *Store) Check(ctx context.Context) error { return s.server.Check(ctx) }

// Read implements [driver.Inspector].
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	a := s.server.Read(ctx, name, time.Now())
	return a.Row, a.Err
}

// Rows implements [driver.Inspector]. It needs a client with the method Scan,
// and permission for the command SCAN.
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return server.Rows(s.server.Names(ctx, prefix), func(name string) (driver.Row, error) { return s.Read(ctx, name) })
}

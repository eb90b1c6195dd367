package redistest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// LaterVersion is a version that knows one field more, and writes it with each
// update.
type LaterVersion struct{ updates atomic.Int64 }

// Half returns the link of a client. Every other client is of the later
// version.
func (v *LaterVersion) Half(client uint64, l *Link) redis.Scripter {
	if client%2 == 0 {
		return l
	}
	return later{l, v}
}

// Check fails the test if no client of the later version has written.
func (v *LaterVersion) Check(t *testing.T) {
	t.Helper()
	if v.updates.Load() == 0 {
		t.Error("no client of the later version wrote anything")
	}
}

type later struct {
	*Link
	version *LaterVersion
}

// Eval implements [redis.Scripter].
func (l later) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	text := strings.ReplaceAll(script, "'HSET', key, ", "'HSET', key, 'addedLater', '1', ")
	cmd := l.Link.Eval(ctx, text, keys, args...)
	if text != script && cmd.Err() == nil {
		l.version.updates.Add(1)
	}
	return cmd
}

// EvalSha implements [redis.Scripter]. It never runs the script of the version
// before, which the server may know.
func (l later) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	return ErrorCmd(ctx, ServerError("NOSCRIPT No matching script."))
}

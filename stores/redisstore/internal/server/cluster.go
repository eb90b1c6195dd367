package server

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// routed sends each request once, to the primary that has the key. The cluster
// client itself would repeat it when there is no answer, and when there are
// some, so that it is unknown whether the request was applied; and after a
// failover it goes on asking the old primary until it looks for the new one.
type routed struct{ *redis.ClusterClient }

// followed is the error of a request that was redirected. The cluster client
// may have repeated it.
type followed struct{ error }

func (e followed) Unwrap() error { return e.error }

// redirected is the answer to such a request.
type redirected struct{ answer any }

// EvalSha implements [redis.Scripter].
func (c routed) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, keys[0], func(s redis.Scripter) *redis.Cmd { return s.EvalSha(ctx, sha, keys, args...) })
}

// Eval implements [redis.Scripter].
func (c routed) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, keys[0], func(s redis.Scripter) *redis.Cmd { return s.Eval(ctx, script, keys, args...) })
}

func (c routed) send(ctx context.Context, key string, request func(redis.Scripter) *redis.Cmd) *redis.Cmd {
	primary, err := c.MasterForKey(ctx, key)
	if err != nil {
		c.ReloadState(ctx)
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	once := primary
	if once.Options().MaxRetries > 0 {
		once = own(primary)
	}
	cmd := request(once)
	var answer redis.Error
	if err := cmd.Err(); errors.Is(err, context.DeadlineExceeded) && exhausted(primary) {
		cmd.SetErr(exhaustedPool{err})
		return cmd
	} else if err != nil && !errors.As(err, &answer) {
		c.ReloadState(ctx) // another server may be the primary now
		return cmd
	}
	if answer == nil {
		return cmd
	}
	switch codeOf(answer.Error()) {
	case "READONLY", "CLUSTERDOWN":
		c.ReloadState(ctx)
	case "MOVED", "ASK":
		if cmd = request(c.ClusterClient); cmd.Err() != nil {
			cmd.SetErr(followed{cmd.Err()})
		} else {
			cmd.SetVal(redirected{cmd.Val()})
		}
	}
	return cmd
}

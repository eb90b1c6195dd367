package server

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// New returns the server of a client. It returns a [*driver.ConfigError] if the
// client cannot keep locks.
func New(client redis.Scripter) (*Server, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &driver.ConfigError{Reason: "the Redis client is nil: pass redis.NewClient or redis.NewClusterClient"}
	}
	s := &Server{client: client, name: "Redis", repeats: true}
	switch c := client.(type) {
	case *redis.Ring:
		return nil, &driver.ConfigError{Reason: "a *redis.Ring moves names to another server when one does not answer, so that two can hold the same lock: use a *redis.ClusterClient, or redisquorum.New with a *redis.Client for each server"}
	case *redis.Client:
		c.AddHook(once{own(c)})
		s.pool, s.name, s.repeats = c, "Redis "+c.Options().Addr, false
	case interface{ Options() *redis.Options }:
		o := c.Options()
		s.name, s.repeats = "Redis "+o.Addr, o.MaxRetries > 0
		return s.unless(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		s.name, s.cluster = "Redis Cluster "+strings.Join(o.Addrs, ","), true
		if c, ok := client.(*redis.ClusterClient); ok {
			s.client, s.repeats = routed{c}, false
		}
		return s.unless(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	}
	return s, nil
}

// once is the hook of a client by which its requests for a Server are sent with
// the settings of another client, which has the same connections.
type once struct{ own *redis.Client }

// onceKey marks the context of a Server's request.
type onceKey struct{}

func withOnce(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// ProcessHook implements [redis.Hook].
func (o once) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(onceKey{}) != nil {
			return o.own.Process(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

// DialHook implements [redis.Hook].
func (once) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (once) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// own returns a client with the connections of c, settings of its own and no
// hooks.
func own(c *redis.Client) *redis.Client {
	settings := c.Options()
	read, write := max(settings.ReadTimeout, 0), max(settings.WriteTimeout, 0) // a negative one ignores contexts
	c = c.WithTimeout(read)
	settings = c.Options() // a copy
	settings.WriteTimeout, settings.ContextTimeoutEnabled, settings.MaxRetries = write, true, 0
	return c
}

// unless returns s unless its client may wait for an answer although the
// request's context has ended.
func (s *Server) unless(obeys bool, read, write time.Duration) (*Server, error) {
	switch {
	case !obeys:
		return nil, &driver.ConfigError{Reason: "the client of " + s.name + " ignores the deadlines of its requests: set ContextTimeoutEnabled in its options"}
	case read < 0 || write < 0:
		return nil, &driver.ConfigError{Reason: "the client of " + s.name + " waits for ever for an answer: set ReadTimeout and WriteTimeout in its options to -1 or more"}
	}
	return s, nil
}

// warnOfEviction warns of a server that deletes locks when its memory is full.
func warnOfEviction(server string, settings []string) {
	maxMemory, policy := settings[0], settings[1]
	if maxMemory == "" || maxMemory == "0" || policy == "" || policy == "noeviction" {
		return
	}
	defaultlog.Logger().Warn("lambdalock: the server may delete locks that are held when its memory is full: set maxmemory-policy to noeviction",
		"server", server, "maxmemory-policy", policy, "maxmemory", maxMemory)
}

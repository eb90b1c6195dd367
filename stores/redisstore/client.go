package redisstore

import (
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// New returns a Store that uses client: a *redis.Client, a
// *redis.ClusterClient, or what wraps one. It returns a [*driver.ConfigError]
// if the client cannot keep locks.
//
// A *redis.Client may have any settings, because the Store uses its connections
// with settings of its own: requests obey their context, and are not repeated.
// Add hooks before you call New; those of a cluster client must be added to its
// nodes. Any other client needs ContextTimeoutEnabled.
func New(client redis.Scripter) (*Store, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &driver.ConfigError{Reason: "the Redis client is nil: pass redis.NewClient or redis.NewClusterClient to redisstore"}
	}
	s := &Store{client: client, server: "Redis", repeats: true}
	switch c := client.(type) {
	case *redis.Ring:
		return nil, &driver.ConfigError{Reason: "a *redis.Ring moves names to another server when one does not answer, so that two can hold the same lock: use a *redis.ClusterClient, or redisstore.NewQuorum with a *redis.Client for each server"}
	case *redis.Client:
		s.client, s.pool, s.server, s.repeats = own(c), c, "Redis "+c.Options().Addr, false
		s.idle = make(chan struct{}, c.Options().PoolSize)
	case interface{ Options() *redis.Options }:
		o := c.Options()
		s.server, s.repeats = "Redis "+o.Addr, o.MaxRetries > 0
		return s.unless(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		s.server, s.cluster = "Redis Cluster "+strings.Join(o.Addrs, ","), true
		if c, ok := client.(*redis.ClusterClient); ok {
			s.client, s.repeats = routed{c}, false
		}
		return s.unless(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	}
	return s, nil
}

// own returns a client with the connections of c and settings of its own.
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
func (s *Store) unless(obeys bool, read, write time.Duration) (*Store, error) {
	switch {
	case !obeys:
		return nil, &driver.ConfigError{Reason: "the client of " + s.server + " ignores the deadlines of its requests: set ContextTimeoutEnabled in its options"}
	case read < 0 || write < 0:
		return nil, &driver.ConfigError{Reason: "the client of " + s.server + " waits for ever for an answer: set ReadTimeout and WriteTimeout in its options to -1 or more"}
	}
	return s, nil
}

// warnOfEviction warns of a server that deletes locks when its memory is full.
func warnOfEviction(server string, settings []string) {
	maxMemory, policy := settings[0], settings[1]
	if maxMemory == "" || maxMemory == "0" || policy == "" || policy == "noeviction" {
		return
	}
	slog.Warn("lambdalock: the server may delete locks that are held when its memory is full: set maxmemory-policy to noeviction",
		"server", server, "maxmemory-policy", policy, "maxmemory", maxMemory)
}

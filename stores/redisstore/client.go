package redisstore

import (
	"log/slog"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// inspect returns what errors call the server, whether the client repeats
// requests by itself, and why the client cannot be used. Of a type that it does
// not know, it assumes that it repeats requests and obeys its contexts.
func inspect(client redis.Scripter) (server string, repeats bool, wrong error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "Redis", false, &driver.ConfigError{Reason: "the Redis client is nil: pass redis.NewClient or redis.NewClusterClient to redisstore"}
	}
	obeys := true
	server, repeats = "Redis", true
	switch c := client.(type) {
	case *redis.Ring:
		return server, repeats, &driver.ConfigError{Reason: "a *redis.Ring moves names to another server when one does not answer, so that two can hold the same lock: use a *redis.ClusterClient, or redisstore.NewQuorum with a *redis.Client for each server"}
	case interface{ Options() *redis.Options }:
		o := c.Options()
		server, repeats, obeys = "Redis "+o.Addr, o.MaxRetries > 0, o.ContextTimeoutEnabled
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		server, obeys = "Redis Cluster "+strings.Join(o.Addrs, ","), o.ContextTimeoutEnabled
	}
	if !obeys {
		wrong = &driver.ConfigError{Reason: "the client of " + server + " ignores the deadlines of its requests: set ContextTimeoutEnabled in its options"}
	}
	return server, repeats, wrong
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

package server

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Rows reads the row of each name once, and skips those that have expired
// meanwhile.
func Rows(names iter.Seq2[string, error], read func(name string) (driver.Row, error)) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		seen := map[string]bool{} // SCAN may return a key several times
		for name, err := range names {
			var row driver.Row
			if err == nil && seen[name] {
				continue
			}
			seen[name] = true
			if err == nil {
				row, err = read(name)
			}
			if err != nil && !ofOneKey(err) {
				yield(driver.NamedRow{}, err)
				return
			}
			if (err != nil || !row.Unknown()) && !yield(driver.NamedRow{Name: name, Row: row}, err) {
				return
			}
		}
	}
}

// ofOneKey reports whether an error tells what is wrong with the key that was
// read. Nothing is wrong with the server, which listed that key, unless it has
// another password since.
func ofOneKey(err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) || !e.Lasting || e.Action != "" {
		return false
	}
	var answered redis.Error
	if !errors.As(err, &answered) {
		return true
	}
	switch codeOf(answered.Error()) {
	case "NOAUTH", "WRONGPASS", "DENIED":
		return false
	}
	return true
}

// scanner is the part of a client that lists keys.
type scanner interface {
	Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd
}

// Names yields the names that begin with prefix. It stops after the first
// error. One node of a cluster does not know all names, so it is refused.
func (s *Server) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	ctx = withOnce(ctx)
	return func(yield func(string, error) bool) {
		scanners, err := s.scanners(ctx)
		if err != nil {
			yield("", err)
			return
		}
		pattern := globEscape(keyPrefix+prefix) + "*"
		for _, sc := range scanners {
			for cursor, first := uint64(0), true; first || cursor != 0; first = false {
				var keys []string
				if keys, cursor, err = sc.Scan(ctx, cursor, pattern, 100).Result(); err != nil {
					yield("", s.classify(err))
					return
				}
				for _, key := range keys {
					if !yield(strings.TrimPrefix(key, keyPrefix), nil) {
						return
					}
				}
			}
		}
	}
}

// scanners returns a client for every server that has names of its own.
func (s *Server) scanners(ctx context.Context) ([]scanner, error) {
	cluster, ok := s.client.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if ok {
		var mu sync.Mutex
		var scanners []scanner
		err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			scanners = append(scanners, c)
			return nil
		})
		if err != nil {
			return nil, s.classify(err)
		}
		return scanners, nil
	}
	if c, ok := s.client.(scanner); ok {
		return []scanner{c}, s.hasAll(ctx)
	}
	return nil, &driver.ConfigError{Reason: "the client of " + s.name + " has no method Scan, so the rows cannot be listed"}
}

// spread is how many names hasAll asks for. A node with half of the slots has
// all of them once in a million times.
const spread = 20

// hasAll returns an error if the server is one node of a cluster, which has
// only the rows of its slots. It needs no permission that a lock does not need.
func (s *Server) hasAll(ctx context.Context) error {
	if s.pool != nil { // most servers may say that they belong to no cluster
		if info, err := s.pool.Info(ctx, "cluster").Result(); err == nil && strings.Contains(info, "cluster_enabled:0") {
			return nil
		}
	}
	for i := range spread {
		var answered redis.Error
		err := s.run(ctx, readScript, strconv.Itoa(i), view{}, "").Err
		switch {
		case err == nil:
		case !errors.As(err, &answered): // the list says why
			return nil
		case codeOf(answered.Error()) == "CLUSTERDOWN": // the list does not: it has what is here
			return err
		case codeOf(answered.Error()) == "MOVED":
			return &driver.ConfigError{Reason: s.name + " is one node of a cluster, so it has only some of the locks: use redis.NewClusterClient. A URL cannot name a cluster: read single locks by their names, through the node that has them", Err: answered}
		}
	}
	return nil
}

// globEscape escapes what has a meaning in a pattern.
var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace

package redisstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Read implements [driver.Inspector].
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	a := s.read(ctx, name, time.Now())
	return a.row, a.err
}

func (s *Store) read(ctx context.Context, name string, now time.Time) answer {
	return s.run(ctx, readScript, name, view{now: now}, "")
}

// Rows implements [driver.Inspector]. It needs a client with the method Scan,
// and permission for the command SCAN.
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return rows(s.names(ctx, prefix), func(name string) (driver.Row, error) { return s.Read(ctx, name) })
}

// rows reads the row of each name once, and skips those that have expired
// meanwhile.
func rows(names iter.Seq2[string, error], read func(name string) (driver.Row, error)) iter.Seq2[driver.NamedRow, error] {
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
// read. Nothing is wrong with the server, which listed that key.
func ofOneKey(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && !e.Temporary && e.Action == ""
}

// scanner is the part of a client that lists keys.
type scanner interface {
	Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd
}

// names yields the names that begin with prefix. It stops after the first
// error.
func (s *Store) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
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
func (s *Store) scanners(ctx context.Context) ([]scanner, error) {
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
		return []scanner{c}, nil
	}
	return nil, &driver.ConfigError{Reason: "the client of " + s.server + " has no method Scan, so the rows cannot be listed"}
}

// globEscape escapes what has a meaning in a pattern.
var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace

// Check implements [driver.Checker]. It succeeds if a majority can be reached.
func (q *Quorum) Check(ctx context.Context) error {
	if err := q.ready(ctx); err != nil {
		return err
	}
	return q.tooFew(q.ask(ctx, all, func(ctx context.Context, i int) answer { return answer{err: q.nodes[i].Check(ctx)} }))
}

// Read implements [driver.Inspector]. A row that no majority holds is free.
func (q *Quorum) Read(ctx context.Context, name string) (driver.Row, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, err
	}
	now := time.Now()
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].read(ctx, name, now) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, err
	}
	return q.merge(got, view{now: now}), nil
}

// Rows implements [driver.Inspector]. It lists the names of all nodes that
// answer, if those are a majority.
func (q *Quorum) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return rows(q.names(ctx, prefix), func(name string) (driver.Row, error) { return q.Read(ctx, name) })
}

func (q *Quorum) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := q.ready(ctx); err != nil {
			yield("", err)
			return
		}
		got := make(answers, len(q.nodes))
		for i, node := range q.nodes {
			for name, err := range node.names(ctx, prefix) {
				if got[i].err = err; err == nil && !yield(name, nil) {
					return
				}
			}
		}
		if err := q.tooFew(got); err != nil {
			yield("", err)
		}
	}
}

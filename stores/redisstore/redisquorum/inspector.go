package redisquorum

import (
	"context"
	"iter"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/server"
)

// Check implements [driver.Checker]. It succeeds if a majority can be reached.
func (q *Store) Check(ctx context.Context) error {
	if err := q.ready(ctx); err != nil {
		return err
	}
	return q.tooFew(q.ask(ctx, all, func(ctx context.Context, i int) answer { return answer{Err: q.nodes[i].Check(ctx)} }))
}

// Read implements [driver.Inspector]. A row that no majority holds is free.
func (q *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, err
	}
	now := time.Now()
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].Read(ctx, name, now) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, err
	}
	return q.merge(got, "", now), nil
}

// Rows implements [driver.Inspector]. It lists the names of all nodes that
// answer, if those are a majority.
func (q *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return server.Rows(q.names(ctx, prefix), func(name string) (driver.Row, error) { return q.Read(ctx, name) })
}

func (q *Store) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := q.ready(ctx); err != nil {
			yield("", err)
			return
		}
		// A list takes any time, so only those that answer are asked for it.
		got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return answer{Err: q.nodes[i].CheckRead(ctx)} })
		for i, node := range q.nodes {
			if failed(&got[i]) {
				continue
			}
			for name, err := range node.Names(ctx, prefix) {
				if got[i].Err = err; err == nil && !yield(name, nil) {
					return
				}
			}
		}
		if err := q.tooFew(got); err != nil {
			yield("", err)
		}
	}
}

package invoke

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// streamAttempts is how often a batch is delivered here unless --attempts says
// otherwise. Lambda's default is to repeat it until its records expire.
const streamAttempts = 5

// shard is a shard of a stream with its event source mapping.
type shard struct {
	*deliverer
	size    int // records of a batch, at most
	copies  int // how often each batch is delivered, as after a lost checkpoint
	records []*record
}

func (s *shard) run(ctx context.Context, queued func()) {
	for batch := range s.batches() {
		for range s.copies {
			if !s.process(ctx, batch, queued) {
				return
			}
			batch = slices.DeleteFunc(slices.Clone(batch), func(r *record) bool { return r.givenUp })
		}
	}
}

// batches cuts the records into batches that Lambda can deliver.
func (s *shard) batches() func(func([]*record) bool) {
	return func(yield func([]*record) bool) {
		for left := s.records; len(left) > 0; {
			n, bytes := 1, left[0].size
			for n < min(s.size, len(left)) && bytes+left[n].size < maxEvent-n-len(`{"Records":[]}`) {
				bytes += left[n].size
				n++
			}
			if !yield(left[:n]) {
				return
			}
			left = left[n:]
		}
	}
}

// process delivers a batch until all of it is completed or given up. It reports
// false if the run ends first.
func (s *shard) process(ctx context.Context, records []*record, queued func()) bool {
	b := eventsource.NewBatch(records, s.attempts(streamAttempts))
	if s.Bisect {
		b.BisectAfter = 1
	}
	return s.repeat(ctx, b, "to the on-failure destination", queued)
}

// shards returns the shards of these records, each in the order of its sequence
// numbers.
func shards(records []*record) [][]*record {
	var names []string
	of := map[string][]*record{}
	for _, r := range records {
		if of[r.group] == nil {
			names = append(names, r.group)
		}
		of[r.group] = append(of[r.group], r)
	}
	all := make([][]*record, len(names))
	for i, name := range names {
		slices.SortStableFunc(of[name], func(a, b *record) int { return compareNumbers(a.id, b.id) })
		all[i] = of[name]
	}
	return all
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

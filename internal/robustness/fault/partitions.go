package fault

import (
	"hash/fnv"
	"time"
)

// Partitions are those of a table of DynamoDB, over which the hashes of names
// are spread evenly. Each takes 1,000 writes per second, whatever the table's
// throughput, so a name takes no more either, see
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html.
// A warm throughput is a number of partitions.
//
// A partition splits in two when it throttles, and did so a while ago already:
// that is how adaptive capacity moves the items of a busy partition apart, and
// how a table doubles its previous peak, see
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
// and https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html.
type Partitions struct {
	Rate   float64       // writes per second of each, with a burst of one second
	First  int           // how many there are at first
	Splits time.Duration // how long one throttles before it splits; zero: it never does

	all []partition
}

// partition holds a range of hashes.
type partition struct {
	bucket
	throttles time.Time // since when; zero: it has not throttled
	halves    *[2]partition
}

// take reports whether a write of a name is within the rate of its partition.
func (p *Partitions) take(name string, now time.Time) bool {
	if p == nil {
		return true
	}
	if p.all == nil {
		p.all = make([]partition, p.First)
	}
	of := p.holding(name)
	of.fill(p.Rate, now)
	if of.tokens >= 1 {
		of.tokens--
		return true
	}
	switch {
	case of.throttles.IsZero():
		of.throttles = now
	case p.Splits > 0 && now.Sub(of.throttles) >= p.Splits:
		of.halves = &[2]partition{}
	}
	return false
}

func (p *Partitions) holding(name string) *partition {
	h := fnv.New64a()
	h.Write([]byte(name))
	hash, n := h.Sum64(), uint64(p.First)
	of := &p.all[hash%n]
	for hash /= n; of.halves != nil; hash >>= 1 {
		of = &of.halves[hash&1]
	}
	return of
}

package integration_test

import (
	"fmt"
	"sync"
)

// prices of a million units in us-east-1, in dollars:
// https://aws.amazon.com/dynamodb/pricing/on-demand/,
// https://aws.amazon.com/s3/pricing/.
var prices = []struct {
	kind    string
	dollars float64
}{{"write", 0.625}, {"transaction", 0.625}, {"read", 0.125}, {"PUT", 5}, {"LIST", 5}, {"GET", 0.4}}

// bill estimates what requests cost.
type bill struct {
	mu              sync.Mutex
	requests, units map[string]int
}

// add counts a request. It takes the larger of the request and its answer for
// the size of the items, so that the estimate is rather too high.
func (b *bill) add(kind string, items, size int) {
	units := items
	switch kind {
	case "write":
		units += size >> 10
	case "transaction":
		units = 2 * (items + size>>10)
	case "read":
		units += size >> 12
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests == nil {
		b.requests, b.units = map[string]int{}, map[string]int{}
	}
	b.requests[kind]++
	b.units[kind] += units
}

// print adds the bill to the summary.
func (b *bill) print() {
	f := newFigures("Requests to the account, with an estimate of their price in us-east-1", "request", "number", "units", "dollars")
	sum := 0.0
	for _, p := range prices {
		dollars := float64(b.units[p.kind]) * p.dollars / 1e6
		sum += dollars
		f.add(p.kind, fmt.Sprint(b.requests[p.kind]), fmt.Sprint(b.units[p.kind]), fmt.Sprintf("%.3f", dollars))
	}
	f.add("all", "", "", fmt.Sprintf("%.3f", sum))
}

// Package traffic counts what a store sends, for tests that compare all of it.
package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Meter counts requests. The zero value is ready for use.
type Meter struct {
	mu          sync.Mutex
	entries     map[string][]int // of each request, by its kind
	now, most   int              // under way
	connections int
}

// Begin counts a request with so many entries, which is under way until end is
// called.
func (m *Meter) Begin(kind string, entries int) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[string][]int{}
	}
	m.entries[kind] = append(m.entries[kind], entries)
	m.now++
	m.most = max(m.most, m.now)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}
}

// Connect counts a connection.
func (m *Meter) Connect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections++
}

// Take returns what was counted, and forgets it: for each kind the requests by
// their entries, the largest first, then how many requests were under way at
// once, and the connections that were opened. "Put 2×1, Batch 3×25 1×7, 4 at
// once" is two requests with one entry, three with 25 and one with 7.
func (m *Meter) Take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m.entries)) {
		all := m.entries[kind]
		slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
		part := kind
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n] == all[0] {
				n++
			}
			part += fmt.Sprintf(" %d×%d", n, all[0])
			all = all[n:]
		}
		parts = append(parts, part)
	}
	parts = append(parts, fmt.Sprintf("%d at once", m.most))
	if m.connections > 0 {
		parts = append(parts, fmt.Sprintf("%d connected", m.connections))
	}
	m.entries, m.most, m.connections = nil, m.now, 0
	return strings.Join(parts, ", ")
}

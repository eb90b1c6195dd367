package redisquorum

import "time"

// SetTimeout sets how long a node may take for one request.
func (q *Store) SetTimeout(d time.Duration) { q.timeout = d }

// Idle has one for each connection of a node that is open and not in use.
func (q *Store) Idle(node int) chan struct{} { return q.nodes[node].idle }

package redisquorum

import "time"

// SetTimeout sets how long a node may take for one request.
func (q *Store) SetTimeout(d time.Duration) { q.timeout = d }

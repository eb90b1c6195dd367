package redisstore

import "time"

// SetTimeout sets how long a node may take for one request.
func (q *Quorum) SetTimeout(d time.Duration) { q.timeout = d }

// Scripts returns the texts of all scripts.
func Scripts() []string {
	return []string{rowScript + acquireText, rowScript + renewText, rowScript + settleText, rowScript + readText}
}

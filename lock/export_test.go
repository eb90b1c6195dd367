package lock

import "time"

// SetClock gives a Locker a wall clock of its own.
func (l *Locker) SetClock(now func() time.Time) { l.clock = now }

package locktest

import "github.com/lambdalock/lambdalock/internal/sim/history"

// Hold is one stretch of time in which somebody believed to own a name: from the
// return of Acquire to the call of Release.
type Hold = history.Hold

// CheckHistory reports every two holds of one name that overlap, and every hold
// whose fence is not above that of the hold before it. The times of all holds
// must come from one clock.
func CheckHistory(holds []Hold) error { return history.Check(holds) }

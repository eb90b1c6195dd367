package locktest

import "github.com/lambdalock/lambdalock/internal/sim/history"

// Hold is a period in which a holder believed that it owned a name: from the
// return of Acquire to the call of Release.
type Hold = history.Hold

// CheckHistory returns an error that lists every two holds of one name that
// overlap, and every hold whose fence is not above that of the hold before it.
// All times must come from one clock.
func CheckHistory(holds []Hold) error { return history.Check(holds) }

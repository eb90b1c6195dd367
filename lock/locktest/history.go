package locktest

import (
	"time"

	"github.com/lambdalock/lambdalock/internal/history"
)

// Hold is a period in which a holder believed that it owned a name: from the
// return of Acquire to the call of Release.
type Hold struct {
	Name       string
	Holder     string // as the errors of CheckHistory name it
	Fence      int64
	Start, End time.Time
}

// CheckHistory returns an error that lists every two holds of one name that
// overlap, every hold whose fence is not above that of the hold before it, and
// every hold that ends before it starts, as one does that has no End. All times
// must come from one clock.
func CheckHistory(holds []Hold) error {
	all := make([]history.Hold, len(holds))
	for i, h := range holds {
		all[i] = history.Hold(h)
	}
	return history.Check(all)
}

package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Hold is one stretch of time in which somebody believed to own a name: from the
// return of Acquire to the call of Release.
type Hold struct {
	Name       string
	Who        string
	Fence      int64
	Start, End time.Time
}

// CheckHistory reports every two holds of one name that overlap, and every hold
// whose fence is not above that of the hold before it. The times of all holds
// must come from one clock.
func CheckHistory(holds []Hold) error {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Start.Compare(b.Start))
	})
	var errs []error
	for i, h := range sorted {
		if i == 0 || sorted[i-1].Name != h.Name {
			continue
		}
		before := sorted[i-1]
		if h.Start.Before(before.End) {
			errs = append(errs, fmt.Errorf("%q: %s held until %s, %s from %s: overlap of %v",
				h.Name, before.Who, clock(before.End), h.Who, clock(h.Start), before.End.Sub(h.Start)))
		}
		if h.Fence <= before.Fence {
			errs = append(errs, fmt.Errorf("%q: %s had fence %d, then %s had %d", h.Name, before.Who, before.Fence, h.Who, h.Fence))
		}
	}
	return errors.Join(errs...)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

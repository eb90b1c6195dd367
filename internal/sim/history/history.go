// Package history checks records of who held what when.
package history

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
	Holder     string
	Fence      int64
	Start, End time.Time
}

// Check reports every two holds of one name that overlap, and every hold whose
// fence is not above that of the hold before it. The times of all holds must come
// from one clock.
func Check(holds []Hold) error {
	return errors.Join(append(Overlaps(holds), fences(holds)...)...)
}

// Overlaps is the first half of Check, one error for each overlap.
func Overlaps(holds []Hold) []error {
	return neighbours(holds, func(before, h Hold) error {
		if !h.Start.Before(before.End) {
			return nil
		}
		return fmt.Errorf("%q: %s held until %s, %s from %s: overlap of %v",
			h.Name, before.Holder, clock(before.End), h.Holder, clock(h.Start), before.End.Sub(h.Start))
	})
}

func fences(holds []Hold) []error {
	return neighbours(holds, func(before, h Hold) error {
		if h.Fence > before.Fence {
			return nil
		}
		return fmt.Errorf("%q: %s had fence %d, then %s had %d", h.Name, before.Holder, before.Fence, h.Holder, h.Fence)
	})
}

// neighbours collects what check says of each hold and the one of its name before it.
func neighbours(holds []Hold, check func(before, h Hold) error) []error {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Start.Compare(b.Start))
	})
	var errs []error
	for i, h := range sorted {
		if i == 0 || sorted[i-1].Name != h.Name {
			continue
		}
		if err := check(sorted[i-1], h); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

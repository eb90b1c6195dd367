// Package history checks records of which holder held which lock when.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Hold is one stretch of time in which a holder believed that it held a lock:
// from the return of Acquire to the call of Release.
type Hold struct {
	Name       string
	Holder     string
	Fence      int64
	Start, End time.Time
}

// Check returns an error for every two holds of one name that overlap, for
// every hold whose fence is not above that of the hold before it, and for every
// hold that ends before it starts: nothing would overlap with one whose End was
// forgotten. The times of all holds must come from one clock.
func Check(holds []Hold) error {
	return errors.Join(slices.Concat(endless(holds), Overlaps(holds), fences(holds))...)
}

func endless(holds []Hold) []error {
	var errs []error
	for _, h := range holds {
		if h.End.Before(h.Start) {
			errs = append(errs, fmt.Errorf("%q: the hold of %s from %s ends before it starts: set its End, to the present time if it goes on", h.Name, h.Holder, clock(h.Start)))
		}
	}
	return errs
}

// Overlaps returns one error for each two holds of one name that overlap.
func Overlaps(holds []Hold) []error {
	var errs []error
	for before, h := range successive(holds) {
		if h.Start.Before(before.End) {
			errs = append(errs, fmt.Errorf("%q: %s held until %s, %s from %s: overlap of %v",
				h.Name, before.Holder, clock(before.End), h.Holder, clock(h.Start), before.End.Sub(h.Start)))
		}
	}
	return errs
}

func fences(holds []Hold) []error {
	var errs []error
	for before, h := range successive(holds) {
		if h.Fence <= before.Fence {
			errs = append(errs, fmt.Errorf("%q: %s had fence %d, then %s had %d", h.Name, before.Holder, before.Fence, h.Holder, h.Fence))
		}
	}
	return errs
}

// successive yields each hold after the one before it of the same name.
func successive(holds []Hold) iter.Seq2[Hold, Hold] {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Start.Compare(b.Start), cmp.Compare(a.Fence, b.Fence))
	})
	return func(yield func(before, h Hold) bool) {
		for i := 1; i < len(sorted); i++ {
			if sorted[i-1].Name == sorted[i].Name && !yield(sorted[i-1], sorted[i]) {
				return
			}
		}
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

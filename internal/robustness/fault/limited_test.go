package fault_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestPartitions shows how many writes a second a divided table takes, of one
// name and of many, before and after its partitions have split.
func TestPartitions(t *testing.T) {
	t.Parallel()
	const rate, sent = 100, 5000 // writes per second, of each partition and of the test
	for name, c := range map[string]struct {
		names  int
		splits time.Duration
		want   [3]int // writes per second, at first and after half an hour each
	}{
		"one name":                 {1, 30 * time.Minute, [3]int{rate, rate, rate}},
		"many":                     {sent, 30 * time.Minute, [3]int{4 * rate, 8 * rate, 16 * rate}},
		"many, and no split":       {sent, 0, [3]int{4 * rate, 4 * rate, 4 * rate}},
		"many, with a slow growth": {sent, 45 * time.Minute, [3]int{4 * rate, 4 * rate, 8 * rate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &fault.Limited{Store: memstore.New(), Partitions: &fault.Partitions{Rate: rate, First: 4, Splits: c.splits}}
				second := func() int {
					_, before := s.Requests()
					for i := range sent {
						_, _, _ = s.Settle(t.Context(), &driver.Settlement{Name: fmt.Sprint(i % c.names)})
					}
					_, after := s.Requests()
					time.Sleep(time.Second)
					return after - before
				}
				var got [3]int
				for i := range got {
					second() // the burst
					got[i] = second()
					time.Sleep(30*time.Minute - 2*time.Second)
					second() // splits
				}
				if got != c.want {
					t.Errorf("the table took %v writes a second, want %v", got, c.want)
				}
			})
		})
	}
}

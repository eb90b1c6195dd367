package locktest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// This is the whole test of a store that has no limits.
func ExampleRun() {
	_ = func(t *testing.T) {
		locktest.Run(t, locktest.Harness{
			Open: func(*testing.T) driver.Store { return memstore.New() },
		})
	}
	// Output:
}

func ExampleCheckHistory() {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	fmt.Println(locktest.CheckHistory([]locktest.Hold{
		{Name: "n", Holder: "A", Fence: 33, Start: noon, End: noon.Add(2 * time.Second)},
		{Name: "n", Holder: "B", Fence: 34, Start: noon.Add(time.Second), End: noon.Add(3 * time.Second)},
	}))
	// Output:
	// "n": A held until 12:00:02.000000, B from 12:00:01.000000: overlap of 1s
}

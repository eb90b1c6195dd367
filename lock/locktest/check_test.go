package locktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/history"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	first := history.Hold{Name: "a", Holder: "first", Fence: 5, Start: at(10), End: at(20)}
	for name, c := range map[string]struct {
		second history.Hold
		within string // empty: nothing to report
	}{
		"one after the other": {history.Hold{Name: "a", Fence: 6, Start: at(20), End: at(30)}, ""},
		"before":              {history.Hold{Name: "a", Fence: 4, Start: at(0), End: at(10)}, ""},
		"another name":        {history.Hold{Name: "b", Fence: 1, Start: at(12), End: at(13)}, ""},
		"ends immediately":    {history.Hold{Name: "a", Fence: 4, Start: at(10), End: at(10)}, ""},
		"overlap":             {history.Hold{Name: "a", Fence: 6, Start: at(19), End: at(30)}, "overlap of 1ms"},
		"within":              {history.Hold{Name: "a", Fence: 6, Start: at(12), End: at(13)}, "overlap"},
		"same fence":          {history.Hold{Name: "a", Fence: 5, Start: at(21), End: at(30)}, "fence 5"},
		"no end":              {history.Hold{Name: "b", Fence: 1, Start: at(12)}, "set its End"},
		"falling fence":       {history.Hold{Name: "a", Fence: 4, Start: at(21), End: at(30)}, "had 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, holds := range [][]history.Hold{{c.second, first}, {first, c.second}} {
				err := history.Check(holds)
				if (err == nil) != (c.within == "") || err != nil && !strings.Contains(err.Error(), c.within) {
					t.Errorf("%v, want %q", err, c.within)
				}
			}
		})
	}
}

package invoke

import (
	"fmt"
	"strings"
	"testing"
)

func TestSizeHasLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environments, concurrency, copies int
		maxFiles                          uint64
		within                            string
	}{
		"one environment":             {1, 1, 1, 256, ""},
		"as many as files":            {16, 1, 1, 256, ""},
		"more than files":             {17, 1, 1, 256, "at most 16 environments"},
		"concurrency beyond files":    {1, 64, 1, 256, "at most 0 environments of this concurrency"},
		"no files":                    {1, 1, 1, 10, "at most 0 environments"},
		"as many as an account":       {1000, 1, 1, 1 << 40, ""},
		"more than an account":        {1001, 1, 1, 1 << 40, "at most 1000 environments"},
		"as many copies as in memory": {1, 1, 500_000, 1 << 40, ""},
		"more copies than in memory":  {1, 1, 500_001, 1 << 40, "at most 500000 copies of 2 events"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := &Command{Environments: c.environments, Concurrency: c.concurrency, Copies: c.copies, Events: []string{"a", "b"}}
			err := cmd.checkSize(c.maxFiles)
			if (err == nil) != (c.within == "") || err != nil && !strings.Contains(err.Error(), c.within) {
				t.Errorf("%v, want %q", err, c.within)
			}
		})
	}
}

// TestMessagesHaveLimits: one file may hold many messages, and each copy is a
// message.
func TestMessagesHaveLimits(t *testing.T) {
	t.Parallel()
	for copies, want := range map[int]string{333_333: "<nil>", 333_334: "-c 333334: at most 333333 copies of 3 messages"} {
		cmd := &Command{Source: sourceSQS, Copies: copies}
		if got := fmt.Sprint(cmd.checkEvents([]*event{messages("a", "b"), messages("c")})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

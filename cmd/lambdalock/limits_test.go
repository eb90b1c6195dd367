package main

import (
	"strings"
	"testing"
)

func TestSizeHasLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environments, concurrency, copies int
		files                             uint64
		within                            string
	}{
		{1, 1, 1, 256, ""},
		{16, 1, 1, 256, ""},
		{17, 1, 1, 256, "at most 16 environments"},
		{1, 64, 1, 256, "at most 0 environments of this concurrency"},
		{1, 1, 1, 10, "at most 0 environments"},
		{1000, 1, 1, 1 << 40, ""},
		{1001, 1, 1, 1 << 40, "at most 1000 environments"},
		{1, 1, 500_000, 1 << 40, ""},
		{1, 1, 500_001, 1 << 40, "at most 500000 copies of 2 events"},
	} {
		cmd := &invokeCmd{Environments: c.environments, Concurrency: c.concurrency, Copies: c.copies, Events: []string{"a", "b"}}
		err := cmd.checkSize(c.files)
		if (err == nil) != (c.within == "") || err != nil && !strings.Contains(err.Error(), c.within) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

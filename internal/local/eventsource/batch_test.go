package eventsource

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBatch plays deliveries of records, in which so many succeed each time;
// -1: none, and it does not count.
func TestBatch(t *testing.T) {
	t.Parallel()
	abcd := strings.Split("abcd", "")
	early := NewBatch(abcd, 2)
	early.Scale = 4
	for _, c := range []struct {
		name    string
		batch   *Batch[string]
		bisect  int
		succeed []int
		want    string // when what is delivered
		givenUp string
	}{
		{"nothing", NewBatch(abcd[:0], 3), 0, nil, "", ""},
		{"success", NewBatch(abcd, 3), 0, []int{4}, "0s abcd", ""},
		{"given up", NewBatch(abcd, 3), 0, []int{0, 0, 0}, "0s abcd, 2s abcd, 6s abcd", "abcd"},
		{"pauses", NewBatch(abcd, 9), 0, []int{0, 0, 0, 0, 0, 4}, "0s abcd, 2s abcd, 6s abcd, 14s abcd, 29s abcd, 44s abcd", ""},
		{"a smaller batch has failed once", NewBatch(abcd, 3), 0, []int{0, 0, 1, 0, 0}, "0s abcd, 2s abcd, 6s abcd, 14s bcd, 18s bcd", "bcd"},
		{"early attempts do not count", early, 1, []int{2, -1, -1, 0, 0, 0, 1}, "0s abcd, 500ms cd, 1.5s cd, 2s cd, 2s c, 2.5s c, 2.5s d", "c"},
		{"bisect immediately", NewBatch(abcd, 2), 1, []int{0, 2, 0, 0, 0, 1}, "0s abcd, 0s ab, 0s cd, 0s c, 2s c, 2s d", "c"},
		{"bisect late", NewBatch(abcd, 2), 2, []int{0, 0, 0, 1, 0, 2}, "0s abcd, 2s abcd, 2s ab, 4s ab, 8s b, 8s cd", "b"},
		{"asynchronous", NewAsync("e"), 0, []int{0, 0, 0}, "0s e, 1m0s e, 3m0s e", "e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var log, givenUp []string
				c.batch.BisectAfter = c.bisect
				c.batch.GiveUp = func(records []string) { givenUp = append(givenUp, strings.Join(records, "")) }
				err := c.batch.Run(t.Context(), func(records []string, _ *Wait) (int, bool, error) {
					n := c.succeed[len(log)]
					log = append(log, fmt.Sprint(time.Since(start), " ", strings.Join(records, "")))
					return max(n, 0), n >= 0, nil
				})
				if got := strings.Join(log, ", "); got != c.want || strings.Join(givenUp, " ") != c.givenUp || err != nil {
					t.Errorf("delivered %s, want %s; given up %q, want %q; %v", got, c.want, givenUp, c.givenUp, err)
				}
			})
		})
	}
}

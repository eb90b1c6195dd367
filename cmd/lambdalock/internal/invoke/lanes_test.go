package invoke

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
)

// TestLanes: an environment that handles several events at the same time has as
// many lanes, and what is given up has the last.
func TestLanes(t *testing.T) {
	t.Parallel()
	var p picture
	for _, s := range []struct{ env, start, end int }{{3, 600, 700}, {2, 0, 200}, {0, 900, 900}, {3, 0, 400}, {3, 200, 600}, {3, 400, 500}} {
		p.add(s.env, timeline.Span{Start: time.Duration(s.start) * time.Millisecond, End: time.Duration(s.end) * time.Millisecond})
	}
	var got []string
	for _, lane := range p.lanes() {
		text := lane.Name + ":"
		for _, s := range lane.Spans {
			text += fmt.Sprint(" ", s.Start)
		}
		got = append(got, text)
	}
	if want := "env 2: 0s|env 3: 0s 400ms 600ms|: 200ms|given up: 900ms"; strings.Join(got, "|") != want {
		t.Errorf("%s, want %s", strings.Join(got, "|"), want)
	}
}

package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

func TestMain(m *testing.M) {
	if os.Getenv(RoleVariable) != "" {
		Function()
		return
	}
	os.Exit(m.Run())
}

// TestDemo runs the demo itself, with real processes: with an embedded table,
// and over a store that a URL names and that judges leases by its own clock.
func TestDemo(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	server := miniredis.RunT(t)
	var wg sync.WaitGroup
	stores := []string{"", "redis://" + server.Addr()}
	reports, errs := make([]*Report, len(stores)), make([]error, len(stores))
	for i, url := range stores {
		wg.Go(func() {
			reports[i], errs[i] = Run(t.Context(), Config{Command: []string{os.Args[0]}, Store: url, Progress: func(string) {}})
		})
	}
	wg.Wait()
	for i, url := range stores {
		t.Run(url, func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			checkReport(t, reports[i])
		})
	}
	if len(server.Keys()) == 0 {
		t.Error("the demo took no lock in the store that the URL names")
	}
}

// TestDemoRefusesAStore: a store that cannot be used is known before anything
// runs.
func TestDemoRefusesAStore(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"nowhere": "no scheme", "redis://127.0.0.1:1": "127.0.0.1:1"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), Config{Command: []string{"/nowhere"}, Store: url})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

func checkReport(t *testing.T, rep *Report) {
	t.Helper()
	var out bytes.Buffer
	if err := rep.Timeline.Text(&out, 100, false); err != nil || rep.Err() != nil {
		t.Errorf("%v, %v\n%s", err, rep.Err(), out.String())
	}
	for _, kind := range []timeline.Kind{timeline.Ran, timeline.Skipped, timeline.Refused, timeline.Failed, timeline.Killed, timeline.TookOver} {
		if rep.with.kinds[kind] == 0 {
			t.Errorf("no delivery of kind %d in\n%s", kind, out.String())
		}
	}
	if said := strings.Join(rep.Said, " "); !strings.Contains(said, "lambdalock: held") || strings.Contains(said, "] "+notePrefix) {
		t.Errorf("the function's log is not kept: %s", said)
	}
	checkFigures(t, rep)
	checkPanels(t, rep.Timeline.Panels)
	expect.OK(t, rep.Timeline.HTML(&out))
}

// checkFigures: the same deliveries do harm without a lock only.
func checkFigures(t *testing.T, rep *Report) {
	t.Helper()
	want := timeline.Figures{
		Title: "The same 14 deliveries of 12 uploads",
		Names: []string{"handled twice", "overlaps", "older after newer"},
		Rows:  []timeline.Row{{Name: "without", Counts: []int{2, 2, 1}}, {Name: "with lambdalock", Counts: []int{0, 0, 0}}},
	}
	if got := rep.Timeline.Figures; !reflect.DeepEqual(got, want) || rep.Timeline.Title != "Delivered twice, handled once" {
		t.Errorf("%s: %+v, want %+v", rep.Timeline.Title, got, want)
	}
	if a, b := rep.without, rep.with; a.deliveries != b.deliveries || !maps.EqualFunc(a.uploads, b.uploads, func(int, int) bool { return true }) {
		t.Errorf("not the same deliveries: %+v and %+v", a, b)
	}
	for _, h := range rep.without.holds {
		if h.Fence != 0 {
			t.Errorf("there was a lock: %+v", h)
		}
	}
}

// checkPanels: every scene shows what its caption says.
func checkPanels(t *testing.T, panels []timeline.Panel) {
	t.Helper()
	for i, p := range panels {
		want := cmp.Or(scenarios[i].caption, "handled twice without lambdalock, once with it")
		if p.Caption != want || p.Bad {
			t.Errorf("%s: %s", p.Title, p.Caption)
		}
		for n, lane := range p.Lanes {
			for _, s := range lane.Spans {
				if overlap := p.Lanes[0].Bad && n < 2; overlap != (s.Kind == timeline.Overlap) {
					t.Errorf("%s: %+v", p.Title, lane)
				}
				if s.Kind == timeline.Killed && s.Lease < s.End+timeout-workTime {
					t.Errorf("the lease of a dead holder ends at once: %+v", s)
				}
			}
		}
	}
}

const ms = time.Millisecond

// played returns a scene that begins at the given hour, with a delivery for
// each of the attempts.
func played(hour int, attempts ...locallambda.Result) *scene {
	s := &scene{zero: time.UnixMilli(1e12).Add(time.Duration(hour) * time.Hour), notes: map[int][]note{}}
	for _, a := range attempts {
		s.deliver("a", a)
	}
	return s
}

func (s *scene) deliver(object string, attempts ...locallambda.Result) {
	for i := range attempts {
		a := &attempts[i]
		a.Started, a.Ended = s.zero.Add(time.Duration(a.Started.UnixNano())), s.zero.Add(time.Duration(a.Ended.UnixNano()))
	}
	s.deliveries = append(s.deliveries, &delivery{upload{object: object}, attempts})
}

// attempt returns one between two times of its scene.
func attempt(env, from, to int, o locallambda.Outcome) locallambda.Result {
	return locallambda.Result{Environment: env, Outcome: o, Started: time.Unix(0, 0).Add(time.Duration(from) * ms), Ended: time.Unix(0, 0).Add(time.Duration(to) * ms)}
}

func (s *scene) note(env, at int, what string, until int) {
	n := note{What: what, Time: s.zero.Add(time.Duration(at) * ms), Fence: 7}
	if until > 0 {
		n.Until = s.zero.Add(time.Duration(until) * ms)
	}
	s.notes[env] = append(s.notes[env], n)
}

// TestLanes: the times are those of the scene, and a delivery whose handler ran
// has another lane for its retries.
func TestLanes(t *testing.T) {
	t.Parallel()
	for hour := range 2 {
		s := played(hour)
		s.deliver("a", attempt(1, 0, 9, locallambda.Crashed), attempt(2, 20, 21, locallambda.Failed), attempt(1, 50, 60, locallambda.Succeeded))
		s.deliver("a", attempt(2, 1, 2, locallambda.Failed), attempt(2, 62, 63, locallambda.Succeeded))
		s.note(1, 1, string(lock.OutcomeAcquired), 40)
		s.note(1, 2, "begin", 0)
		s.note(1, 51, tookOver, 99)
		s.note(1, 52, "begin", 0)
		s.note(1, 57, "end", 0)
		s.note(1, 58, released, 99)
		tally := newTally()
		want := []timeline.Lane{
			{Name: "delivery 1", Spans: []timeline.Span{{Start: 2 * ms, End: 9 * ms, Lease: 40 * ms, Kind: timeline.Killed, Label: "handler runs", Result: "✕ kill -9; lease still held"}}},
			{Name: "retry", Spans: []timeline.Span{
				{Start: 20 * ms, End: 21 * ms, Kind: timeline.Refused, Result: "held: retried later"},
				{Start: 52 * ms, End: 57 * ms, Kind: timeline.TookOver, Label: "↻ takes over", Result: "completed"},
			}},
			{Name: "delivery 2", Spans: []timeline.Span{
				{Start: ms, End: 2 * ms, Kind: timeline.Refused, Result: "held: retried later"},
				{Start: 62 * ms, End: 63 * ms, Kind: timeline.Skipped, Result: "skipped: completed"},
			}},
		}
		if got := tally.add(s); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant\n%+v", got, want)
		}
		if tally.deliveries != 2 || tally.handled() != 1 {
			t.Errorf("%+v", tally)
		}
	}
}

// TestComparison: a compared scene is drawn without lambdalock and with it.
func TestComparison(t *testing.T) {
	t.Parallel()
	with := played(1, attempt(1, 0, 9, locallambda.Succeeded), attempt(2, 1, 2, locallambda.Succeeded))
	with.note(1, 1, "begin", 0)
	with.note(1, 8, released, 99)
	without := played(2, attempt(1, 0, 9, locallambda.Succeeded), attempt(2, 1, 9, locallambda.Succeeded))
	without.note(1, 1, "begin", 0)
	without.note(2, 2, "begin", 0)
	with.scenario = scenario{compared: true, shows: timeline.Skipped}
	var got []string
	p := compare(&run{scenes: []*scene{without}}, &run{scenes: []*scene{with}}).Timeline.Panels[0]
	for _, lane := range p.Lanes {
		got = append(got, fmt.Sprintf("%s %v %d %s", lane.Group, lane.Bad, lane.Spans[0].Kind, lane.Spans[0].Result))
	}
	want := []string{
		fmt.Sprintf("without true %d handled", timeline.Overlap), fmt.Sprintf(" false %d handled again", timeline.Overlap),
		fmt.Sprintf("with false %d completed", timeline.Ran), fmt.Sprintf(" false %d skipped: completed", timeline.Skipped),
	}
	if !slices.Equal(got, want) || p.Caption != "handled twice without lambdalock, once with it" {
		t.Errorf("%s: %q, want %q", p.Caption, got, want)
	}
}

// TestCaptionsAreTrue: a caption states its result only if the scene showed it.
func TestCaptionsAreTrue(t *testing.T) {
	t.Parallel()
	alone := scenario{caption: "is skipped", shows: timeline.Skipped}
	compared := scenario{compared: true, shows: timeline.Skipped}
	for _, c := range []struct {
		scenario
		without, with int // how often the upload was handled
		kind          timeline.Kind
		within        string
		bad           bool
	}{
		{alone, 1, 1, timeline.Skipped, "is skipped", false},
		{alone, 1, 1, timeline.Ran, "did not happen", true},
		{alone, 1, 2, timeline.Skipped, "handled twice", true},
		{compared, 3, 1, timeline.Skipped, "handled 3 times without lambdalock, once with it", false},
	} {
		s := &scene{scenario: c.scenario}
		got, bad := s.result(tally{uploads: map[upload]int{{}: c.without}}, tally{uploads: map[upload]int{{}: c.with}, kinds: map[timeline.Kind]int{c.kind: 1}})
		if !strings.Contains(got, c.within) || bad != c.bad {
			t.Errorf("%+v: %q, %v", c, got, bad)
		}
	}
}

func TestWaitInWords(t *testing.T) {
	t.Parallel()
	s := played(1)
	s.deliver("a", attempt(1, 0, 1000, locallambda.Failed), attempt(1, 5010, 5020, locallambda.Succeeded))
	s.deliver("b")
	if got, want := s.waits(), (timeline.Wait{From: time.Second, To: 5010 * ms, Words: "2 min"}); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEventIsAnS3Event(t *testing.T) {
	t.Parallel()
	var e events.S3Event
	if err := json.Unmarshal(upload{object: "cat.png", version: "0001"}.event("b"), &e); err != nil || e.Records[0].S3.Bucket.Arn != "arn:aws:s3:::b" || e.Records[0].S3.Object.URLDecodedKey != "cat.png" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestReportFindsWhatWentWrong: the demo must be able to fail.
func TestReportFindsWhatWentWrong(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	good, old := upload{object: "a", version: "2"}, upload{object: "a", version: "1", stale: true}
	hold := func(start, end int, fence int64) history.Hold {
		return history.Hold{Name: "a", Start: at(start), End: at(end), Fence: fence}
	}
	for name, c := range map[string]struct {
		uploads map[upload]int
		holds   []history.Hold
		within  string
	}{
		"right":         {map[upload]int{good: 1, old: 0}, []history.Hold{hold(0, 1, 1), hold(1, 2, 2)}, ""},
		"twice":         {map[upload]int{good: 2}, nil, "handled twice"},
		"never":         {map[upload]int{good: 0}, nil, "handled 0 times"},
		"stale and run": {map[upload]int{old: 1}, nil, "stale"},
		"overlap":       {map[upload]int{good: 1}, []history.Hold{hold(0, 2, 1), hold(1, 3, 2)}, "overlap"},
		"fence":         {map[upload]int{good: 1}, []history.Hold{hold(0, 1, 2), hold(1, 2, 1)}, "fence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := &Report{with: tally{uploads: c.uploads, holds: c.holds}}
			rep.conclude()
			err := rep.Err()
			if (err == nil) != (c.within == "") || err != nil && !strings.Contains(err.Error(), c.within) || (err == nil) != (rep.Timeline.Title == "Delivered twice, handled once") {
				t.Errorf("%s: %v", rep.Timeline.Title, err)
			}
		})
	}
}

// TestHeadlineIsTrue: a scene that did not show its result, such as one whose
// process was killed too late by a busy machine, says nothing against the
// locks.
func TestHeadlineIsTrue(t *testing.T) {
	t.Parallel()
	for title, handled := range map[string]int{"A scene did not happen: run the demo again": 1, "The demo went wrong": 2} {
		rep := &Report{Timeline: timeline.Timeline{Panels: []timeline.Panel{{}, {Bad: true}}}, with: tally{uploads: map[upload]int{{}: handled}}}
		if rep.conclude(); rep.Timeline.Title != title {
			t.Errorf("%s, want %s", rep.Timeline.Title, title)
		}
	}
}

// TestHarm counts what was handled twice, overlapped, or is older than what was
// handled before.
func TestHarm(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	got := tally{
		uploads: map[upload]int{
			{object: "a"}: 1, {object: "b"}: 2, {object: "c"}: 3, {object: "d", stale: true}: 1, {object: "e", stale: true}: 0,
		},
		holds: []history.Hold{{Name: "b", Start: at(0), End: at(2)}, {Name: "b", Start: at(1), End: at(3)}, {Name: "c", Start: at(1), End: at(3)}},
	}.harm()
	if want := []int{2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome       locallambda.Outcome
		ran, tookOver bool
		want          timeline.Kind
	}{
		{locallambda.Succeeded, true, false, timeline.Ran},
		{locallambda.Succeeded, true, true, timeline.TookOver},
		{locallambda.Succeeded, false, false, timeline.Skipped},
		{locallambda.Failed, false, false, timeline.Refused},
		{locallambda.Failed, true, false, timeline.Failed},
		{locallambda.Crashed, true, true, timeline.Killed},
		{locallambda.TimedOut, true, false, timeline.Killed},
	} {
		if got := kindOf(c.outcome, c.ran, c.tookOver); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

package demo

import (
	"bytes"
	"encoding/json"
	"os"
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
		if rep.protected.kinds[kind] == 0 {
			t.Errorf("no delivery of kind %d in\n%s", kind, out.String())
		}
	}
	if said := strings.Join(rep.Said, " "); !strings.Contains(said, "lambdalock: held") || strings.Contains(said, "] "+notePrefix) {
		t.Errorf("the function's log is not kept: %s", said)
	}
	checkUnprotected(t, rep)
	checkPanels(t, rep.Timeline.Panels[1:])
	if err := rep.Timeline.HTML(&out); err != nil {
		t.Error(err)
	}
}

// checkUnprotected: without a lock, one event does run twice at the same time,
// and the demo succeeds nevertheless.
func checkUnprotected(t *testing.T, rep *Report) {
	t.Helper()
	u, panel, verdict := rep.unprotected, rep.Timeline.Panels[0], rep.Timeline.Verdicts[0]
	if len(history.Overlaps(u.holds)) != 1 || len(u.uploads) != 1 || u.deliveries != 2 || u.kinds[timeline.Ran] != 2 {
		t.Errorf("without lambdalock: %+v", u)
	}
	if !panel.Bad || panel.Caption != "runs twice, at the same time" || !verdict.Bad || !strings.Contains(verdict.Result, "1 overlap.") {
		t.Errorf("%q, %+v", panel.Caption, verdict)
	}
	for _, s := range panel.Spans {
		if s.Fence != 0 || s.LockEnd != 0 {
			t.Errorf("there was a lock: %+v", s)
		}
	}
}

// checkPanels: every scene with lambdalock shows what its caption says, and
// every handler ran while it held the lock.
func checkPanels(t *testing.T, panels []timeline.Panel) {
	t.Helper()
	for i, p := range panels {
		if p.Caption != scenarios[i].caption || p.Bad {
			t.Errorf("%s: %s", p.Title, p.Caption)
		}
		for _, s := range p.Spans {
			if s.Fence != 0 && (s.LockStart > s.Start || s.LockEnd < s.End) {
				t.Errorf("%s: the handler ran without its lock: %+v", p.Title, s)
			}
			if s.Kind == timeline.Killed && s.LockEnd < s.End+timeout-workTime {
				t.Errorf("the lock of a dead holder ends at once: %+v", s)
			}
		}
	}
}

// TestPanelsStartAtZero: the times of a panel are those of its scene.
func TestPanelsStartAtZero(t *testing.T) {
	t.Parallel()
	r := &run{}
	for i := range 3 {
		zero := time.UnixMilli(1e12).Add(time.Duration(i) * time.Hour)
		at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
		result := locallambda.Result{Environment: 1, Outcome: locallambda.Succeeded, Started: at(0), Ended: at(9)}
		r.scenes = append(r.scenes, &scene{zero: zero, attempts: []attempt{{upload{object: "a"}, result}}, notes: map[int][]note{1: {
			{What: string(lock.OutcomeAcquired), Time: at(1), Fence: 7, Until: at(5000)},
			{What: "begin", Time: at(2), Fence: 7},
			{What: "end", Time: at(7)},
			{What: string(lock.OutcomeReleased), Time: at(8), Fence: 7, Until: at(5000)},
		}}})
	}
	const ms = time.Millisecond
	want := timeline.Span{Env: 1, Start: 2 * ms, End: 7 * ms, LockStart: ms, LockEnd: 8 * ms, Object: "a", Fence: 1}
	for i, p := range r.report(4).Timeline.Panels {
		if len(p.Spans) != 1 || p.Spans[0] != want {
			t.Errorf("panel %d: %+v, want %+v", i, p.Spans, want)
		}
	}
}

// TestCaptionsAreTrue: a caption states its result only if the scene showed it.
func TestCaptionsAreTrue(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	apart := []history.Hold{{Name: "a", Start: at(0), End: at(1)}, {Name: "a", Start: at(1), End: at(2)}}
	together := []history.Hold{{Name: "a", Start: at(0), End: at(2)}, {Name: "a", Start: at(1), End: at(3)}}
	protected := scenario{caption: "is skipped", shows: timeline.Skipped}
	for name, c := range map[string]struct {
		scenario
		uploads map[upload]int
		kind    timeline.Kind
		holds   []history.Hold
		within  string
		bad     bool
	}{
		"shown":                    {protected, map[upload]int{{}: 1}, timeline.Skipped, nil, "is skipped", false},
		"not shown":                {protected, map[upload]int{{}: 1}, timeline.Ran, nil, "did not happen", true},
		"wrong":                    {protected, map[upload]int{{}: 2}, timeline.Skipped, nil, "handled 2 times", true},
		"unprotected, overlapping": {unprotected, map[upload]int{{}: 2}, timeline.Ran, together, "runs twice, at the same time", true},
		"unprotected, one by one":  {unprotected, map[upload]int{{}: 2}, timeline.Ran, apart, "runs twice, but did not overlap", true},
		"unprotected, runs once":   {unprotected, map[upload]int{{}: 1}, timeline.Ran, nil, "was handled 1 time", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{scenario: c.scenario}
			got, bad := s.result(tally{uploads: c.uploads, kinds: map[timeline.Kind]int{c.kind: 1}, holds: c.holds})
			if !strings.Contains(got, c.within) || bad != c.bad {
				t.Errorf("%q, %v", got, bad)
			}
		})
	}
}

func TestWaitInWords(t *testing.T) {
	t.Parallel()
	zero := time.UnixMilli(1e12)
	got := wait(zero, zero.Add(time.Second), zero.Add(5010*time.Millisecond))
	if want := (timeline.Wait{From: time.Second, To: 5010 * time.Millisecond, Words: "2 min as 4 s"}); got != want {
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
		"twice":         {map[upload]int{good: 2}, nil, "handled 2 times"},
		"never":         {map[upload]int{good: 0}, nil, "handled 0 times"},
		"stale and run": {map[upload]int{old: 1}, nil, "stale"},
		"overlap":       {map[upload]int{good: 1}, []history.Hold{hold(0, 2, 1), hold(1, 3, 2)}, "overlap"},
		"fence":         {map[upload]int{good: 1}, []history.Hold{hold(0, 1, 2), hold(1, 2, 1)}, "fence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := &Report{protected: tally{uploads: c.uploads, holds: c.holds}}
			rep.conclude(4)
			with := rep.Timeline.Verdicts[1]
			if err := rep.Err(); (err == nil) != (c.within == "") || with.Bad != (c.within != "") || !strings.Contains(with.Result+with.Figures, c.within) {
				t.Errorf("%v\n%+v", err, with)
			}
		})
	}
}

// TestVerdictCounts: not every upload is handled where one is stale, and an
// overlap without lambdalock does not fail the demo.
func TestVerdictCounts(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	rep := &Report{
		protected: tally{deliveries: 7, uploads: map[upload]int{
			{object: "a", version: "2"}: 1, {object: "a", version: "1", stale: true}: 0, {object: "b", version: "1"}: 1,
		}},
		unprotected: tally{deliveries: 2, uploads: map[upload]int{{object: "c"}: 2}, holds: []history.Hold{
			{Name: "c", Start: at(0), End: at(2)}, {Name: "c", Start: at(1), End: at(3)},
		}},
	}
	rep.conclude(4)
	want := []timeline.Verdict{
		{Result: "Without lambdalock: 1 overlap.", Figures: "1 upload, 2 deliveries, handled 2 times.", Bad: true},
		{Result: "With lambdalock: 0 overlaps.", Figures: "3 uploads, 7 deliveries, 4 environments: 2 handled once each, 1 stale and skipped."},
	}
	if !slices.Equal(rep.Timeline.Verdicts, want) || rep.Err() != nil {
		t.Errorf("%+v, %v", rep.Timeline.Verdicts, rep.Err())
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

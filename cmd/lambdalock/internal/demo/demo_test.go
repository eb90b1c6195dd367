package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/sim/history"
)

func TestMain(m *testing.M) {
	if os.Getenv(RoleVariable) != "" {
		Function()
		return
	}
	os.Exit(m.Run())
}

// TestDemo runs the demo itself, with real processes.
func TestDemo(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	rep, err := Run(t.Context(), Config{Command: []string{os.Args[0]}, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := rep.Summary(&out); err != nil || rep.Err() != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, kind := range []timeline.Kind{timeline.Ran, timeline.Skipped, timeline.Refused, timeline.Failed, timeline.Killed, timeline.TookOver} {
		if rep.counts[kind] == 0 {
			t.Errorf("nothing %s in\n%s", kind, out.String())
		}
	}
	if said := strings.Join(rep.Said, " "); !strings.Contains(said, "lambdalock: held") || strings.Contains(said, notePrefix) {
		t.Errorf("the function's log is not kept: %s", said)
	}
	if err := rep.Timeline.SVG(&out); err != nil {
		t.Error(err)
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
		rep := &Report{uploads: c.uploads, holds: c.holds, counts: map[timeline.Kind]int{}}
		err := rep.Err()
		var out bytes.Buffer
		if writeErr := rep.Summary(&out); writeErr != nil || (err == nil) != (c.within == "") || !strings.Contains(out.String(), c.within) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

// TestVerdictCounts: not every upload is handled where one is stale.
func TestVerdictCounts(t *testing.T) {
	t.Parallel()
	rep := &Report{counts: map[timeline.Kind]int{}, uploads: map[upload]int{
		{object: "a", version: "2"}: 1, {object: "a", version: "1", stale: true}: 0, {object: "b", version: "1"}: 1,
	}}
	var out bytes.Buffer
	if err := rep.Summary(&out); err != nil || !strings.Contains(out.String(), "2 of 3 uploads were handled to their end, once each; 1 stale") {
		t.Errorf("%v\n%s", err, out.String())
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

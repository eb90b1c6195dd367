package invoke

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestRecordsThatFailed: an answer that returns records is not a success, and a
// record that was held is not a failure of the handler.
func TestRecordsThatFailed(t *testing.T) {
	t.Parallel()
	held, handled := "INFO lambdalock: held key=k requests=1", "ERROR lambdalock: handler_failed key=k requests=1"
	moved, two := `{"level":"INFO","msg":"lambdalock: moved to the dead-letter queue","records":["a"]}`, `INFO lambdalock: moved to the dead-letter queue records="[a b]"`
	one, both := `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`
	for name, c := range map[string]struct {
		answer    string
		log       []string
		want      string
		early     bool
		completed string
	}{
		"none":                      {`{}`, nil, "succeeded", false, "[a b]"},
		"one failed":                {one, nil, "failed in part", false, "[b]"},
		"one was held":              {one, []string{held}, "failed in part (held)", true, "[b]"},
		"one was held, and failed":  {one, []string{held, handled}, "failed in part", false, "[b]"},
		"both failed":               {both, nil, "failed", false, "[]"},
		"both were held":            {both, []string{held}, "held", true, "[]"},
		"one was moved away":        {`{}`, []string{handled, moved}, "failed in part", false, "[b]"},
		"both were moved away":      {`{}`, []string{handled, two}, "failed", false, "[]"},
		"one was held, both failed": {both, []string{held, handled}, "failed", false, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &event{batch: readBatch([]byte(`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"messageId":"b","eventSource":"aws:sqs"}]}`))}
			d := &deliverer{Command: &Command{}, table: &localtable.Table{}}
			v := d.judge(e.records(), locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(c.answer), Log: c.log})
			early, completed := v.outcome.heldUp(), ids(v.completed())
			if got := v.outcome.String(); got != c.want || early != c.early || fmt.Sprint(completed) != c.completed {
				t.Errorf("%s, early %v, completed %v; want %+v", got, early, completed, c)
			}
		})
	}
}

// TestAnswerOfAKafkaBatch: Lambda reads no member of another letter case.
func TestAnswerOfAKafkaBatch(t *testing.T) {
	t.Parallel()
	d := &deliverer{Command: &Command{}, table: &localtable.Table{}}
	for answer, want := range map[string]string{`{"batchItemFailures":[{}]}`: partly, `{"BatchItemFailures":[{}]}`: succeeded} {
		v := d.judge([]*record{{event: &event{kafka: true, several: 2}}}, locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(answer)})
		if v.outcome.word != want {
			t.Errorf("%s is %v, want %s", answer, v.outcome, want)
		}
	}
}

// TestLogLines: the lines are found whichever slog handler the function has.
func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text":  func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON":  func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"group": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil).WithGroup("app") },
	} {
		for _, outcome := range []lock.Outcome{lock.OutcomeHeld, lock.OutcomeTakenOver} {
			t.Run(name+" "+string(outcome), func(t *testing.T) {
				t.Parallel()
				var b bytes.Buffer
				slog.New(handler(&b)).With("function", "a").Info("lambdalock: "+string(outcome), "key", "k", "requests", 1)
				if got := logged([]string{b.String()}); len(got) != 1 || got[outcome] != 1 {
					t.Errorf("%v from %s", got, b.String())
				}
			})
		}
	}
	for name, c := range map[string]struct {
		line string
		want lock.Outcome // empty: none
	}{
		"default logger":    {"2026/11/21 18:15:33 INFO lambdalock: held key=k duration=1ms requests=1", lock.OutcomeHeld},
		"without a request": {`2026/11/21 18:15:33 WARN lambdalock: ignored error="nothing"`, "ignored"},
		"JSON":              {`{"level":"WARN","msg":"lambdalock: ignored","error":"x"}`, "ignored"},
		"no attributes":     {"WARN lambdalock: mismatch", lock.OutcomeMismatch},
		"in colour":         {"\x1b[92mINF\x1b[0m lambdalock: held \x1b[2mkey=\x1b[0mk", lock.OutcomeHeld},
		"not a message":     {"lambdalock: already_completed", ""},
		"a sentence":        {"lambdalock: key a is held by requests=1", ""},
		"more words":        {"WARN lambdalock: held by nobody", ""},
		"an error":          {`level=ERROR msg="it failed" error="lambdalock: held"`, ""},
		"an error in JSON":  {`{"msg":"it failed","error":"lambdalock: held"}`, ""},
		"a handler's lock":  {`ERROR lambdalock: handler_failed key=k error="lambdalock: key b is held by another invocation"`, ""},
		"without a key":     {`ERROR lambdalock: handler_failed key=k error="lambdalock: no key: the Name is empty"`, ""},
		"in its cooldown":   {`ERROR lambdalock: handler_failed key=k error="lambdalock: key b stays held until 2026-11-27T11:52:05Z, because of the HoldAtLeast of its last holder"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := logged([]string{c.line}); len(got) > 1 || c.want != "" && got[c.want] != 1 || c.want == "" && len(got) != 0 {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

// TestFates: the numbers add up, and none is guessed.
func TestFates(t *testing.T) {
	t.Parallel()
	const unclear, hidden = true, true
	for name, c := range map[string]struct {
		failed int // of 4; negative: a stream returns them
		claims localtable.Claims
		log    tally
		want   fates
	}{
		"behind a failed one":   {-3, localtable.Claims{Acquired: 2}, tally{middleware.OutcomeHandlerFailed: 1, middleware.OutcomeNotBegun: 1, lock.OutcomeAlreadyCompleted: 1}, fates{ran: 1, skipped: 1, failed: 1, notBegun: 1, behind: 1, visible: true}},
		"behind a held one":     {-4, localtable.Claims{Acquired: 1, Refused: 1}, tally{lock.OutcomeHeld: 1, middleware.OutcomeNotBegun: 2}, fates{ran: 1, held: 1, notBegun: 2, behind: 1, visible: true}},
		"behind one, quiet":     {-4, localtable.Claims{Acquired: 1, Refused: 3}, tally{middleware.OutcomeHandlerFailed: 1}, fates{ran: 3, failed: 1, behind: 3, hidden: hidden}},
		"behind one, no lines":  {-3, localtable.Claims{}, nil, fates{ran: 3, failed: 1, behind: 2, hidden: hidden, unclear: unclear}},
		"behind one, lost":      {-2, localtable.Claims{Acquired: 4}, tally{lock.OutcomeLost: 1, middleware.OutcomeHandlerFailed: 1}, fates{ran: 3, failed: 1, behind: 1, unclear: unclear}},
		"not begun":             {2, localtable.Claims{Acquired: 3}, tally{middleware.OutcomeHandlerFailed: 1, middleware.OutcomeNotBegun: 1}, fates{ran: 2, failed: 1, notBegun: 1}},
		"all ran":               {0, localtable.Claims{Acquired: 4}, nil, fates{ran: 4}},
		"ran with inner locks":  {0, localtable.Claims{Acquired: 8}, nil, fates{ran: 4}},
		"another store":         {0, localtable.Claims{}, nil, fates{ran: 4, hidden: hidden}},
		"another store, debug":  {0, localtable.Claims{}, tally{lock.OutcomeAcquired: 4}, fates{ran: 4}},
		"skipped":               {0, localtable.Claims{Acquired: 1, Refused: 3}, tally{lock.OutcomeAlreadyCompleted: 2, lock.OutcomeStale: 1}, fates{ran: 1, skipped: 3, visible: true}},
		"skipped, quiet":        {0, localtable.Claims{Acquired: 1, Refused: 3}, nil, fates{ran: 4, hidden: hidden}},
		"inner locks, quiet":    {0, localtable.Claims{Acquired: 4, Refused: 2}, nil, fates{ran: 4, hidden: hidden}},
		"held":                  {2, localtable.Claims{Acquired: 2, Refused: 2}, tally{lock.OutcomeHeld: 2}, fates{ran: 2, held: 2, visible: true}},
		"held, and skipped":     {0, localtable.Claims{Acquired: 2, Refused: 2}, tally{lock.OutcomeHeld: 2}, fates{ran: 2, skipped: 2, visible: true}},
		"held, failed":          {2, localtable.Claims{Acquired: 3, Refused: 1}, tally{lock.OutcomeHeld: 1, middleware.OutcomeHandlerFailed: 1}, fates{ran: 2, held: 1, failed: 1, visible: true}},
		"all failed":            {4, localtable.Claims{Acquired: 4}, tally{middleware.OutcomeHandlerFailed: 4}, fates{failed: 4}},
		"ignored":               {0, localtable.Claims{Acquired: 3}, tally{middleware.OutcomeIgnored: 1}, fates{ran: 3, ignored: 1}},
		"interrupted":           {0, localtable.Claims{Acquired: 4}, tally{lock.OutcomeInterrupted: 1}, fates{ran: 4, unclear: unclear}},
		"whose line is unknown": {2, localtable.Claims{Acquired: 3, Refused: 1}, tally{lock.OutcomeAlreadyCompleted: 1, middleware.OutcomeHandlerFailed: 1}, fates{ran: 1, skipped: 1, failed: 2, unclear: unclear, visible: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := eventsource.SQS
			if c.failed < 0 {
				source = eventsource.Kinesis
			}
			v := &delivery{records: []*record{{event: &event{batch: &batch{source: source}}}, {}, {}, {}}, failed: make([]*record, max(c.failed, -c.failed)), result: locallambda.Result{Outcome: locallambda.Succeeded}}
			c.want.delivered = 4
			if got := v.fatesOf(c.log, c.claims); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			v.result.Log = make([]string, locallambda.MaxLog)
			if !v.fatesOf(c.log, c.claims).unclear {
				t.Error("the end of a log was cut off, and yet its lines are counted")
			}
		})
	}
}

// TestInterruptedBefore: the log does not tell whether the handler ran, unless
// for a record that was not interrupted.
func TestInterruptedBefore(t *testing.T) {
	t.Parallel()
	succeeded, failed := locallambda.Result{Outcome: locallambda.Succeeded}, locallambda.Result{Outcome: locallambda.Failed, ErrorType: "InterruptedError"}
	for name, c := range map[string]struct {
		result            locallambda.Result
		acquired, records int
		want              string
	}{
		"one":                  {succeeded, 1, 1, "succeeded (interrupted before)"},
		"failed":               {failed, 1, 1, "failed (interrupted before)"},
		"all of a batch":       {succeeded, 2, 2, "succeeded (interrupted before)"},
		"one was skipped":      {succeeded, 2, 3, "succeeded (interrupted before)"},
		"another one acquired": {succeeded, 3, 3, "ran (taken over)"},
		"another store":        {succeeded, 0, 2, "succeeded (interrupted before)"},
	} {
		log := tally{lock.OutcomeTakenOver: 1, lock.OutcomeInterrupted: min(c.records, 2)}
		if got := outcomeOf(c.result, log, localtable.Claims{Acquired: c.acquired}, c.records).String(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestWithoutALock: a function that logs at level DEBUG tells that its handler
// ran without a lock.
func TestWithoutALock(t *testing.T) {
	t.Parallel()
	r := locallambda.Result{Outcome: locallambda.Succeeded, Log: []string{"level=DEBUG msg=\"lambdalock: no_lock\""}}
	if got := outcomeOf(r, logged(r.Log), localtable.Claims{}, 1).String(); got != "ran (no lock)" {
		t.Errorf("got %q", got)
	}
}

// TestWhyTheLogIsSilent: with several invocations in one environment, no level
// of the log tells the records apart.
func TestWhyTheLogIsSilent(t *testing.T) {
	t.Parallel()
	for shared, want := range map[bool]string{true: "--concurrency", false: "level INFO"} {
		var out strings.Builder
		f := fates{shared: shared}
		f.add(fates{delivered: 1, failed: 1, hidden: true})
		f.print(&out, "message", 0)
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}

// TestLongWaitIsTold: 18 minutes without a line look like a command that hangs.
func TestLongWaitIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		f := &fake{function: func(c call) (string, error) {
			if c.n == 0 {
				return "", errFunction
			}
			return `{"batchItemFailures":[]}`, nil
		}}
		all := []*event{messages("a")}
		c := &Command{Copies: 1, Environments: 1, Concurrency: 2, Timeout: 90 * time.Minute, Scale: 30, Source: sourceSQS}
		d := &deliverer{Command: c, platform: f, table: &localtable.Table{}, report: newReport(&out, all, false)}
		d.all(t.Context(), d.sources(all))
		if got := out.String(); strings.Count(got, "the next message is visible in 18m0s") != 1 {
			t.Errorf("printed\n%s", got)
		}
	})
}

package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// fake is a platform whose function is a Go function. It has as many
// environments as it takes.
type fake struct {
	function func(call) (answer string, err error) // the log may follow the answer
	took     time.Duration                         // of each invocation
	sqs      *sqsAPI                               // that it may ask

	mu    sync.Mutex
	calls []call
}

// call is one invocation.
type call struct {
	at      time.Duration // since the beginning
	ids     []string      // of its records
	counts  []string      // their ApproximateReceiveCount
	handles []string      // by which SQS knows them
	payload string
	request string // its id
	n       int    // how many invocations there were before
}

var begun = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of each synctest bubble

var errFunction = errors.New("the function failed")

func (f *fake) Attempt(ctx context.Context, in locallambda.Invocation) (locallambda.Result, error) {
	c := call{at: time.Since(begun), payload: string(in.Payload), request: in.RequestID}
	if b := readBatch(in.Payload); b != nil {
		c.ids = ids(b.records)
		for _, r := range b.records {
			var attributes map[string]string
			_ = json.Unmarshal(r.body["attributes"], &attributes) // of a message
			c.counts = append(c.counts, attributes["ApproximateReceiveCount"])
			var handle string
			_ = json.Unmarshal(r.body["receiptHandle"], &handle) // of a message
			c.handles = append(c.handles, handle)
		}
	}
	f.mu.Lock()
	c.n = len(f.calls)
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	if in.Queued != nil {
		in.Queued()
	}
	r := locallambda.Result{RequestID: cmp.Or(in.RequestID, fmt.Sprint(c.n)), Environment: 1, Outcome: locallambda.Succeeded, TraceID: fmt.Sprint("Root=", c.n), Started: time.Now()}
	select {
	case <-time.After(f.took):
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	answer, err := f.function(c)
	answer, lines, _ := strings.Cut(answer, "\n")
	r.Ended, r.Payload, r.Log = time.Now(), []byte(answer), strings.Split(lines, "\n")
	if err != nil {
		r.Outcome, r.ErrorType, r.ErrorMessage = locallambda.Failed, "errorString", err.Error()
	}
	if answer == "skipped" {
		r.Log, r.Payload = []string{"INFO lambdalock: held key=k requests=1"}, nil
	}
	if strings.HasPrefix(answer, "held") {
		r.Outcome, r.ErrorType, r.Log = locallambda.Failed, "HeldError", []string{"INFO lambdalock: held key=k requests=1"}
	}
	return r, nil
}

// deliver runs a command's sources with a fake function, in fake time.
func (f *fake) deliver(t *testing.T, c Command, events ...*event) (*report, error) {
	t.Helper()
	c.Copies, c.Environments, c.Concurrency = max(c.Copies, 1), max(c.Environments, 1), max(c.Concurrency, 1)
	c.Timeout = 3 * time.Second
	if c.Scale == 0 {
		c.Scale = 1
	}
	if err := errors.Join(c.checkFlags(), c.checkEvents(events)); err != nil {
		return nil, err
	}
	var r *report
	synctest.Test(t, func(t *testing.T) {
		r = newReport(io.Discard, events, false)
		d := &deliverer{Command: &c, platform: f, table: &localtable.Table{}, report: r, sqs: f.sqs}
		d.all(t.Context(), d.sources(events))
	})
	return r, r.summary()
}

// log returns when the records were delivered, as "1s a b".
func (f *fake) log() []string {
	var all []string
	for _, c := range f.calls {
		all = append(all, fmt.Sprint(c.at, " ", strings.Join(c.ids, " ")))
	}
	return all
}

func (f *fake) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := f.log(); !slices.Equal(got, want) {
		t.Errorf("deliveries\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// messages returns an event with these messages: an id, and the message group
// behind a slash.
func messages(ids ...string) *event {
	var records []string
	for _, id := range ids {
		id, g, fifo := strings.Cut(id, "/")
		attributes := `"ApproximateReceiveCount":"1"`
		if fifo {
			attributes += fmt.Sprintf(`,"MessageGroupId":%q`, g)
		}
		records = append(records, fmt.Sprintf(`{"messageId":%q,"receiptHandle":"first","body":"do %[1]s","eventSource":"aws:sqs","attributes":{%s}}`, id, attributes))
	}
	return parsed(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

// stream returns an event with these records: a sequence number, and the shard
// behind a slash.
func stream(ids ...string) *event {
	var records []string
	for _, id := range ids {
		id, shard, _ := strings.Cut(id, "/")
		records = append(records, fmt.Sprintf(`{"eventID":"%s:%s","eventSource":"aws:kinesis","kinesis":{"sequenceNumber":%q}}`, shard, id, id))
	}
	return parsed(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

func parsed(text string) *event {
	return &event{name: "event.json", payload: []byte(text), batch: readBatch([]byte(text)), api: readAPI([]byte(text))}
}

// failing returns a function that answers that these records failed.
func failing(ids ...string) func(call) (string, error) {
	return func(c call) (string, error) {
		var items []string
		for _, id := range c.ids {
			if slices.Contains(ids, id) {
				items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, id))
			}
		}
		return `{"batchItemFailures":[` + strings.Join(items, ",") + `]}`, nil
	}
}

// TestQueueOfSeveralFiles: messages of several events share a batch. One that
// failed is received again when the visibility timeout, six times the
// function's, has passed since it was received, and the fifth time is the last.
func TestQueueOfSeveralFiles(t *testing.T) {
	t.Parallel()
	f := &fake{function: failing("b"), took: time.Second}
	bare := parsed(`{"messageId":"c","eventSource":"aws:sqs"}`)
	r, err := f.deliver(t, Command{Source: sourceSQS}, messages("a", "b"), bare)
	f.expect(t, "0s a b c", "18s b", "36s b", "54s b", "1m12s b")
	if err == nil || !strings.Contains(err.Error(), "1 of 2 messages: b") || strings.Join(r.letters, "") != "event.json (message b), to the dead-letter queue after 5 receives" {
		t.Errorf("%v, given up %q", err, r.letters)
	}
	if last := f.calls[4]; last.counts[0] != "5" || strings.Contains(last.payload, `"first"`) {
		t.Errorf("the last receive is %s", last.payload)
	}
}

// TestScaledVisibility: --scale shortens what is left of the visibility timeout
// when the function has ended, and not the function.
func TestScaledVisibility(t *testing.T) {
	t.Parallel()
	f := &fake{function: failing("a"), took: time.Second}
	_, _ = f.deliver(t, Command{Source: sourceSQS, Scale: 17, Attempts: 2}, messages("a"))
	f.expect(t, "0s a", "2s a")
}

// TestHeldReceivesDoNotCount: what only the shortened wait made fail does
// not count as a receive, until the real visibility timeout is over.
func TestHeldReceivesDoNotCount(t *testing.T) {
	t.Parallel()
	held := func(c call) (string, error) { return "held", nil }
	for name, c := range map[string]struct {
		cmd  Command
		e    *event
		want []string
	}{
		"queue":    {Command{Source: sourceSQS, Scale: 9, Attempts: 2}, messages("a"), []string{"0s a", "2s a", "6s a", "11s a", "16s a", "18s a"}},
		"attempts": {Command{Source: sourceKinesis, Scale: 4, Attempts: 3}, stream("1"), []string{"0s 1", "500ms 1", "1.5s 1", "2s 1", "3s 1", "5s 1", "6s 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: held}
			r, _ := f.deliver(t, c.cmd, c.e)
			f.expect(t, c.want...)
			if len(r.letters) != 1 {
				t.Errorf("given up: %q", r.letters)
			}
			if n := f.calls[len(f.calls)-1].counts[0]; c.e.batch.source == eventsource.SQS && n != "2" {
				t.Errorf("the last receive is number %s", n)
			}
		})
	}
	t.Run("a batch is not split for a lock", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		f.function = func(c call) (string, error) { return map[bool]string{true: "held"}[c.n == 0], nil }
		_, _ = f.deliver(t, Command{Source: sourceKinesis, Bisect: true}, stream("1", "2"))
		f.expect(t, "0s 1 2", "1s 1 2")
	})
	t.Run("a message that did not wait", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		f.function = func(c call) (string, error) {
			switch c.n {
			case 0:
				return "", errFunction
			case 1:
				return "", nil
			}
			return "held", nil
		}
		r, _ := f.deliver(t, Command{Source: sourceFIFO, BatchSize: 1, Attempts: 2, Scale: 9}, messages("a/g", "b/g"))
		f.expect(t, "0s a", "2s a", "2s b", "4s b", "8s b", "13s b", "18s b", "20s b")
		if len(r.letters) != 1 {
			t.Errorf("given up: %q", r.letters)
		}
	})
	t.Run("a stream waits for a lock", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		f.function = func(c call) (string, error) {
			if c.at < time.Hour {
				return "held", nil
			}
			return "", nil
		}
		if _, err := f.deliver(t, Command{Source: sourceKinesis, Scale: 30}, stream("1")); err != nil {
			t.Error(err)
		}
	})
}

// TestSkippedTooEarly: a redelivery that was acknowledged because of a lock,
// after a shortened wait, comes again. After the real wait the source would
// acknowledge it as well.
func TestSkippedTooEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		e      *event
		until  time.Duration // the lock is held
		want   []string
		open   int
	}{
		"queue":            {sourceSQS, messages("a"), 5 * time.Second, []string{"0s a", "2s a", "6s a"}, 0},
		"queue, for long":  {sourceSQS, messages("a"), time.Hour, []string{"0s a", "2s a", "6s a", "11s a", "16s a", "18s a"}, 1},
		"stream":           {sourceKinesis, stream("1"), 500 * time.Millisecond, []string{"0s 1", "222.222222ms 1", "666.666666ms 1"}, 0},
		"stream, for long": {sourceKinesis, stream("1"), time.Hour, []string{"0s 1", "222.222222ms 1", "666.666666ms 1", "1.555555554s 1", "2s 1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: func(call call) (string, error) {
				switch {
				case call.n == 0:
					return "", errFunction
				case call.at < c.until:
					return "skipped", nil
				}
				return "", nil
			}}
			r, _ := f.deliver(t, Command{Source: c.source, Scale: 9}, c.e)
			f.expect(t, c.want...)
			if len(r.missing()) != c.open || len(r.letters) != 0 {
				t.Errorf("not completed: %q, given up: %q", r.missing(), r.letters)
			}
		})
	}
}

// TestManyDeadLetters: the list is cut, the count is not, and what another
// delivery completed is a dead letter nevertheless.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	all := make([]string, 30)
	for i := range all {
		all[i] = fmt.Sprint("m", i)
	}
	f := &fake{function: func(c call) (string, error) {
		if c.n < 3 {
			return "", errFunction
		}
		return "", nil
	}}
	r, err := f.deliver(t, Command{Source: sourceSQS, Attempts: 1, Copies: 2}, messages(all...))
	if err == nil || !strings.Contains(err.Error(), "given up, although another delivery completed it: event.json (message m0)") || len(r.missing()) != 0 {
		t.Error(err)
	}
	var out strings.Builder
	r.out = &out
	_ = r.summary()
	if n := strings.Count(out.String(), "given up: event.json"); n != longestList || !strings.Contains(out.String(), "given up: and 10 more\n") {
		t.Errorf("%d lines\n%s", n, out.String())
	}
	panel := r.timeline(&Command{}).Panels[0]
	if !panel.Bad || panel.Caption != "not completed: 0 events; given up: 30" {
		t.Errorf("%q", panel.Caption)
	}
}

// TestCrowdedTimeline: a timeline shows no more than a person can tell apart.
func TestCrowdedTimeline(t *testing.T) {
	t.Parallel()
	f := &fake{function: failing("1")}
	r, _ := f.deliver(t, Command{Source: sourceKinesis, BatchSize: 1, Copies: maxDrawn}, stream("1", "2"))
	panel := r.timeline(&Command{}).Panels[0]
	drawn := 0
	for _, lane := range panel.Lanes {
		drawn += len(lane.Spans)
	}
	if drawn != maxDrawn || !strings.HasSuffix(panel.Title, "2005 deliveries of 1 event, the first 2000 drawn") {
		t.Errorf("%s: %d spans", panel.Title, drawn)
	}
	r.given(r.begun, r.begun, r.events[0].records())
	if r.drawn != maxDrawn {
		t.Error("what is given up is drawn beyond that")
	}
}

// TestFairQueue: the message groups of a standard queue have no order.
func TestFairQueue(t *testing.T) {
	t.Parallel()
	text := `{"messageId":"a","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q%s","attributes":{"MessageGroupId":"g"}}`
	for suffix, want := range map[string]string{"": sourceSQS, ".fifo": sourceFIFO} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := parsed(fmt.Sprintf(text, suffix)).source(); got != want {
				t.Errorf("--source %s, want %s", got, want)
			}
		})
	}
}

// TestReadBatch: what is not a batch is an event as a whole.
func TestReadBatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"Records":[{"messageId":"a","eventSource":"aws:sqs"}]}`:                                                                "[a]",
		`{"messageId":"a","eventSource":"aws:sqs"}`:                                                                              "[a]",
		`{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"SequenceNumber":"7"}}]}`:                                         "[7]",
		`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"eventSource":"aws:sqs"}]}`:                                      "",
		`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"eventSource":"aws:s3"}]}`:                                       "",
		`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"eventSource":"aws:kinesis","kinesis":{"sequenceNumber":"1"}}]}`: "",
		`{"Records":[]}`: "", `{"Records":7}`: "", `{"Records":[7]}`: "", `{}`: "", `[]`: "", `7`: "", `null`: "",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got := ""
			if b := readBatch([]byte(text)); b != nil {
				got = fmt.Sprint(ids(b.records))
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestLargeMessages: a batch is at most as large as an event may be.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	large := func(id string) string {
		return fmt.Sprintf(`{"messageId":%q,"eventID":"s:%[1]s","body":%q,"eventSource":"%%s","kinesis":{"sequenceNumber":%[1]q}}`, id, strings.Repeat("x", 2_500_000))
	}
	text := `{"Records":[` + large("1") + `,` + large("2") + `,` + large("3") + `]}`
	for source, from := range map[string]string{sourceSQS: eventsource.SQS, sourceKinesis: eventsource.Kinesis} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: failing(), took: time.Second}
			_, _ = f.deliver(t, Command{Source: source}, parsed(strings.ReplaceAll(text, "%s", from)))
			f.expect(t, "0s 1 2", "1s 3")
			for _, c := range f.calls {
				if len(c.payload) > maxEvent {
					t.Errorf("%d bytes", len(c.payload))
				}
			}
		})
	}
	t.Run("receipt handles", func(t *testing.T) {
		t.Parallel()
		var records []string
		for i := range 700 {
			records = append(records, fmt.Sprintf(`{"messageId":"%d","receiptHandle":"h","body":%q,"eventSource":"aws:sqs"}`, i, strings.Repeat("x", 10_000)))
		}
		f := &fake{function: failing()}
		_, _ = f.deliver(t, Command{Source: sourceSQS, BatchSize: 10_000}, parsed(`{"Records":[`+strings.Join(records, ",")+`]}`))
		if n := len(f.calls[0].payload); n > maxEvent || len(f.calls) != 2 {
			t.Errorf("%d batches, the first has %d bytes", len(f.calls), n)
		}
	})
}

// TestCopies: a standard queue delivers copies at the same time, in different
// batches; a FIFO queue and a shard deliver again what was completed.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		e      *event
		want   []string
	}{
		"standard": {sourceSQS, messages("a", "b"), []string{"0s a b", "0s a b"}},
		"fifo":     {sourceFIFO, messages("a/g", "b/g"), []string{"0s a b", "18s a b"}},
		"kinesis":  {sourceKinesis, stream("1", "2"), []string{"0s 1 2", "1s 1 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: failing(), took: time.Second}
			if c.source == sourceFIFO {
				f.took = 0
			}
			if _, err := f.deliver(t, Command{Source: c.source, Copies: 2, Environments: 2}, c.e); err != nil {
				t.Error(err)
			}
			f.expect(t, c.want...)
		})
	}
}

// TestThousandMessages: 1,000 messages in batches of 10, of which no more are
// under way than there are environments.
func TestThousandMessages(t *testing.T) {
	t.Parallel()
	all := make([]string, 1000)
	for i := range all {
		all[i] = fmt.Sprint("m", i)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	f := &fake{took: time.Second, function: func(c call) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range c.ids {
			seen[id]++
		}
		if c.n%7 == 0 && c.counts[0] == "1" {
			return "", errFunction
		}
		return "", nil
	}}
	if _, err := f.deliver(t, Command{Source: sourceSQS, Environments: 20, Shuffle: true}, messages(all...)); err != nil {
		t.Error(err)
	}
	at := map[time.Duration]int{}
	for _, c := range f.calls {
		if at[c.at]++; at[c.at] > 20 || len(c.ids) != 10 {
			t.Errorf("at %v the %d. batch has %d messages", c.at, at[c.at], len(c.ids))
		}
	}
	if len(seen) != 1000 || len(f.calls) != 115 {
		t.Errorf("%d messages in %d batches", len(seen), len(f.calls))
	}
}

// TestFIFO: a message that fails blocks its group, and only that, until it is
// visible again or in the dead-letter queue. What is behind it in its batch
// comes back with it.
func TestFIFO(t *testing.T) {
	t.Parallel()
	e := messages("a1/a", "b1/b", "a2/a", "c1/c", "b2/b", "a3/a")
	t.Run("in order", func(t *testing.T) {
		t.Parallel()
		f := &fake{function: failing("a1", "a2"), took: time.Second}
		r, _ := f.deliver(t, Command{Source: sourceFIFO, BatchSize: 2, Attempts: 2}, e)
		f.expect(t, "0s a1 a2", "1s b1 b2", "2s c1", "18s a1 a2", "36s a3")
		if len(r.letters) != 2 {
			t.Errorf("given up: %q", r.letters)
		}
	})
	t.Run("groups at the same time", func(t *testing.T) {
		t.Parallel()
		f := &fake{function: failing("a1"), took: time.Second}
		_, _ = f.deliver(t, Command{Source: sourceFIFO, Environments: 5, Attempts: 1}, e)
		slices.SortFunc(f.calls, func(a, b call) int { return strings.Compare(a.payload, b.payload) })
		f.expect(t, "0s a1 a2 a3", "0s b1 b2", "0s c1")
	})
	t.Run("groups in one batch", func(t *testing.T) {
		t.Parallel()
		f := &fake{function: failing(), took: time.Second}
		_, _ = f.deliver(t, Command{Source: sourceFIFO, Attempts: 1}, e)
		f.expect(t, "0s a1 a2 a3 b1 b2 c1")
	})
}

// TestShard: a shard goes on at the first record that failed, and what follows
// waits.
func TestShard(t *testing.T) {
	t.Parallel()
	whole := func(c call) (string, error) {
		if slices.Contains(c.ids, "30") {
			return "", errFunction
		}
		return "", nil
	}
	for name, c := range map[string]struct {
		cmd      Command
		function func(call) (string, error)
		want     []string
		given    int
	}{
		"poison":               {Command{Attempts: 3}, failing("30"), []string{"0s 10 20 30 100", "2s 30 100", "6s 30 100", "6s 200"}, 2},
		"default attempts":     {Command{BatchSize: 1}, failing("100"), []string{"0s 10", "0s 20", "0s 30", "0s 100", "2s 100", "6s 100", "14s 100", "29s 100", "29s 200"}, 1},
		"an error":             {Command{Attempts: 2}, whole, []string{"0s 10 20 30 100", "2s 10 20 30 100", "2s 200"}, 4},
		"bisect":               {Command{Attempts: 2, Bisect: true}, whole, []string{"0s 10 20 30 100", "0s 10 20", "0s 30 100", "0s 30", "2s 30", "2s 100", "2s 200"}, 1},
		"bisect and a partial": {Command{Attempts: 2, Bisect: true}, failing("30"), []string{"0s 10 20 30 100", "2s 30 100", "2s 30", "4s 30", "4s 100", "4s 200"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: c.function}
			c.cmd.Source = sourceKinesis
			if c.cmd.BatchSize == 0 {
				c.cmd.BatchSize = 4
			}
			r, _ := f.deliver(t, c.cmd, stream("100/s", "20/s"), stream("200/s", "30/s", "10/s"))
			f.expect(t, c.want...)
			if len(r.letters) != c.given {
				t.Errorf("given up: %q", r.letters)
			}
		})
	}
	t.Run("progress", func(t *testing.T) {
		t.Parallel()
		f := &fake{function: func(c call) (string, error) { return failing([]string{"1", "2", "2"}[c.n])(c) }}
		_, _ = f.deliver(t, Command{Source: sourceKinesis, Attempts: 2}, stream("1", "2"))
		f.expect(t, "0s 1 2", "2s 1 2", "6s 2")
	})
	t.Run("two shards", func(t *testing.T) {
		t.Parallel()
		f := &fake{function: failing("1"), took: time.Second}
		_, _ = f.deliver(t, Command{Source: sourceKinesis, Attempts: 2}, stream("1/s", "2/t"))
		slices.SortFunc(f.calls, func(a, b call) int { return strings.Compare(a.payload, b.payload) })
		f.expect(t, "0s 1", "3s 1", "0s 2")
	})
}

// TestBehindAFailedRecord: a stream delivers a completed record again if it is
// behind a failed one. It did not fail, and the log does not tell which it is.
func TestBehindAFailedRecord(t *testing.T) {
	t.Parallel()
	const failed, notBegun = "\nERROR lambdalock: handler_failed key=b", "\nWARN lambdalock: not_begun key=b error=\"1 of 4 records are returned for redelivery, the first of them: why\""
	run := func(lines string) (string, error) {
		f := &fake{function: func(c call) (string, error) {
			answer, _ := failing("2")(c)
			switch {
			case lines == "":
			case c.n == 0:
				answer += lines + strings.Repeat("\nDEBUG lambdalock: acquired key=a", 3)
			default:
				answer += lines + "\nINFO lambdalock: already_completed key=a"
			}
			return answer, nil
		}}
		r, err := f.deliver(t, Command{Source: sourceKinesis, Attempts: 2}, stream("1", "2", "3", "4"))
		var out strings.Builder
		r.out = &out
		_ = r.summary()
		return out.String(), err
	}
	for lines, want := range map[string]string{
		failed + notBegun: "failed in part 2   failed 0   events 1   not completed 1\nrecords delivered 7   ran 2   skipped 1   held 0   failed 2   not begun 2   given up 3\n",
		"":                "records delivered 7   ran or skipped 1   held or failed 2   returned with them 4   given up 3   (the function's log does not tell which",
	} {
		out, err := run(lines)
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant\n%s", out, want)
		}
		if err == nil || err.Error() != "not completed: event.json (up to 3 of 4 records, the function's log does not tell which: 2 3 4)" {
			t.Error(err)
		}
	}
	if _, err := run(failed + strings.Replace(notBegun, "1 of 4", "2 of 4", 1)); err == nil || !strings.Contains(err.Error(), "(3 of 4 records: 2 3 4)") {
		t.Error(err)
	}
}

// TestSkippedInAFailedBatch: a batch that failed as a whole has a line for each
// record that was completed before.
func TestSkippedInAFailedBatch(t *testing.T) {
	t.Parallel()
	f := &fake{function: func(c call) (string, error) {
		return "\n" + strings.Repeat("INFO lambdalock: already_completed key=a\n", c.n), errFunction
	}}
	r, err := f.deliver(t, Command{Source: sourceSQS, Attempts: 2}, messages("a", "b"))
	if err == nil || err.Error() != "not completed: event.json (up to 2 of 2 messages, the function's log does not tell which: a b)" {
		t.Error(err)
	}
	if r.fates.skipped != 1 || r.fates.failed != 3 || r.counts[failed] != 2 {
		t.Errorf("%+v, %v", r.fates, r.counts)
	}
}

// TestPoisonIsNotCopied: what was given up does not come again.
func TestPoisonIsNotCopied(t *testing.T) {
	t.Parallel()
	f := &fake{function: failing("1")}
	r, _ := f.deliver(t, Command{Source: sourceKinesis, Attempts: 1, Bisect: true, Copies: 2}, stream("1", "2"))
	f.expect(t, "0s 1 2", "0s 1", "0s 2", "0s 2")
	if len(r.letters) != 1 {
		t.Errorf("given up: %q", r.letters)
	}
}

// TestWithoutPartialAnswers: without ReportBatchItemFailures what the function
// returns is not read, and the records that it returns are lost.
func TestWithoutPartialAnswers(t *testing.T) {
	t.Parallel()
	for source, e := range map[string]*event{sourceSQS: messages("1", "2"), sourceFIFO: messages("1/g", "2/g"), sourceKinesis: stream("1", "2")} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: failing("2")}
			r, err := f.deliver(t, Command{Source: source, IgnoreFailures: true}, e)
			f.expect(t, "0s 1 2")
			if len(r.letters) != 1 || !strings.HasSuffix(r.letters[0], ", lost") || err == nil || !strings.HasSuffix(err.Error(), ": 2)") {
				t.Errorf("%q, %v", r.letters, err)
			}
		})
	}
}

// TestReceiptHandles: each receive of a message has a handle of its own. So
// what the function asks SQS for concerns neither other messages nor later
// receives.
func TestReceiptHandles(t *testing.T) {
	t.Parallel()
	change := func(a *sqsAPI, handle string) { a.handler("").Change(handle, time.Minute) }
	remove := func(a *sqsAPI, handle string) { a.handler("").Delete(handle) }
	for name, c := range map[string]struct {
		cmd    Command
		e      *event
		asks   func(*sqsAPI, string) // in the first invocation, with its first handle
		failed map[int]string        // by invocation
		want   []string
	}{
		"another copy":    {Command{Copies: 2, Environments: 2}, messages("a"), change, map[int]string{0: "a", 1: "a"}, []string{"0s a", "0s a", "18s a", "1m0s a"}},
		"another message": {Command{}, messages("a", "b"), remove, map[int]string{0: "b"}, []string{"0s a b", "18s b"}},
		"a later receive": {
			Command{},
			parsed(`{"messageId":"a","receiptHandle":"first","eventSource":"aws:sqs"}`),
			change,
			map[int]string{0: "a", 1: "a"},
			[]string{"0s a", "1m0s a", "1m18s a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{sqs: newSQS()}
			f.function = func(call call) (string, error) {
				if call.n == 0 {
					c.asks(f.sqs, call.handles[0])
				}
				return failing(c.failed[call.n])(call)
			}
			c.cmd.Source = sourceSQS
			_, _ = f.deliver(t, c.cmd, c.e)
			f.expect(t, c.want...)
		})
	}
}

// TestMovedAway: a message that the function has moved to a dead-letter queue
// is not delivered again, and was not completed. The log shows it, or what the
// function has sent: a copy with the reason.
func TestMovedAway(t *testing.T) {
	t.Parallel()
	const line = `INFO lambdalock: moved to the dead-letter queue records=[b]`
	reason := map[string]sqslimits.Attribute{"ErrorMessage": {Type: "String", Text: "no order"}}
	for name, c := range map[string]struct {
		log   string
		trace string // of the delivery that sent
		sent  []sqslimits.Message
		want  string // moved
	}{
		"by the log":       {line, "", nil, "b"},
		"by the sends":     {"", "Root=0", []sqslimits.Message{{Body: "do b", Attributes: reason}}, "b"},
		"without a trace":  {"", "", []sqslimits.Message{{Body: "do b", Attributes: reason}}, "b"},
		"another delivery": {"", "Root=9", []sqslimits.Message{{Body: "do b", Attributes: reason}}, ""},
		"by both":          {line, "Root=0", []sqslimits.Message{{Body: "do b", Attributes: reason}}, "b"},
		"one by each":      {line, "Root=0", []sqslimits.Message{{Body: "do b", Attributes: reason}, {Body: "do a", Attributes: reason}}, "a b"},
		"other messages":   {"", "Root=0", []sqslimits.Message{{Body: "do b"}, {Body: "other", Attributes: reason}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{sqs: newSQS()}
			f.function = func(call) (string, error) {
				for _, m := range c.sent {
					f.sqs.handler(c.trace).Send(&m)
				}
				return "{}\n" + c.log, nil
			}
			r, err := f.deliver(t, Command{Source: sourceSQS}, messages("a", "b"))
			f.expect(t, "0s a b")
			var letters []string
			for id := range strings.FieldsSeq(c.want) {
				letters = append(letters, "event.json (message "+id+"), to the dead-letter queue by the function")
			}
			if slices.Sort(r.letters); !slices.Equal(r.letters, letters) || len(r.missing()) != min(len(letters), 1) || (err == nil) != (letters == nil) {
				t.Errorf("%v, given up %q, want %q", err, r.letters, letters)
			}
			if r.fates.failed != len(letters) || r.givenUp != len(letters) {
				t.Errorf("%d failed, %d given up, want %d", r.fates.failed, r.givenUp, len(letters))
			}
		})
	}
}

// TestStaleIsNotCompleted: what was given up, and then skipped because a later
// event was completed, was not completed by that.
func TestStaleIsNotCompleted(t *testing.T) {
	t.Parallel()
	const moved = "{}\nINFO lambdalock: moved to the dead-letter queue records=[b]"
	stale, skipped := "\nINFO lambdalock: stale key=k", "\nINFO lambdalock: already_completed key=k"
	fifo := Command{Source: sourceFIFO, Copies: 2}
	for name, c := range map[string]struct {
		cmd       Command
		e         *event
		n         int // the delivery that is stale
		otherwise string
		answer    string
		want      string
	}{
		"moved away":               {fifo, messages("b/g"), 1, moved, stale, "not completed: event.json (1 of 1 message: b)"},
		"moved away, and a batch":  {fifo, messages("a/g", "b/g"), 1, moved, skipped + stale, "not completed: event.json (up to 1 of 2 messages, the function's log does not tell which: b)"},
		"completed by another":     {fifo, messages("a/g", "b/g"), 1, moved, skipped + skipped, "given up, although another delivery completed it: event.json (message b), to the dead-letter queue by the function"},
		"not given up":             {fifo, messages("a/g", "b/g"), 0, "", stale, "<nil>"},
		"failed after the last":    {Command{Source: sourceS3, Attempts: 1, Copies: 2}, parsed(`{"Records":[{"eventSource":"aws:s3"}]}`), 0, "", stale, "not completed: event.json"},
		"failed before the latest": {Command{Source: sourceS3, Attempts: 2}, parsed(`{"Records":[{"eventSource":"aws:s3"}]}`), 1, "", stale, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			f.function = func(call call) (string, error) {
				switch {
				case call.n == c.n:
					return c.answer, nil
				case c.cmd.Source == sourceS3:
					return "", errFunction
				}
				return c.otherwise, nil
			}
			if _, err := f.deliver(t, c.cmd, c.e); fmt.Sprint(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestS3: Lambda makes two more attempts, after 1 and 2 minutes.
func TestS3(t *testing.T) {
	t.Parallel()
	const notification, array = `{"Records":[{"eventSource":"aws:s3"}]}`, `[{"order":17},{"order":18}]`
	for name, c := range map[string]struct {
		source   string
		payload  string
		attempts int
		want     []string
	}{
		"default":           {sourceS3, notification, 0, []string{"0s ", "1m0s ", "3m0s "}},
		"one retry":         {sourceS3, notification, 2, []string{"0s ", "1m0s "}},
		"none":              {sourceS3, notification, 1, []string{"0s "}},
		"bus":               {sourceBus, array, 0, []string{"0s ", "2s ", "6s ", "14s ", "30s ", "1m2s "}},
		"bus, one event":    {sourceBus, `{"Data":17,"SystemMetadata":{"aws:DeliveryType":"LIVE"}}`, 2, []string{"0s ", "2s "}},
		"bus, one envelope": {sourceBus, `{"id":"1","source":"shop","detail-type":"order","detail":{}}`, 1, []string{"0s "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: func(call) (string, error) { return "", errFunction }}
			r, err := f.deliver(t, Command{Source: c.source, Attempts: c.attempts}, parsed(c.payload))
			f.expect(t, c.want...)
			for _, call := range f.calls[1:] {
				if (call.request == "0") != (c.source == sourceS3) { // a retry of a bus is another invocation
					t.Errorf("the retry has the request id %q", call.request)
				}
			}
			if given := fmt.Sprint(r.letters); err == nil || !strings.Contains(given, fmt.Sprintf("after %d attempt", len(c.want))) {
				t.Errorf("%v, %s", err, given)
			}
		})
	}
}

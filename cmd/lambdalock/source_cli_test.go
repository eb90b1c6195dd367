package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const httpEvent = `{"version":"2.0","rawPath":"/","headers":{"idempotency-key":"k"},"requestContext":{"apiId":"x","stage":"s","requestId":"first","domainName":"x.execute-api.eu-west-1.amazonaws.com","http":{"method":"POST","path":"/"}}}`

// TestSources: the command with real functions.
func TestSources(t *testing.T) {
	t.Parallel()
	queue := queueFile(t, "good", "once", "bad")
	single := file(t, "single.json", `{"messageId":"s","body":"single","eventSource":"aws:sqs","attributes":{"ApproximateReceiveCount":"1"}}`)
	for name, c := range map[string]struct {
		function string
		args     []string
		status   int
		rows     []string // nil: not checked
		within   []string
	}{
		"sqs": {
			"messages",
			[]string{"--source", "sqs", "--attempts", "2", queue, single},
			1,
			[]string{"failed in part", "failed in part"},
			[]string{"batch.json and 1 more", "2 of 4 messages failed: m1 m2", "received bad for the 2", "batch.json (message m2), to the dead-letter queue after 2 receives", "not completed 1"},
		},
		"a batch of its own": {"messages", []string{"--source", "sqs", single}, 0, []string{"ran"}, []string{"received single for the 1"}},
		"no partial answers": {"messages", []string{"--source", "sqs", "--no-report-batch-item-failures", queue}, 1, []string{"failed in part"}, []string{"and are lost", "batch.json (message m1), lost"}},
		"whole batches":      {"batches", []string{"--source", "sqs", "--attempts", "2", queue}, 1, []string{"failed", "failed"}, []string{"message m0), to the dead-letter queue"}},
		"copies": {
			"messages",
			[]string{"--source", "sqs", "-n", "2", "-c", "2", "--batch-size", "1", single},
			0, nil,
			[]string{"deliveries ", "not completed 0"},
		},
		"s3": {
			"",
			[]string{"--source", "s3", "-c", "2", s3Event(t, "bad.png")},
			1, nil,
			[]string{"to the on-failure destination or dead-letter queue after 3 attempts"},
		},
		"api": {
			"payments",
			[]string{"--source", "api", "-n", "2", "--timeout", "30s", "--client-timeout", "3s", file(t, "pay.json", httpEvent)},
			0, nil,
			[]string{"status 503", "status 409, Retry-After", "nobody waits any more for status 201", "not completed 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, c.function, append([]string{"--scale", "600"}, c.args...)...)
			r.Expect(t, c.status, c.within...)
			if rows := rows(r); c.rows != nil && !slices.Equal(rows, c.rows) {
				t.Errorf("rows %q, want %q\n%s", rows, c.rows, r)
			}
			if strings.Contains(summary(r), "ran 0") && strings.Contains(summary(r), "in part") {
				t.Errorf("some messages were handled, but it says %q", summary(r))
			}
		})
	}
}

// TestSourceMistakes: what does not fit the source is refused, with what to do.
func TestSourceMistakes(t *testing.T) {
	t.Parallel()
	sqs, s3 := queueFile(t, "good"), s3Event(t, "cat.png")
	fifo := file(t, "fifo.json", `{"Records":[{"messageId":"a","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q.fifo","attributes":{"MessageGroupId":"g"}}]}`)
	mixed := file(t, "mixed.json", `{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"messageId":"b","eventSource":"aws:sqs","attributes":{"MessageGroupId":"g"}}]}`)
	kinesis := file(t, "kinesis.json", `{"eventID":"s:1","eventSource":"aws:kinesis","kinesis":{"sequenceNumber":"1"}}`)
	http, other := file(t, "http.json", httpEvent), file(t, "other.json", `{"Records":[{"eventSource":"aws:sns"}],"requestContext":{}}`)
	number := file(t, "number.json", `7`)
	for want, args := range map[string][]string{
		"--async does not fit --source s3: --source s3 is asynchronous":            {"--source", "s3", "--async", s3},
		"--shuffle does not fit --source sqs-fifo: it keeps the order":             {"--source", "sqs-fifo", "--shuffle", fifo},
		"--batch-size does not fit --source api: it is for --source sqs, sqs-fifo": {"--source", "api", "--batch-size", "2", http},
		"--batch-size needs a source":                                              {"--batch-size", "2", sqs},
		"--attempts needs a source":                                                {"--attempts", "2", s3},
		"--no-report-batch-item-failures does not fit --source s3":                 {"--source", "s3", "--no-report-batch-item-failures", s3},
		"--bisect does not fit --source sqs: it is for --source kinesis":           {"--source", "sqs", "--bisect", sqs},
		"--client-timeout does not fit --source sqs: it is for --source api":       {"--source", "sqs", "--client-timeout", "1s", sqs},
		"--batch-size 11: at most 10 for --source sqs-fifo":                        {"--source", "sqs-fifo", "--batch-size", "11", fifo},
		"--attempts 4: at most 3 for --source s3":                                  {"--source", "s3", "--attempts", "4", s3},
		"other.json is not what --source custom-bus delivers, which is an array":   {"--source", "custom-bus", other},
		"--attempts 187: at most 186 for --source custom-bus":                      {"--source", "custom-bus", "--attempts", "187", file(t, "bus.json", `[{"order":17}]`)},
		"must be above zero":                                                                               {"--source", "sqs", "--attempts=-1", sqs},
		"kinesis.json is not what --source sqs delivers":                                                   {"--source", "sqs", kinesis},
		`messageId in each message, or one such message; use --source sqs-fifo`:                            {"--source", "sqs", fifo},
		"a messageId and attributes.MessageGroupId in each message, or one such message; use --source sqs": {"--source", "sqs-fifo", sqs},
		"mixed.json is not what --source sqs-fifo delivers":                                                {"--source", "sqs-fifo", mixed},
		"cat.png.json is not what --source kinesis delivers, which is {\"Records\":[…]} with eventSource \"aws:kinesis\" and kinesis.sequenceNumber in each record, or one such record; use --source s3": {"--source", "kinesis", s3},
		"http.json is not what --source s3 delivers":                                       {"--source", "s3", http},
		"the event of API Gateway, a Function URL or a load balancer, with requestContext": {"--source", "api", other},
		"number.json is not what --source s3 delivers":                                     {"--source", "s3", number},
		"number 1 is in " + kinesis + " already":                                           {"--source", "kinesis", kinesis, kinesis},
		`must be one of "","sqs"`:                                                          {"--source", "kafka", s3},
		"/nowhere/page.html":                                                               {"--html", "/nowhere/page.html", s3},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, "", args...)
			if r.Status == 0 || !strings.Contains(r.Stderr, want) || strings.Contains(r.Stdout, "env") && !strings.Contains(r.Stdout, "Usage") {
				t.Errorf("status %d, no %q in\n%s", r.Status, want, r)
			}
		})
	}
}

// TestTimeline: the deliveries of a run are drawn under its rows, and in a
// page.
func TestTimeline(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.html")
	r := invoked(t, "messages", "--source", "sqs", "--scale", "600", "--attempts", "2", "--width", "80", "--html", page, queueFile(t, "good", "bad"))
	r.Expect(t, 1, "2 deliveries of 1 event", "given up   │", " x m1\n", "600 times shorter", "The same as a page for a browser: "+page)
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "behind --source sqs") {
		t.Errorf("%v\n%s", err, text)
	}
	_, drawn, _ := strings.Cut(r.Stdout, "behind --source")
	drawn, _, _ = strings.Cut(drawn, "The same as a page")
	for line := range strings.Lines(drawn) {
		if n := len([]rune(line)); n > 81 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestFunctionAsksSQS: a function brings a message back at once whose queue has
// a visibility timeout of an hour, or deletes it although it failed.
func TestFunctionAsksSQS(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct {
		status int
		want   string
	}{
		"at once": {0, "messages delivered 2   ran 1"},
		"never":   {1, "messages delivered 1   ran 0"},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			m := file(t, "message.json", `{"messageId":"m","receiptHandle":"h","body":"`+body+`","eventSource":"aws:sqs","attributes":{"ApproximateReceiveCount":"1"}}`)
			invoked(t, "visibility", "--source", "sqs", "--scale", "1", "--timeout", "10m", m).Expect(t, c.status, c.want)
		})
	}
}

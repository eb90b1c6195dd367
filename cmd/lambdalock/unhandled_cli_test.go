package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNotHandled: what Lambda reports as a success although nothing was handled
// is not called completed.
func TestNotHandled(t *testing.T) {
	t.Parallel()
	request := func(body string) string {
		return file(t, "pay.json", strings.Replace(httpEvent, `"rawPath"`, `"body":"`+body+`","rawPath"`, 1))
	}
	ten, twenty := request("10"), request("20")
	foreign := file(t, "foreign.json", `{"source":"aws.s3","detail-type":"Object Created","detail":{}}`)
	for name, c := range map[string]struct {
		function string
		args     []string
		status   int
		rows     []string // in any order
		within   []string
	}{
		"ignored": {
			"",
			[]string{foreign},
			1,
			[]string{"ignored"},
			[]string{"ignored 1   failed 0   events 1   not completed 1", "ignored: acknowledged without being handled", "not completed: " + foreign},
		},
		"another request": {
			"charges",
			[]string{ten, twenty},
			1,
			[]string{"ran", "refused (another request)"},
			[]string{"ran 1   skipped 0   refused 1   failed 0   events 2   not completed 1", "refused by the function"},
		},
		"another request to an API": {
			"charges",
			[]string{"--source", "api", ten, twenty},
			1,
			[]string{"ran", "refused (another request)"},
			[]string{"status 422", "not completed 1"},
		},
		"no key": {
			"charges",
			[]string{file(t, "anonymous.json", strings.Replace(httpEvent, "idempotency-key", "x", 1))},
			1,
			[]string{"refused"},
			[]string{"refused 1", "not completed 1"},
		},
		"no lock": {
			"optional",
			[]string{"-c", "3", file(t, "anonymous.json", strings.Replace(httpEvent, "idempotency-key", "x", 1))},
			0,
			[]string{"succeeded", "succeeded", "succeeded"},
			[]string{"deliveries 3   succeeded 3   failed 0", "no event failed; of 3 deliveries it is unknown whether the handler ran", "succeeded: whether the handler ran is unknown", "No lock was claimed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, c.function, c.args...)
			r.Expect(t, c.status, c.within...)
			rows := rows(r)
			slices.Sort(rows)
			if !slices.Equal(rows, c.rows) {
				t.Errorf("rows %q, want %q\n%s", rows, c.rows, r)
			}
			if strings.Contains(r.Stdout, "every event was completed") {
				t.Errorf("not every event was completed\n%s", r)
			}
		})
	}
}

// TestAnotherStore: if no request reached the table of the command, nothing is
// said about what ran.
func TestAnotherStore(t *testing.T) {
	t.Parallel()
	const line = "No lock was claimed in the table that this command gives the function"
	r := invoked(t, "elsewhere", "-c", "2", s3Event(t, "cat.png"))
	r.Expect(t, 0, line, "skipped (completed)")
	if strings.Contains(summary(r), "ran ") {
		t.Errorf("nobody knows what ran: %s", summary(r))
	}
	for _, function := range []string{"", "holder"} {
		if r := invoked(t, function, s3Event(t, "bad.png"), "--timeout", "1s"); strings.Contains(r.Stdout, line) {
			t.Errorf("%s", r)
		}
	}
}

// TestMessages: a second line counts the messages of batches, and no number is
// guessed.
func TestMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function string
		args     []string
		status   int
		want     string
	}{
		"all ran": {"messages", []string{queueFile(t, "a", "b")}, 0, "messages delivered 2   ran 2   skipped 0   held 0   failed 0   given up 0"},
		"some failed": {
			"messages",
			[]string{"--attempts", "2", "--source", "sqs", queueFile(t, "good", "once", "bad")},
			1,
			"messages delivered 5   ran 2   skipped 0   held 0   failed 3   given up 1",
		},
		"duplicates": {"messages", []string{"-c", "2", queueFile(t, "a", "b", "c")}, 0, "messages delivered 6   ran 3   skipped 3   held 0   failed 0   given up 0"},
		"ignored":    {"filter", []string{queueFile(t, "a", "odd")}, 1, "messages delivered 2   ran 1   skipped 0   ignored 1   held 0   failed 0   given up 0"},
		"quiet": {
			"quiet",
			[]string{"-c", "2", queueFile(t, "a", "b", "c")},
			0,
			"messages delivered 6   ran or skipped 6   held or failed 0   given up 0   (the function's log does not tell which; at level INFO it does, if each has a lock)",
		},
		"lost": {"messages", []string{"--source", "sqs", "--no-report-batch-item-failures", queueFile(t, "good", "bad")}, 1, "messages delivered 2   ran 1   skipped 0   held 0   failed 1   given up 1"},
		"stream": {
			"records",
			[]string{"--source", "kinesis", "--attempts", "2", file(t, "batch.json", `{"Records":[
		{"eventID":"shard:1","eventSource":"aws:kinesis","eventSourceARN":"arn","kinesis":{"partitionKey":"a","sequenceNumber":"1","data":"Z29vZA=="}},
		{"eventID":"shard:2","eventSource":"aws:kinesis","eventSourceARN":"arn","kinesis":{"partitionKey":"a","sequenceNumber":"2","data":"YmFk"}}]}`)},
			1,
			"records delivered 3   ran 1   skipped 0   held 0   failed 2   given up 1",
		},
		"no lock": {
			"answers",
			[]string{queueFile(t, "a")},
			0,
			"messages delivered 1   ran or skipped 1   held or failed 0   given up 0   (the function's log does not tell which; at level INFO it does, if each has a lock)",
		},
		"objects": {
			"objects",
			[]string{"--async", file(t, "objects.json", `{"Records":[
		{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"good","sequencer":"01"}}},
		{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"once","sequencer":"01"}}}]}`)},
			0,
			"records delivered 4   ran 1   skipped 1   held 0   failed 2   given up 0",
		},
		"Kafka": {
			"offsets",
			[]string{"-c", "2", file(t, "kafka.json", `{"eventSource":"aws:kafka","eventSourceArn":"arn:aws:kafka:eu-west-1:1:cluster/c/1","records":{
		"t-0":[{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"aw==","value":"dg=="},{"topic":"t","partition":0,"offset":2,"timestamp":1,"key":"aw==","value":"dg=="}],
		"t-1":[{"topic":"t","partition":1,"offset":1,"timestamp":1,"key":"bA==","value":"dg=="}]}}`)},
			0,
			"records delivered 6   ran 3   skipped 3   held 0   failed 0   given up 0",
		},
		"Kafka with partial answers": {
			"partial answers",
			[]string{"--async", file(t, "partial.json", `{"eventSource":"aws:kafka","eventSourceArn":"arn:aws:kafka:eu-west-1:1:cluster/c/1","records":{
		"t-0":[{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"aw==","value":"dg=="},{"topic":"t","partition":0,"offset":2,"timestamp":1,"key":"aw==","value":"dg=="}]}}`)},
			0,
			"records delivered 4   ran 2   skipped 1   held 0   failed 1   given up 0",
		},
		"Kafka with partial answers, once": {
			"partial answers",
			[]string{file(t, "once.json", `{"eventSource":"aws:kafka","eventSourceArn":"arn:aws:kafka:eu-west-1:1:cluster/c/1","records":{
		"t-0":[{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"aw==","value":"dg=="},{"topic":"t","partition":0,"offset":2,"timestamp":1,"key":"aw==","value":"dg=="}]}}`)},
			1,
			"records delivered 2   ran 1   skipped 0   held 0   failed 1   given up 0",
		},
		"no batch": {"", []string{s3Event(t, "cat.png")}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, c.function, append([]string{"--timeout", "1m", "--scale", "12000"}, c.args...)...) // a store has a tenth of 3 s to answer a claim
			r.Expect(t, c.status)
			if got := messages(r); got != c.want {
				t.Errorf("got  %q\nwant %q\n%s", got, c.want, r)
			}
		})
	}
}

// TestInnerLocks: a message whose handler finds a lock of its own held is held,
// and did not fail.
func TestInnerLocks(t *testing.T) {
	t.Parallel()
	r := invoked(t, "partner", "--timeout", "1m", "--source", "sqs", "--scale", "1200", queueFile(t, "a", "b", "c", "d"))
	r.Expect(t, 0, "failed in part (held", "not completed 0")
	if line := messages(r); !regexp.MustCompile(`   ran 4   skipped 0   held [1-9][0-9]*   failed 0   given up 0$`).MatchString(line) {
		t.Errorf("%s\n%s", line, r)
	}
}

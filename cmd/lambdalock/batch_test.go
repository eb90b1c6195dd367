package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// queueFile returns a batch of messages with these bodies.
func queueFile(t *testing.T, bodies ...string) string {
	t.Helper()
	var records []string
	for i, body := range bodies {
		records = append(records, fmt.Sprintf(`{"messageId":"m%d","body":%q,"eventSource":"aws:sqs","attributes":{"ApproximateReceiveCount":"1"}}`, i, body))
	}
	return file(t, "batch.json", `{"Records":[`+strings.Join(records, ",")+`]}`)
}

// TestQueue: only the messages that a batch returns as failed are delivered
// again, and they are not completed.
func TestQueue(t *testing.T) {
	t.Parallel()
	t.Run("partial answer", func(t *testing.T) {
		t.Parallel()
		r := invoked(t, "messages", "--scale", "600", queueFile(t, "good", "once", "fine"))
		if rows := rows(r); !slices.Equal(rows, []string{"failed in part", "ran"}) {
			t.Errorf("rows %q", rows)
		}
		r.Expect(t, 0, "1 of 3 messages failed", "received once for the 1", "received once for the 2", "not completed 0")
		if n := strings.Count(r.Stderr, "received good"); n != 1 {
			t.Errorf("the good message came %d times\n%s", n, r)
		}
	})
	t.Run("poison message", func(t *testing.T) {
		t.Parallel()
		r := invoked(t, "messages", "--scale", "600", queueFile(t, "good", "bad"))
		r.Expect(t, 1, "1 of 2 messages failed", "received bad for the 5", "1 of 2 messages", "m1", "not completed 1")
	})
	t.Run("whole batch", func(t *testing.T) {
		t.Parallel()
		invoked(t, "messages", "--scale", "600", queueFile(t, "bad", "bad too")).Expect(t, 1, "received bad too for the 5", "not completed 1")
	})
	t.Run("async makes no difference", func(t *testing.T) {
		t.Parallel()
		invoked(t, "messages", "--async", "--scale", "600", queueFile(t, "bad")).Expect(t, 1, "received bad for the 5", "not completed 1")
	})
}

func TestStream(t *testing.T) {
	t.Parallel()
	batch := file(t, "batch.json", `{"Records":[
		{"eventID":"shard:1","eventSource":"aws:kinesis","eventSourceARN":"arn","kinesis":{"partitionKey":"a","sequenceNumber":"1","data":"Z29vZA=="}},
		{"eventID":"shard:2","eventSource":"aws:kinesis","eventSourceARN":"arn","kinesis":{"partitionKey":"a","sequenceNumber":"2","data":"YmFk"}}]}`)
	invoked(t, "records", "--scale", "600", batch).Expect(t, 1, "1 of 2 records returned", "not completed 1")
}

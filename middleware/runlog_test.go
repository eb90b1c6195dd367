package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// runLog is what the handlers of records did, in the order in which they began.
type runLog struct {
	mu        sync.Mutex
	began     []string
	at        []time.Time
	running   int
	mostAtOne int
}

func (l *runLog) begin(id string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.at = append(l.began, id), append(l.at, time.Now())
	l.running++
	l.mostAtOne = max(l.mostAtOne, l.running)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
	}
}

var errRecord = errors.New("the record is bad")

// act is a handler that takes 10 ms and ends as the text says.
func (l *runLog) act(ctx context.Context, id, text string) error {
	defer l.begin(id)()
	time.Sleep(10 * time.Millisecond)
	if _, ok := lock.FromContext(ctx); !ok {
		return errors.New("no lease")
	}
	switch text {
	case "fails":
		return errRecord
	case "panics":
		panic(errRecord)
	case "exits":
		runtime.Goexit()
	}
	return nil
}

func (l *runLog) sqs(ctx context.Context, m events.SQSMessage) error {
	return l.act(ctx, m.MessageId, m.Body)
}

func (l *runLog) kinesis(ctx context.Context, r events.KinesisEventRecord) error {
	id, does, _ := strings.Cut(string(r.Kinesis.Data), " ")
	return l.act(ctx, id, does)
}

func (l *runLog) dynamoDB(ctx context.Context, r events.DynamoDBEventRecord) error {
	return l.act(ctx, r.Change.SequenceNumber, r.EventName)
}

// message returns a message of a queue. Its handler does what the body says;
// see act.
func message(id, body string) events.SQSMessage {
	return events.SQSMessage{MessageId: id, Body: body, EventSourceARN: "arn:aws:sqs:us-east-2:123456789012:orders"}
}

// sqsBatch returns the event with these messages.
func sqsBatch(messages ...events.SQSMessage) events.SQSEvent {
	return events.SQSEvent{Records: messages}
}

// inGroup returns a message of a FIFO queue.
func inGroup(group string, m events.SQSMessage) events.SQSMessage {
	m.EventSourceARN += ".fifo"
	m.Attributes = map[string]string{"MessageGroupId": group, "SequenceNumber": fmt.Sprintf("%020d", len(m.MessageId)*1000+int(m.MessageId[len(m.MessageId)-1]))}
	return m
}

// kinesisBatch holds the records a1, a2, a3, b1, b2, b3 of one shard: two
// partition keys.
func kinesisBatch(does map[string]string) (e middleware.KinesisRecords) {
	for i, id := range []string{"a1", "b1", "a2", "b2", "a3", "b3"} {
		r := events.KinesisEventRecord{EventSourceArn: "arn:aws:kinesis:us-east-2:123456789012:stream/readings"}
		r.Kinesis.SequenceNumber = fmt.Sprint(100 + i)
		r.EventID = "shardId-000000000006:" + r.Kinesis.SequenceNumber
		r.Kinesis.PartitionKey, r.Kinesis.Data = id[:1], []byte(id+" "+does[id])
		e.Records = append(e.Records, r)
	}
	return e
}

// dynamoDBBatch holds one record for each text, with sequence numbers from 0
// and two keys by turns.
func dynamoDBBatch(does ...string) (e middleware.DynamoDBRecords) {
	for i, d := range does {
		r := events.DynamoDBEventRecord{EventName: d, EventSourceArn: "arn:aws:dynamodb:us-east-2:123456789012:table/orders/stream/2026-06-10T19:26:16.525"}
		r.Change.SequenceNumber = fmt.Sprint(i)
		r.Change.Keys = map[string]events.DynamoDBAttributeValue{"id": events.NewNumberAttribute(fmt.Sprint(i % 2))}
		e.Records = append(e.Records, r)
	}
	return e
}

// underDeadline gives a test fake time and the context of an invocation of 30
// s.
func underDeadline(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		test(t, ctx)
	})
}

// wantReturned checks which records the partial answer returns, in the JSON
// that Lambda gets.
func wantReturned(t *testing.T, answer any, err error, ids ...string) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	b := expect.Value(json.Marshal(answer))(t)
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(b, &a); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("the partial answer is %s, %v", b, err)
	}
	got := []string{}
	for _, f := range a.BatchItemFailures {
		got = append(got, f.ItemIdentifier)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("returned %q, want %q", got, ids)
	}
}

// wantAllReturned checks that a batch in which every record failed is an error,
// so that Lambda's metric Errors counts it, and that the partial answer, which
// Lambda ignores then, names every record all the same.
func wantAllReturned(t *testing.T, answer any, err error, ids ...string) {
	t.Helper()
	if batch, ok := err.(*middleware.BatchError); !ok {
		t.Errorf("%v, want a BatchError, which Lambda reports by that name", err)
	} else if batch.Records != len(ids) || len(batch.Failed) != len(ids) {
		t.Errorf("%d of %d records failed, want all of %d: %v", len(batch.Failed), batch.Records, len(ids), err)
	}
	wantReturned(t, answer, nil, ids...)
}

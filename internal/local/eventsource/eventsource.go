// Package eventsource has the rules by which AWS delivers events to a function:
// what is delivered when, what an answer or an error means, when a message or a
// record comes back, and when it is given up. It delivers nothing itself: its
// caller has the clock, the random numbers and the function, and reports what
// happened. So the caller also decides what AWS does not promise: which of the
// visible messages are received together, what is delivered twice, which answer
// gets lost.
package eventsource

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	// VisibilityTimeouts is how many times the function's timeout a message that
	// was received should stay invisible, see
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
	VisibilityTimeouts = 6
	// MaxReceiveCount is the least that AWS advises there.
	MaxReceiveCount = 5
	// QueueBatch is the default batch size for a queue, and the maximum for a FIFO
	// queue, see
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html.
	QueueBatch = 10
	// StreamBatch is the default batch size for a stream, see
	// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html.
	StreamBatch = 100
	// AsyncAttempts is how often an asynchronous invocation is made at most, see
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html.
	AsyncAttempts = 3
	// BusAttempts is how often a subscriber of a Custom Event Bus calls its target
	// by default, see
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html.
	BusAttempts = 6
)

// The event sources that read partial batch responses.
const (
	SQS      = "aws:sqs"
	Kinesis  = "aws:kinesis"
	DynamoDB = "aws:dynamodb"
)

// Record is what tells a record of a batch apart.
type Record struct {
	Source string
	ID     string // what a partial batch response calls it; empty: the source reads none
	Group  string // whose order is kept: the message group or the shard, if the record says
}

// Identify reads a record of an event.
func Identify(record []byte) Record {
	var r struct {
		EventSource, MessageID, EventID string
		Attributes                      map[string]string
		Kinesis, DynamoDB               struct{ SequenceNumber string }
	}
	if json.Unmarshal(record, &r) != nil {
		return Record{}
	}
	switch r.EventSource {
	case SQS:
		return Record{SQS, r.MessageID, r.Attributes["MessageGroupId"]}
	case Kinesis:
		shard, _, _ := strings.Cut(r.EventID, ":")
		return Record{Kinesis, r.Kinesis.SequenceNumber, shard}
	case DynamoDB:
		return Record{DynamoDB, r.DynamoDB.SequenceNumber, ""}
	}
	return Record{Source: r.EventSource}
}

// Failed returns the records that failed by the answer of a function, in the
// order of the batch. If Lambda cannot read the answer, or it names a record
// that is not in the batch, all failed, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
// A JSON string or number names none. A stream goes on at the lowest sequence
// number that is named, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func Failed[R any](source string, records []R, id func(R) string, answer []byte) []R {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || json.Valid(answer) && answer[0] != '{' {
		return nil
	}
	failures, err := Failures(answer)
	if err != nil {
		return records
	}
	named := map[string]bool{}
	for _, f := range failures {
		var name string
		if Member(f, "itemIdentifier", &name) != nil {
			return records
		}
		named[name] = true
	}
	var failed []R
	for i, r := range records {
		switch {
		case !named[id(r)]:
		case source == SQS:
			failed = append(failed, r)
		case failed == nil:
			failed = records[i:]
		}
	}
	for _, r := range records {
		delete(named, id(r))
	}
	if len(named) > 0 {
		return records
	}
	return failed
}

// Failures returns what a partial batch response lists.
func Failures(answer []byte) ([]json.RawMessage, error) {
	var failures []json.RawMessage
	err := Member(answer, "batchItemFailures", &failures)
	return failures, err
}

// Member decodes the member of an object that has exactly that name, if there
// is one. Lambda reads no batchItemFailures in another letter case, see
// https://github.com/awsdocs/aws-lambda-developer-guide/issues/320;
// encoding/json would.
func Member(object []byte, name string, v any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil || members[name] == nil {
		return err
	}
	return json.Unmarshal(members[name], v)
}

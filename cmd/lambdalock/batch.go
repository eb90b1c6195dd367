package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// batch is an event of a queue or a stream whose event source mapping has
// ReportBatchItemFailures: the function returns the records that failed, and
// they are delivered again.
type batch struct {
	stream bool                         // what follows a failed record is delivered again, too
	ids    []string                     // what a partial batch response calls the records
	bodies []map[string]json.RawMessage // of the records
	rest   map[string]json.RawMessage   // of the document
}

// readBatch returns nil if the payload is another kind of event.
func readBatch(payload []byte) *batch {
	b := &batch{}
	var known []struct {
		EventSource, MessageID string
		Kinesis, DynamoDB      struct{ SequenceNumber string }
	}
	if json.Unmarshal(payload, &b.rest) != nil || json.Unmarshal(b.rest["Records"], &b.bodies) != nil ||
		json.Unmarshal(b.rest["Records"], &known) != nil || len(known) == 0 {
		return nil
	}
	for _, r := range known {
		id := ""
		switch r.EventSource {
		case "aws:sqs":
			id = r.MessageID
		case "aws:kinesis":
			id, b.stream = r.Kinesis.SequenceNumber, true
		case "aws:dynamodb":
			id, b.stream = r.DynamoDB.SequenceNumber, true
		}
		if id == "" {
			return nil
		}
		b.ids = append(b.ids, id)
	}
	return b
}

// share says how many of the records these are.
func (b *batch) share(ids []string) string {
	what := "messages"
	if b.stream {
		what = "records"
	}
	return fmt.Sprintf("%d of %d %s", len(ids), len(b.ids), what)
}

// failed returns the records to deliver again after an answer, in the order of
// the batch. An answer that Lambda cannot read returns all of them, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
// A JSON string or number names no failures.
func (b *batch) failed(answer []byte) []string {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || json.Valid(answer) && answer[0] != '{' {
		return nil
	}
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if json.Unmarshal(answer, &a) != nil {
		return b.ids
	}
	var failed []string
	for _, f := range a.BatchItemFailures {
		if !slices.Contains(b.ids, f.ItemIdentifier) {
			return b.ids
		}
		failed = append(failed, f.ItemIdentifier)
	}
	first := slices.IndexFunc(b.ids, func(id string) bool { return slices.Contains(failed, id) })
	if b.stream && first >= 0 {
		return b.ids[first:]
	}
	return slices.DeleteFunc(slices.Clone(b.ids), func(id string) bool { return !slices.Contains(failed, id) })
}

// again returns the batch of the records that failed, or nil if none did.
func (b *batch) again(failed []string) *batch {
	next := &batch{stream: b.stream, rest: b.rest}
	for i, id := range b.ids {
		if slices.Contains(failed, id) {
			next.ids = append(next.ids, id)
			next.bodies = append(next.bodies, receivedAgain(b.bodies[i]))
		}
	}
	if len(next.ids) == 0 {
		return nil
	}
	return next
}

// receivedAgain counts the receives of a message, as SQS does.
func receivedAgain(body map[string]json.RawMessage) map[string]json.RawMessage {
	const count = "ApproximateReceiveCount"
	var attributes map[string]string
	_ = json.Unmarshal(body["attributes"], &attributes) // without them there is no count
	n, err := strconv.Atoi(attributes[count])
	if err != nil {
		return body
	}
	attributes[count] = strconv.Itoa(n + 1)
	body = maps.Clone(body)
	body["attributes"], _ = json.Marshal(attributes) // strings can be encoded
	return body
}

func (b *batch) payload() []byte {
	document := maps.Clone(b.rest)
	document["Records"], _ = json.Marshal(b.bodies) // they were decoded from JSON
	text, _ := json.Marshal(document)
	return text
}

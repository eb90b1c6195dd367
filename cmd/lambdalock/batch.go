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
// ReportBatchItemFailures: the function returns the records that failed, and they
// are delivered again.
type batch struct {
	stream  bool // what follows a failed record is delivered again, too
	records []batchRecord
	rest    map[string]json.RawMessage // of the document
}

type batchRecord struct {
	id   string // what a partial batch response calls it
	body map[string]json.RawMessage
}

// readBatch returns nil if the payload is another kind of event.
func readBatch(payload []byte) *batch {
	b := &batch{}
	var bodies []map[string]json.RawMessage
	var known []struct {
		EventSource, MessageID string
		Kinesis, DynamoDB      struct{ SequenceNumber string }
	}
	if json.Unmarshal(payload, &b.rest) != nil || json.Unmarshal(b.rest["Records"], &bodies) != nil ||
		json.Unmarshal(b.rest["Records"], &known) != nil || len(known) == 0 {
		return nil
	}
	for i, r := range known {
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
		b.records = append(b.records, batchRecord{id, bodies[i]})
	}
	return b
}

func (b *batch) ids() []string {
	ids := make([]string, len(b.records))
	for i, r := range b.records {
		ids[i] = r.id
	}
	return ids
}

// share says how many of the records these are.
func (b *batch) share(ids []string) string {
	what := "messages"
	if b.stream {
		what = "records"
	}
	return fmt.Sprintf("%d of %d %s", len(ids), len(b.records), what)
}

// failed returns the records to deliver again after an answer, in the order of the
// batch. An answer that Lambda cannot read returns all of them, see
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
		return b.ids()
	}
	known := b.ids()
	var failed []string
	for _, f := range a.BatchItemFailures {
		if !slices.Contains(known, f.ItemIdentifier) {
			return known
		}
		failed = append(failed, f.ItemIdentifier)
	}
	first := slices.IndexFunc(known, func(id string) bool { return slices.Contains(failed, id) })
	if b.stream && first >= 0 {
		return known[first:]
	}
	return slices.DeleteFunc(known, func(id string) bool { return !slices.Contains(failed, id) })
}

// again returns the batch of the records that failed, or nil if none did.
func (b *batch) again(failed []string) *batch {
	next := &batch{stream: b.stream, rest: b.rest}
	for _, r := range b.records {
		if slices.Contains(failed, r.id) {
			next.records = append(next.records, r.receivedAgain())
		}
	}
	if len(next.records) == 0 {
		return nil
	}
	return next
}

// receivedAgain counts the receives of a message, as SQS does.
func (r batchRecord) receivedAgain() batchRecord {
	const count = "ApproximateReceiveCount"
	var attributes map[string]string
	_ = json.Unmarshal(r.body["attributes"], &attributes) // without them there is no count
	n, err := strconv.Atoi(attributes[count])
	if err != nil {
		return r
	}
	attributes[count] = strconv.Itoa(n + 1)
	body := maps.Clone(r.body)
	body["attributes"], _ = json.Marshal(attributes) // strings can be encoded
	return batchRecord{r.id, body}
}

func (b *batch) payload() []byte {
	records := make([]map[string]json.RawMessage, len(b.records))
	for i, r := range b.records {
		records[i] = r.body
	}
	document := maps.Clone(b.rest)
	document["Records"], _ = json.Marshal(records) // they were decoded from JSON
	text, _ := json.Marshal(document)
	return text
}

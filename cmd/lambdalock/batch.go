package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// batch is an event of a queue or a stream, whose records succeed one by one: the
// function names those that failed, and they come again. The mapping is taken to have
// ReportBatchItemFailures.
type batch struct {
	stream  bool // what follows a failed record comes again too
	records []batchRecord
	rest    map[string]json.RawMessage // of the document
}

type batchRecord struct {
	id   string
	body map[string]json.RawMessage
}

// readBatch returns nil where the payload is no such event.
func readBatch(payload []byte) *batch {
	b := &batch{}
	var records []map[string]json.RawMessage
	if json.Unmarshal(payload, &b.rest) != nil || json.Unmarshal(b.rest["Records"], &records) != nil {
		return nil
	}
	for _, r := range records {
		id, stream := identify(r)
		if id == "" {
			return nil
		}
		b.stream = stream
		b.records = append(b.records, batchRecord{id, r})
	}
	if len(b.records) == 0 {
		return nil
	}
	return b
}

// identify returns what an answer calls a record; empty for other sources.
func identify(r map[string]json.RawMessage) (id string, stream bool) {
	var known struct {
		EventSource string
		MessageID   string
		Kinesis     struct{ SequenceNumber string }
		DynamoDB    struct{ SequenceNumber string }
	}
	text, _ := json.Marshal(r)
	if json.Unmarshal(text, &known) != nil {
		return "", false
	}
	switch known.EventSource {
	case "aws:sqs":
		return known.MessageID, false
	case "aws:kinesis":
		return known.Kinesis.SequenceNumber, true
	case "aws:dynamodb":
		return known.DynamoDB.SequenceNumber, true
	}
	return "", false
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

// failed returns the records that come again after an answer, in the order of the
// batch. An answer that Lambda cannot read returns all of them, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
// A text or a number names no failures.
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

// again returns the batch of what comes again after these have failed; nil if nothing
// does.
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
	var attributes map[string]json.RawMessage
	var count string
	if json.Unmarshal(r.body["attributes"], &attributes) != nil || json.Unmarshal(attributes["ApproximateReceiveCount"], &count) != nil {
		return r
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return r
	}
	attributes = maps.Clone(attributes)
	attributes["ApproximateReceiveCount"], _ = json.Marshal(strconv.Itoa(n + 1)) // a string has no error
	body := maps.Clone(r.body)
	body["attributes"], _ = json.Marshal(attributes) // it was decoded from JSON
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

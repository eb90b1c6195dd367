package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// record is what is delivered and completed as one: a message of a queue, a
// record of a stream, or an event that is neither.
type record struct {
	event *event
	// id is what a partial batch response calls it; empty: it is a whole event.
	id string
	// group is what keeps its order: a message group or a shard.
	group string
	body  map[string]json.RawMessage
	size  int // of the body, in bytes

	received int // so often before this delivery, as the source counts
	failures int // how many of its deliveries failed, of those that count
	copies   int // how often it will come again although it was completed
}

// batch is an event of a queue or a stream.
type batch struct {
	source  string // such as aws:sqs
	records []*record
	rest    map[string]json.RawMessage // of the document
}

// The event sources whose records are delivered in batches.
const (
	fromSQS      = "aws:sqs"
	fromKinesis  = "aws:kinesis"
	fromDynamoDB = "aws:dynamodb"
)

// identified is what tells the records of a batch apart.
type identified struct {
	EventSource, MessageID, EventID string
	Attributes                      map[string]string
	Kinesis, DynamoDB               struct{ SequenceNumber string }
}

// readBatch returns nil if the payload is another kind of event. A single
// record stands for an event with one.
func readBatch(payload []byte) *batch {
	b := &batch{}
	if json.Unmarshal(payload, &b.rest) != nil {
		return nil
	}
	var bodies []map[string]json.RawMessage
	var known []identified
	list, ok := b.rest["Records"]
	if !ok {
		list, b.rest = slices.Concat([]byte("["), payload, []byte("]")), nil
	}
	if json.Unmarshal(list, &bodies) != nil || json.Unmarshal(list, &known) != nil || len(known) == 0 {
		return nil
	}
	b.source = known[0].EventSource
	for i, k := range known {
		r := k.record()
		if r.id == "" || k.EventSource != b.source {
			return nil
		}
		text, _ := json.Marshal(bodies[i]) // it was decoded from JSON
		r.body, r.size = bodies[i], len(text)
		b.records = append(b.records, r)
	}
	return b
}

func (k *identified) record() *record {
	switch k.EventSource {
	case fromSQS:
		return &record{id: k.MessageID, group: k.Attributes["MessageGroupId"]}
	case fromKinesis:
		shard, _, _ := bytes.Cut([]byte(k.EventID), []byte(":"))
		return &record{id: k.Kinesis.SequenceNumber, group: string(shard)}
	case fromDynamoDB:
		return &record{id: k.DynamoDB.SequenceNumber}
	}
	return &record{}
}

// stream reports whether what follows a failed record is delivered again, too.
func (b *batch) stream() bool { return b.source != fromSQS }

// noun returns what the source calls its records.
func (b *batch) noun() string {
	if b.stream() {
		return "record"
	}
	return "message"
}

func ids(records []*record) []string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = r.id
	}
	return all
}

// share says how many of the records these are.
func (b *batch) share(n, of int) string {
	plural := "s"
	if of == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d of %d %s%s", n, of, b.noun(), plural)
}

// failures returns the records to deliver again after an answer, in the order
// of the batch. An answer that Lambda cannot read returns all of them, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
// A JSON string or number names no failures. A stream goes on at the lowest
// sequence number that is named, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func failures(records []*record, answer []byte, stream bool) []*record {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || json.Valid(answer) && answer[0] != '{' {
		return nil
	}
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if json.Unmarshal(answer, &a) != nil {
		return records
	}
	named := map[string]bool{}
	for _, f := range a.BatchItemFailures {
		named[f.ItemIdentifier] = true
	}
	var failed []*record
	for i, r := range records {
		if named[r.id] && stream {
			failed = records[i:]
			break
		}
		if named[r.id] {
			failed = append(failed, r)
		}
	}
	for _, r := range records {
		delete(named, r.id)
	}
	if len(named) > 0 {
		return records
	}
	return failed
}

// payload returns the event that delivers these records.
func payload(records []*record) []byte {
	document := map[string]json.RawMessage{}
	if b := records[0].event.batch; b != nil {
		maps.Copy(document, b.rest)
	}
	bodies := make([]map[string]json.RawMessage, len(records))
	for i, r := range records {
		bodies[i] = r.delivered()
	}
	document["Records"], _ = json.Marshal(bodies) // they were decoded from JSON
	text, _ := json.Marshal(document)
	return text
}

// delivered returns the body as the next delivery has it: SQS counts the
// receives of a message, and each one has a receipt handle of its own.
func (r *record) delivered() map[string]json.RawMessage {
	const count, handle = "ApproximateReceiveCount", "receiptHandle"
	var attributes map[string]string
	_ = json.Unmarshal(r.body["attributes"], &attributes) // without them there is no count
	n, err := strconv.Atoi(attributes[count])
	if r.received == 0 || err != nil {
		return r.body
	}
	attributes[count] = strconv.Itoa(n + r.received)
	body := maps.Clone(r.body)
	body["attributes"], _ = json.Marshal(attributes) // strings can be encoded
	if body[handle] != nil {
		body[handle], _ = json.Marshal(rand.Text())
	}
	return body
}

package invoke

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
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
	size  int // of the body as it is delivered, in bytes

	handle   string  // of its last receive, by which the function names it to SQS
	received int     // so often before this delivery, as the source counts
	copies   int     // how often it will come again although it was completed
	givenUp  bool    // by a stream
	pacing   *pacing // of a message
}

// batch is an event of a queue or a stream.
type batch struct {
	source  string // such as aws:sqs
	records []*record
	rest    map[string]json.RawMessage // of the document
}

// readBatch returns nil if the payload is another kind of event. A single
// record stands for an event with one.
func readBatch(payload []byte) *batch {
	b := &batch{}
	if json.Unmarshal(payload, &b.rest) != nil {
		return nil
	}
	var bodies []map[string]json.RawMessage
	list, ok := b.rest["Records"]
	if !ok {
		list, b.rest = slices.Concat([]byte("["), payload, []byte("]")), nil
	}
	if json.Unmarshal(list, &bodies) != nil || len(bodies) == 0 {
		return nil
	}
	for i, body := range bodies {
		text, _ := json.Marshal(body) // it was decoded from JSON
		is := eventsource.Identify(text)
		if i == 0 {
			b.source = is.Source
		}
		if is.ID == "" || is.Source != b.source {
			return nil
		}
		r := &record{id: is.ID, group: is.Group, body: body}
		text, _ = json.Marshal(r.delivered())
		r.size = len(text)
		b.records = append(b.records, r)
	}
	return b
}

// stream reports whether what follows a failed record is delivered again, too.
func (b *batch) stream() bool { return b.source != eventsource.SQS }

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

// payload returns the event that delivers these records.
func payload(records []*record) []byte {
	e := records[0].event
	if e.batch == nil {
		return e.payload
	}
	document := map[string]json.RawMessage{}
	maps.Copy(document, e.batch.rest)
	bodies := make([]map[string]json.RawMessage, len(records))
	for i, r := range records {
		bodies[i] = r.delivered()
	}
	document["Records"], _ = json.Marshal(bodies) // they were decoded from JSON
	text, _ := json.Marshal(document)
	return text
}

// delivered returns the body as the next delivery has it: SQS counts the
// receives of a message, and each one has a receipt handle of its own. Copies
// of a message, and samples from the same page, have the same in their files.
func (r *record) delivered() map[string]json.RawMessage {
	const count, handle = "ApproximateReceiveCount", "receiptHandle"
	body := maps.Clone(r.body)
	if body[handle] != nil { // some events have none
		r.handle = rand.Text()
		body[handle], _ = json.Marshal(r.handle)
	}
	var attributes map[string]string
	_ = json.Unmarshal(r.body["attributes"], &attributes) // without them there is no count
	if n, err := strconv.Atoi(attributes[count]); err == nil && r.received > 0 {
		attributes[count] = strconv.Itoa(n + r.received)
		body["attributes"], _ = json.Marshal(attributes) // strings can be encoded
	}
	return body
}

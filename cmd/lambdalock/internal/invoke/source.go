package invoke

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// The values of --source.
const (
	asTheEventSays = ""
	sourceSQS      = "sqs"
	sourceFIFO     = "sqs-fifo"
	sourceKinesis  = "kinesis"
	sourceS3       = "s3"
	sourceBus      = "custom-bus"
	sourceAPI      = "api"
)

// attempts returns how often to deliver at most.
func (c *Command) attempts(otherwise int) int { return cmp.Or(c.Attempts, otherwise) }

// checkFlags refuses what does not fit the source.
func (c *Command) checkFlags() error {
	all, batches := []string{sourceSQS, sourceFIFO, sourceKinesis, sourceS3, sourceBus, sourceAPI}, []string{sourceSQS, sourceFIFO, sourceKinesis}
	for _, f := range []struct {
		name  string
		given bool
		fits  []string
		hint  string
	}{
		{"--async", c.Async, []string{asTheEventSays}, "--source s3 is asynchronous, and no other source is"},
		{"--shuffle", c.Shuffle, []string{asTheEventSays, sourceSQS, sourceS3, sourceBus, sourceAPI}, "it keeps the order"},
		{"--batch-size", c.BatchSize != 0, batches, ""},
		{"--no-report-batch-item-failures", c.IgnoreFailures, batches, ""},
		{"--attempts", c.Attempts != 0, all, ""},
		{"--bisect", c.Bisect, []string{sourceKinesis}, ""},
		{"--client-timeout", c.ClientTimeout != 0, []string{sourceAPI}, ""},
	} {
		if !f.given || slices.Contains(f.fits, c.Source) {
			continue
		}
		hint := cmp.Or(f.hint, "it is for --source "+strings.Join(f.fits, ", "))
		if c.Source == asTheEventSays {
			return fmt.Errorf("%s needs a source: %s", f.name, hint)
		}
		return fmt.Errorf("%s does not fit --source %s: %s", f.name, c.Source, hint)
	}
	return c.checkNumbers()
}

// checkNumbers refuses what AWS would refuse, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html and
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html.
func (c *Command) checkNumbers() error {
	largest, longest := 10_000, 1000
	switch c.Source {
	case sourceFIFO:
		largest = eventsource.QueueBatch
	case sourceS3:
		longest = eventsource.AsyncAttempts
	case sourceBus: // https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html
		longest = 186
	}
	switch {
	case c.BatchSize < 0 || c.Attempts < 0 || c.ClientTimeout < 0:
		return errors.New("--batch-size, --attempts and --client-timeout must be above zero")
	case c.BatchSize > largest:
		return fmt.Errorf("--batch-size %d: at most %d for --source %s", c.BatchSize, largest, c.Source)
	case c.Attempts > longest:
		return fmt.Errorf("--attempts %d: at most %d for --source %s", c.Attempts, longest, c.Source)
	}
	return nil
}

// checkEvents refuses events that are not from the source, and too many.
func (c *Command) checkEvents(events []*event) error {
	seen := map[[2]string]*event{} // shard and sequence number
	records, noun := 0, ""         // of a queue or a stream
	for _, e := range events {
		alone := c.Source == sourceBus && eventkind.Of(e.payload) == eventkind.EventBridge // the classic bus sends the same
		if is := e.source(); c.Source != asTheEventSays && is != c.Source && !alone {
			return c.wrongSource(e, is)
		}
		if c.Source != asTheEventSays && e.batch != nil {
			records, noun = records+len(e.batch.records), e.batch.noun()
		}
		if c.Source != sourceKinesis {
			continue
		}
		for _, r := range e.batch.records {
			id := [2]string{r.group, r.id}
			if other := seen[id]; other != nil {
				return fmt.Errorf("%s: the record with sequence number %s is in %s already: to deliver it again, use --copies", e.name, r.id, other.name)
			}
			seen[id] = e
		}
	}
	if records == 0 {
		return nil
	}
	return c.checkCopies(records, noun)
}

// takes says what to give to a source.
var takes = map[string]string{
	sourceSQS:     `{"Records":[…]} with eventSource "aws:sqs" and a messageId in each message, or one such message`,
	sourceFIFO:    `{"Records":[…]} with eventSource "aws:sqs", a messageId and attributes.MessageGroupId in each message, or one such message`,
	sourceKinesis: `{"Records":[…]} with eventSource "aws:kinesis" and kinesis.sequenceNumber in each record, or one such record`,
	sourceS3:      `{"Records":[…]} with eventSource "aws:s3" in each record`,
	sourceBus:     `an array of events of an EventBridge Custom Event Bus, or one event, with Data and SystemMetadata or in its envelope`,
	sourceAPI:     "the event of API Gateway, a Function URL or a load balancer, with requestContext",
}

func (c *Command) wrongSource(e *event, is string) error {
	text := fmt.Sprintf("%s is not what --source %s delivers, which is %s", e.name, c.Source, takes[c.Source])
	if is != asTheEventSays {
		text += "; use --source " + is
	}
	return errors.New(text)
}

// source returns what --source should be for an event; empty: none of its
// values.
func (e *event) source() string {
	switch {
	case e.batch != nil && e.batch.source == eventsource.Kinesis:
		return sourceKinesis
	case e.batch != nil && e.batch.source == eventsource.SQS && !slices.ContainsFunc(e.batch.records, func(r *record) bool { return !r.fifo() }):
		return sourceFIFO
	case e.batch != nil && e.batch.source == eventsource.SQS && !slices.ContainsFunc(e.batch.records, (*record).fifo):
		return sourceSQS
	case e.api != noAPI:
		return sourceAPI
	case e.fromS3():
		return sourceS3
	case e.fromBus():
		return sourceBus
	}
	return asTheEventSays
}

// fifo reports whether a message is from a FIFO queue. The messages of standard
// queues may have a group as well, which has no order, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html.
func (r *record) fifo() bool {
	var arn string
	_ = json.Unmarshal(r.body["eventSourceARN"], &arn) // not there: ""
	return r.group != "" && (arn == "" || strings.HasSuffix(arn, ".fifo"))
}

// fromS3 reports whether an event is an S3 notification, or the test event that
// S3 sends when notifications are configured.
func (e *event) fromS3() bool {
	var s3 struct {
		Service string
		Records []struct{ EventSource string }
	}
	if json.Unmarshal(e.payload, &s3) != nil {
		return false
	}
	for _, r := range s3.Records {
		if r.EventSource != "aws:s3" {
			return false
		}
	}
	return len(s3.Records) > 0 || s3.Service == "Amazon S3"
}

// fromBus reports whether an event is one that only a subscriber of a Custom
// Event Bus sends, or an array, as pipes send it too.
func (e *event) fromBus() bool {
	var array []json.RawMessage
	return json.Unmarshal(e.payload, &array) == nil && len(array) > 0 || eventkind.Of(e.payload) == eventkind.CustomBus
}

// sources returns the sources of these events.
func (d *deliverer) sources(events []*event) iter.Seq[source] {
	switch d.Source {
	case sourceSQS, sourceFIFO:
		return slices.Values([]source{d.sharedQueue(events)})
	case sourceKinesis:
		return slices.Values(d.sharedStream(events))
	}
	return func(yield func(source) bool) {
		for _, e := range d.order(events) {
			if !yield(d.sourceOf(e)) {
				return
			}
		}
	}
}

// sourceOf returns the source of one copy of an event: the batch that it is, or
// the event as a whole.
func (d *deliverer) sourceOf(e *event) source {
	switch {
	case d.Source == sourceAPI:
		return &client{deliverer: d, record: &record{event: e}}
	case e.batch != nil && e.batch.stream():
		return &shard{deliverer: d, size: len(e.batch.records), copies: 1, records: e.records()}
	case e.batch != nil:
		return d.newQueue(e.records(), false, len(e.batch.records), 1)
	}
	return &single{deliverer: d, event: e, async: d.Async || d.Source == sourceS3}
}

// sharedQueue returns a queue of all messages. In a standard queue, each copy
// is a message of its own, which another batch may receive at the same time. A
// FIFO queue delivers a message again if its deletion was lost.
func (d *deliverer) sharedQueue(events []*event) source {
	var messages []*record
	copies, size, places := d.Copies, cmp.Or(d.BatchSize, eventsource.QueueBatch), d.Environments*d.Concurrency
	fifo := d.Source == sourceFIFO
	if fifo {
		copies = 1
	}
	for range copies {
		for _, e := range events {
			messages = append(messages, e.records()...)
		}
	}
	for _, m := range messages {
		m.copies = d.Copies/copies - 1
	}
	if d.Shuffle {
		shuffle(messages)
	}
	q := d.newQueue(messages, fifo, size, places)
	q.apart = true
	return q
}

// sharedStream returns the shards of a stream.
func (d *deliverer) sharedStream(events []*event) []source {
	var records []*record
	for _, e := range events {
		records = append(records, e.records()...)
	}
	var all []source
	for _, shardRecords := range shards(records) {
		all = append(all, &shard{deliverer: d, size: cmp.Or(d.BatchSize, eventsource.StreamBatch), copies: d.Copies, records: shardRecords})
	}
	return all
}

// records returns a new copy of the records of an event.
func (e *event) records() []*record {
	all := make([]*record, len(e.batch.records))
	for i, r := range e.batch.records {
		c := *r
		c.event = e
		all[i] = &c
	}
	return all
}

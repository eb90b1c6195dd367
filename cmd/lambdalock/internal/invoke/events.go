package invoke

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// The largest events that Lambda accepts, see
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html.
const (
	maxEvent      = 6 << 20
	maxAsyncEvent = 1 << 20
)

// event is one event file.
type event struct {
	name    string
	payload []byte
	batch   *batch // nil: it is completed or not, as a whole
	api     api
	several int // records of an event that is not a batch, if it has more than one
	kafka   bool
}

func readEvents(names []string, async bool) ([]*event, error) {
	var all []*event
	stdin := false
	for _, name := range names {
		if name == "-" {
			if stdin {
				return nil, errors.New("standard input can be read once: name - once, and use --copies")
			}
			stdin = true
		}
		e, err := readEvent(name)
		if err != nil {
			return nil, err
		}
		limit, source := maxEvent, ""
		if async && e.batch == nil {
			limit, source = maxAsyncEvent, " from an asynchronous source"
		}
		if len(e.payload) > limit {
			return nil, fmt.Errorf("%s has %.1f MB: Lambda accepts at most %d MB%s", e.name, float64(len(e.payload))/(1<<20), limit>>20, source)
		}
		if err := e.checkMessages(); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// maxMessage is the largest body of an SQS message, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html.
const maxMessage = 1 << 20

// checkMessages refuses messages that a queue would not take.
func (e *event) checkMessages() error {
	if e.batch == nil || e.batch.source != eventsource.SQS {
		return nil
	}
	for _, r := range e.batch.records {
		var body string
		if json.Unmarshal(r.body["body"], &body) == nil && len(body) > maxMessage {
			return fmt.Errorf("%s: the message %s has %.1f MB: SQS accepts at most %d MB", e.name, oneLine(r.id, longestAnswer), float64(len(body))/(1<<20), maxMessage>>20)
		}
	}
	return nil
}

func readEvent(name string) (*event, error) {
	name, payload, err := console.ReadEvent(name)
	if err != nil {
		return nil, err
	}
	e := &event{name: name, payload: payload, batch: readBatch(payload), api: readAPI(payload)}
	if e.batch == nil {
		e.several, e.kafka = several(payload), eventkind.Of(payload) == eventkind.Kafka
	}
	return e, nil
}

// several returns how many records an event has, or 0 if that is one or none.
// Kafka has a list for each partition, and a Custom Event Bus sends an array.
func several(payload []byte) int {
	var document map[string]json.RawMessage
	var list []json.RawMessage
	var lists map[string][]json.RawMessage
	if json.Unmarshal(payload, &list) != nil && json.Unmarshal(payload, &document) != nil {
		return 0
	}
	if document != nil {
		_ = json.Unmarshal(document["Records"], &list) // another document: none
		_ = json.Unmarshal(document["records"], &lists)
	}
	for _, l := range lists {
		list = append(list, l...)
	}
	if len(list) == 1 {
		return 0
	}
	return len(list)
}

package deadletter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// What is done with a message.
const (
	Delete = "delete" // it was completed
	Send   = "send"   // it was not
	Invoke = "invoke" // it was not, and came from no queue
	Leave  = "leave"
)

// Whether a message was sent, or a function invoked. Empty: it was not.
const (
	Yes     = "yes"
	Perhaps = "perhaps" // nothing came back
)

// Decision is what to do with a message, and what came of it. The command
// prints it as JSON; docs/START.md documents the fields.
type Decision struct {
	Message  string `json:"message"`
	Group    string `json:"group,omitempty"`
	Function string `json:"function,omitempty"` // whose key it is
	Name     string `json:"name,omitempty"`
	Event    string `json:"event,omitempty"`
	Row      string `json:"row,omitempty"`
	Action   string `json:"action"`
	Why      string `json:"why"`
	To       string `json:"to,omitempty"`   // the queue or the function that gets it
	Sent     string `json:"sent,omitempty"` // whether that has taken it
	Done     bool   `json:"done"`           // it is in the dead-letter queue no more
	Error    string `json:"error,omitempty"`

	message *Message
}

func (d *Decision) leave(why string) { d.Action, d.Why, d.To = Leave, why, "" }

// Judge decides about messages by what the locks say of their keys.
type Judge struct {
	Store     driver.Inspector
	Namespace string
	// Function of package keyfuncs that gives the keys, as explain names it. Empty:
	// the one whose row is there.
	Function string
	// Name and Event give the parts of the keys, from the JSON of the body. Nil:
	// that of the function or, as with SQSBody, the message's id.
	Name, Event *template.Template
	// Unknown sends messages of which no row tells anything, too.
	Unknown bool
	// Functions gets the events of asynchronous invocations.
	Functions Functions
}

// Decide returns what to do with a message.
func (j *Judge) Decide(ctx context.Context, m *Message) (Decision, error) {
	d := Decision{Message: m.ID, Group: m.Group, Action: Leave}
	if why := j.Functions.foreign(m); why != "" {
		d.leave(why)
		return d, nil
	}
	keys, err := j.keys(ctx, m)
	if err != nil {
		return j.unknown(d, m, err.Error()), nil
	}
	if err := keys.Judge(ctx, j.Store, j.Namespace, time.Now()); err != nil {
		return d, err
	}
	all := keys.Records[0].Keys
	if len(all) == 1 && !all[0].Ignored {
		d.of(&all[0]) // also if it has no row: it may be a guess
	}
	key, why := decisive(keys.Records)
	if key == nil {
		return j.unknown(d, m, why), nil
	}
	d.of(key)
	d.Why = key.Verdict.Why
	switch {
	case key.Verdict.Completed:
		d.Action = Delete
	case key.Verdict.Would != explain.Run:
	case m.failed != nil: // the next invocation has the same event
		j.again(&d, m)
	case m.hasAnotherEvent(key):
		return j.unknown(d, m, "its Event was the sequence number or the message id in the queue that it came from, which it may have lost on its way here: give --event if the body has one"), nil
	default:
		if byID, err := j.knownByID(ctx, key.Name, m); err != nil || byID {
			d.leave("its row remembers the message's id, and not this event: leave out --event")
			return d, err
		}
		j.again(&d, m)
	}
	return d, nil
}

// of notes whose key it is.
func (d *Decision) of(k *explain.Key) {
	d.Function, d.Name, d.Event, d.Row = k.Function, k.Name, k.Event, k.Verdict.Row
}

// knownByID reports whether the row of the name remembers the message by its
// id, so that Event is not the key function's. The id changes when the message
// is sent, and it would run again.
func (j *Judge) knownByID(ctx context.Context, name string, m *Message) (bool, error) {
	if j.Event == nil {
		return false, nil
	}
	byID := explain.OfKey(lock.Key{Name: name, Event: m.ID})
	err := byID.Judge(ctx, j.Store, j.Namespace, time.Now())
	return err == nil && byID.Records[0].Keys[0].Verdict.Would != explain.Run, err
}

// unknown decides about a message of which the rows tell nothing. One that came
// from nowhere stays in any case, and that says more.
func (j *Judge) unknown(d Decision, m *Message, why string) Decision {
	d.Why = why
	if j.Unknown || m.From == "" && m.failed == nil {
		j.again(&d, m)
	}
	return d
}

// again delivers the message again, unless it is not known where to.
func (j *Judge) again(d *Decision, m *Message) {
	switch {
	case m.From != "":
		d.Action, d.To = Send, m.From
	case m.failed == nil:
		d.leave(m.nowhere())
	default:
		if to, why := j.Functions.target(m); why != "" {
			d.leave(why)
		} else {
			d.Action, d.To = Invoke, to
		}
	}
}

// decisive returns the key that decides about an event. Asynchronous events may
// have several records: it is completed if all of them are, and stays if one of
// them has to.
func decisive(records []explain.Record) (found *explain.Key, why string) {
	rank := func(k *explain.Key) int {
		switch {
		case k.Verdict.Completed:
			return 1
		case k.Verdict.Would == explain.Run:
			return 2
		}
		return 3
	}
	most, unknown := 0, ""
	for i := range records {
		switch key, why := theKey(records[i].Keys); {
		case key == nil:
			unknown = why
		case rank(key) > most:
			found, most = key, rank(key)
		}
	}
	if unknown != "" && most < 3 {
		return nil, unknown
	}
	return found, ""
}

// theKey returns the key whose row is there. If there is none, it says so. If
// several do not agree on a row, the locks do say something, so it returns a
// key without a name, for which the message stays. Two functions may differ in
// the order only, for which a row has nothing if it was the one without.
func theKey(keys []explain.Key) (found *explain.Key, why string) {
	for i := range keys {
		switch k := &keys[i]; {
		case k.Ignored, k.Verdict.Would == explain.Unknown:
		case found == nil:
			found = k
		case found.Verdict.Row != k.Verdict.Row || found.Event != k.Event:
			both := fmt.Sprintf("%s and %s both have a row: choose one with --key", found.Function, k.Function)
			return &explain.Key{Verdict: &explain.Verdict{Would: explain.Refuse, Why: both}}, ""
		case found.Verdict.Would == explain.Run:
			found = k
		}
	}
	if found == nil {
		why = "there is no row of its key: it was never claimed, its row was deleted since, or this is not the function's namespace or key function"
	}
	return found, why
}

// hasAnotherEvent reports whether the key's Event may be another one than in
// the queue that the message came from. A standard queue keeps the id of a
// message that it moves to its dead-letter queue. AWS does not say whether a
// FIFO queue does, and numbers of a sequence belong to one queue.
func (m *Message) hasAnotherEvent(k *explain.Key) bool {
	number := m.sqs.Attributes["SequenceNumber"]
	return number != "" && (k.Event == number || k.Event == m.ID && k.Function != "SQSMessage") // its name has the id
}

// keys returns the keys that the message may have. The error says why it has
// none.
func (j *Judge) keys(ctx context.Context, m *Message) (*explain.Event, error) {
	if j.Name == nil {
		e, err := j.explained(ctx, m)
		switch {
		case err != nil:
			return nil, err
		case len(e.Records[0].Keys) == 0:
			return nil, errors.New(cmp.Or(refusals(e.Records[0].Refused), j.Function+" is not a key function for it"))
		case j.Event == nil:
			return e, nil
		}
		return j.ownEvent(ctx, e.Records[0].Keys[0].Name, m)
	}
	name, err := fromBody(j.Name, m)
	if err != nil {
		return nil, err
	}
	return j.ownEvent(ctx, name, m)
}

// explained asks the key functions.
func (j *Judge) explained(ctx context.Context, m *Message) (*explain.Event, error) {
	if m.failed != nil {
		return explain.OfEvent(ctx, m.failed.event, j.Function)
	}
	return explain.OfMessage(ctx, m.received(), j.Function)
}

// ownEvent returns the key of that name whose Event is that of --event, or the
// message's id, as with SQSBody. It has no Order: that of the queue is lost,
// and a message that is sent back comes after all others. One key does not tell
// of an event with several records.
func (j *Judge) ownEvent(ctx context.Context, name string, m *Message) (*explain.Event, error) {
	switch {
	case j.Event == nil && m.failed != nil:
		return nil, errors.New("only the events of a queue have a message id: give --event, too")
	case j.Event == nil:
		return explain.OfKey(lock.Key{Name: name, Event: m.ID}), nil
	case m.failed != nil:
		if e, err := explain.Explain(ctx, m.failed.event); err == nil && len(e.Records) > 1 {
			return nil, errors.New("its event has several records, each with a key of its own: leave out --name and --event")
		}
	}
	event, err := fromBody(j.Event, m)
	return explain.OfKey(lock.Key{Name: name, Event: event}), err
}

func refusals(all []explain.Refusal) string {
	var text []string
	for _, r := range all {
		text = append(text, r.Function+" refuses it: "+r.Reason)
	}
	return strings.Join(text, "; ")
}

// received returns the message as Lambda gives it to a function.
func (m *Message) received() events.SQSMessage {
	return events.SQSMessage{
		MessageId: m.ID, Body: aws.ToString(m.sqs.Body), Attributes: m.sqs.Attributes,
		EventSource: "aws:sqs", EventSourceARN: m.From,
	}
}

// Template parses what --name and --event take.
func Template(text string) (*template.Template, error) {
	return template.New("").Option("missingkey=error").Parse(text)
}

// fromBody returns what a template makes of the body.
func fromBody(t *template.Template, m *Message) (string, error) {
	d := json.NewDecoder(bytes.NewReader(m.event()))
	d.UseNumber() // keeps all digits
	var body any
	if err := d.Decode(&body); err != nil {
		return "", fmt.Errorf("its body is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("its body has something after its JSON")
	}
	var text strings.Builder
	if err := t.Execute(&text, printed(body)); err != nil {
		return "", fmt.Errorf("its body does not fit: %w", err)
	}
	switch s := text.String(); {
	case s == "" || strings.Contains(s, "<no value>"):
		return "", errors.New("its body has nothing where the name or the event should be")
	case strings.Contains(s, noText):
		return "", errors.New("its body has an object or an array where the name or the event should be: name a field in it, such as {{.order.id}}")
	}
	return text.String(), nil
}

// noText is what becomes of an object or an array in a text. Go would write it
// as no key function does.
const noText = "\x00"

type (
	object map[string]any
	array  []any
)

func (object) String() string { return noText }
func (array) String() string  { return noText }

// printed returns a value of JSON whose objects and arrays are not text.
func printed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := object{}
		for name, member := range v {
			o[name] = printed(member)
		}
		return o
	case []any:
		a := make(array, len(v))
		for i := range v {
			a[i] = printed(v[i])
		}
		return a
	}
	return v
}

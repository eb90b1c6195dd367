package sqslimits

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
)

func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService.")
}

// TestLimits has each limit, at the edge and beyond it.
func TestLimits(t *testing.T) {
	t.Parallel()
	ids := func(n int) (all []*string) {
		for i := range n {
			id := fmt.Sprint(i)
			all = append(all, &id)
		}
		return all
	}
	long, wrong, fits := strings.Repeat("a", 81), "a b", strings.Repeat("a", 80)
	message := func(change func(*Message)) error {
		group := strings.Repeat("g", 128)
		m := &Message{Queue: "q.fifo", Body: "é\t\U0010ffff", Group: &group, Deduplication: &group}
		m.Attributes = map[string]Attribute{"a": {Type: "Number.x", Text: "1"}, "b": {Type: "Binary", Binary: []byte{0}}}
		m.System = map[string]Attribute{"AWSTraceHeader": {Type: "String", Text: "Root=1"}}
		change(m)
		return m.Refusal(Largest)
	}
	attribute := func(name string, a Attribute) error {
		return message(func(m *Message) { m.Attributes[name] = a })
	}
	const parameter, missing = "InvalidParameterValue", "MissingParameter"
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"ten":                    {Batch(append(ids(9), &fits), Largest), ""},
		"eleven":                 {Batch(ids(11), 0), "TooManyEntriesInBatchRequest"},
		"none":                   {Batch(nil, 0), "EmptyBatchRequest"},
		"one id twice":           {Batch(append(ids(2), ids(1)...), 0), "BatchEntryIdsNotDistinct"},
		"wrong id":               {Batch([]*string{&wrong}, 0), "InvalidBatchEntryId"},
		"long id":                {Batch([]*string{&long}, 0), "InvalidBatchEntryId"},
		"no id":                  {Batch([]*string{nil}, 0), "InvalidBatchEntryId"},
		"large batch":            {Batch(ids(2), Largest+1), "BatchRequestTooLong"},
		"receive":                {Receive(10, 43200, 20), ""},
		"receive one":            {Receive(1, 0, 0), ""},
		"receive none":           {Receive(0, 0, 0), parameter},
		"receive eleven":         {Receive(11, 0, 0), parameter},
		"wait longer":            {Receive(1, 0, 21), parameter},
		"wait negative":          {Receive(1, 0, -1), parameter},
		"invisible longer":       {Receive(1, 43201, 0), parameter},
		"invisible negative":     {Change("r", -1), parameter},
		"no receipt":             {Change("", 0), "ReceiptHandleIsInvalid"},
		"message":                {message(func(*Message) {}), ""},
		"standard queue":         {message(func(m *Message) { m.Queue, m.Deduplication = "q", nil }), ""},
		"largest":                {message(func(m *Message) { m.Attributes, m.Body = nil, strings.Repeat("x", Largest) }), ""},
		"larger":                 {message(func(m *Message) { m.Body = strings.Repeat("x", Largest) }), parameter},
		"empty":                  {message(func(m *Message) { m.Body = "" }), missing},
		"control character":      {message(func(m *Message) { m.Body = "\x00" }), "InvalidMessageContents"},
		"no group":               {message(func(m *Message) { m.Group = nil }), missing},
		"no deduplication":       {message(func(m *Message) { m.Deduplication = nil }), missing},
		"deduplication, no FIFO": {message(func(m *Message) { m.Queue = "q" }), parameter},
		"group with a space":     {message(func(m *Message) { m.Group = &wrong }), parameter},
		"long deduplication":     {message(func(m *Message) { s := *m.Group + "d"; m.Deduplication = &s }), parameter},
		"eleven attributes": {message(func(m *Message) {
			for i := range 9 {
				m.Attributes[fmt.Sprint(i)] = Attribute{Type: "String", Text: "x"}
			}
		}), parameter},
		"attribute's name":    {attribute("a b", Attribute{Type: "String", Text: "x"}), parameter},
		"attribute's type":    {attribute("c", Attribute{Type: "Text", Text: "x"}), parameter},
		"attribute's value":   {attribute("c", Attribute{Type: "String"}), parameter},
		"attribute's bytes":   {attribute("c", Attribute{Type: "Binary", Text: "x"}), parameter},
		"attribute's text":    {attribute("c", Attribute{Type: "String", Text: "\x1b"}), parameter},
		"system's other name": {message(func(m *Message) { m.System["SenderId"] = Attribute{Type: "String", Text: "x"} }), parameter},
		"system's type":       {message(func(m *Message) { m.System["AWSTraceHeader"] = Attribute{Text: "x"} }), parameter},
	} {
		if got := codeOf(c.err); got != c.code || (c.err == nil) != (c.code == "") {
			t.Errorf("%s: %v, want %q", name, c.err, c.code)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// What Lambda accepts, see
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
		limit, kind := maxEvent, "Lambda accepts at most 6 MB"
		if async && e.batch == nil {
			limit, kind = maxAsyncEvent, "Lambda accepts at most 1 MB from an asynchronous source"
		}
		if len(e.payload) > limit {
			return nil, fmt.Errorf("%s has %.1f MB: %s", e.name, float64(len(e.payload))/(1<<20), kind)
		}
		all = append(all, e)
	}
	return all, nil
}

func readEvent(name string) (*event, error) {
	var payload []byte
	var err error
	if name == "-" {
		name = "standard input"
		payload, err = io.ReadAll(os.Stdin)
	} else {
		payload, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	if err := checkJSON(name, payload); err != nil {
		return nil, err
	}
	return &event{name: name, payload: payload, batch: readBatch(payload)}, nil
}

// checkJSON finds what the function would only report as its own error.
func checkJSON(name string, text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s is empty: an event is a JSON document", name)
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return fmt.Errorf("%s begins with a byte order mark, which JSON does not allow: save it as UTF-8 without", name)
	}
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	syntax := (*json.SyntaxError)(nil)
	if !errors.As(err, &syntax) {
		return err
	}
	// Offset counts what was read before the error was found, with the byte at fault.
	at := int(syntax.Offset)
	if at > 0 && at <= len(text) && syntax.Error() != "unexpected end of JSON input" {
		at--
	}
	before := text[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Errorf("%s:%d:%d: %w", name, line, column, syntax)
}

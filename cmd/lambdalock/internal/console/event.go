package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadEvent reads an event from a file, or from standard input if the name is a
// dash. It also returns what to call it.
func ReadEvent(name string) (called string, event []byte, err error) {
	if name == "-" {
		name = "standard input"
		event, err = io.ReadAll(os.Stdin)
	} else {
		event, err = os.ReadFile(name)
	}
	if err == nil {
		err = checkJSON(name, event)
	}
	return name, event, err
}

// checkJSON finds mistakes that the function would only report as its own
// error, and says where they are.
func checkJSON(name string, text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s is empty: an event is a JSON document", name)
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return fmt.Errorf("%s begins with a byte order mark, which JSON does not allow: save it as UTF-8 without one", name)
	}
	syntax := (*json.SyntaxError)(nil)
	if err := json.Unmarshal(text, new(json.RawMessage)); !errors.As(err, &syntax) {
		return err
	}
	// Offset counts the bytes that were read before the error was found, including
	// the one at fault, unless that is the end.
	before := text[:syntax.Offset]
	if syntax.Error() != "unexpected end of JSON input" {
		before = text[:syntax.Offset-1]
	}
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("%s:%d:%d: %w", name, line, column, syntax)
}

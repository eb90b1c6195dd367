package console

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf16"
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
		event = inUTF8(event)
		err = checkJSON(name, event)
	}
	return name, event, err
}

// inUTF8 returns a text in UTF-8, without a byte order mark. Windows PowerShell
// redirects output to files in UTF-16, and marks those in UTF-8.
// https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_character_encoding
func inUTF8(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	var units []uint16
	for i := 2; i+1 < len(text); i += 2 {
		units = append(units, order.Uint16(text[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// checkJSON finds mistakes that the function would only report as its own
// error, and says where they are.
func checkJSON(name string, text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("%s is empty: an event is a JSON document", name)
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

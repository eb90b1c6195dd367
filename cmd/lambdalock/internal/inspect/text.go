package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Safe returns s for a terminal: unchanged if all of it can be printed, and
// otherwise quoted as in Go. Names and events come from strangers, and could
// hold the escape sequences of a terminal.
func Safe(s string) string {
	plain := s != "" && s[0] != '"' && s[0] != ' ' && s[len(s)-1] != ' '
	for _, r := range s {
		plain = plain && r != '\uFFFD' && strconv.IsPrint(r)
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// Meanings returns what a person may mean by a text: the text itself, and if it
// is as Safe prints another one, that one.
func Meanings(text string) []string {
	if plain, err := strconv.Unquote(text); err == nil && Safe(plain) == text {
		return []string{text, plain}
	}
	return []string{text}
}

// WriteJSON writes v and a newline. What a terminal might obey is escaped.
func WriteJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range text.String() {
		switch {
		case r < 0x7f || strconv.IsPrint(r): // the encoder has escaped controls of ASCII
			safe.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// Stamp returns a time as every command writes it: in UTC, as the logs of
// Lambda do.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clock returns the time of a day, as a command writes it that prints all the
// time.
func clock(t time.Time) string { return t.UTC().Format("15:04:05Z07:00") }

// Moment returns a time, and how far it is from now.
func Moment(t, now time.Time) string {
	text := Stamp(t)
	if t.Before(now) {
		return text + " (" + Span(now.Sub(t)) + " ago)"
	}
	return text + " (in " + Span(t.Sub(now)) + ")"
}

// Span returns a duration in its two largest units.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

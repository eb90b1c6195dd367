// Package printable makes text of strangers fit for a log.
package printable

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns s with DEL and the control characters above it escaped. Handlers
// of log/slog escape the others, but JSON allows these unescaped, and a
// terminal may obey them: U+009B begins the same sequences as ESC [.
func Text(s string) string {
	if strings.IndexFunc(s, escaped) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if escaped(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:]) // of a byte that is not UTF-8, one
		b.WriteString(s[i : i+size])
	}
	return b.String()
}

func escaped(r rune) bool { return 0x7f <= r && r <= 0x9f }

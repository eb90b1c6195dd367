// Package hostile generates keys as an attacker would choose them: to
// impersonate another caller, forge log lines or control a terminal.
package hostile

import (
	"iter"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pieces are the strings that keys are assembled from, mixed with random bytes
// and letters.
var pieces = []string{
	"\n", "\r\n", "\x00", "\x07", "\x1b[2J", "\x1b]0;title\x07", "\u009b31m", "\x7f", "\u0085", "\u2028", "\u2029", "\u202e", "\ufeff", "\ufffd",
	"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "é", "e\u0301", "\U0001f600", "ﬁ",
	`"`, `\`, `\n`, "'", "`", "%s%n", "%00", "${jndi:x}", "{{.}}", "<script>", "</script>", `","level":"ERROR"`, "\ntime=2026-01-01 level=ERROR msg=forged",
	"\nlambdalock: lost", "/", "//", "..", "../", ":", "slot:2:", "sha256:", "~", "=", " ", "\t", "|", ";", "$(id)", "&&", "*", "#", "{tag}",
}

// Keys yields n keys. The seed determines them, and each contains random
// letters that occur nowhere else, so that a leak can be recognised.
func Keys(seed uint64, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		for range n {
			var b strings.Builder
			b.WriteString(letters(random, 12)) // must not be visible in a digest
			for range random.IntN(6) {
				b.WriteString(pieces[random.IntN(len(pieces))])
				switch random.IntN(4) {
				case 0:
					b.WriteByte(byte(random.IntN(256)))
				case 1:
					b.WriteRune(rune(random.IntN(0x3000)))
				}
			}
			if random.IntN(200) == 0 {
				b.WriteString(strings.Repeat(pieces[random.IntN(len(pieces))], 1000))
			}
			b.WriteString(letters(random, 12))
			if !yield(b.String()) {
				return
			}
		}
	}
}

func letters(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return string(b)
}

// Raw returns the first sequence in a line that could control or confuse a
// terminal or log viewer: a control character, a line separator, or invalid
// UTF-8. It reports false if there is none.
func Raw(line string) (string, bool) {
	for i, r := range line {
		_, size := utf8.DecodeRuneInString(line[i:])
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1 {
			return line[i : i+size], true
		}
	}
	return "", false
}

// Shows returns the first eight consecutive bytes of the secret that also occur
// in text. It reports false if there are none.
func Shows(text, secret string) (string, bool) {
	const window = 8
	for i := 0; i+window <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+window]) {
			return secret[i : i+window], true
		}
	}
	return "", false
}

package lock_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/printable"
)

func TestPrintable(t *testing.T) { // F30
	t.Parallel()
	for text, want := range map[string]string{
		"":               "",
		"s3/b/é\n\x00":   "s3/b/é\n\x00", // which handlers escape
		"a\u009b31m\x7f": `a\u009b31m\u007f`,
		"\u0080\u00a0":   "\\u0080\u00a0",
		"\xff\u0085\xc2": "\xff" + `\u0085` + "\xc2",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

package simulation_test

import (
	"slices"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/hostile"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	first := slices.Collect(hostile.Keys(1, 1000))
	if again := slices.Collect(hostile.Keys(1, 1000)); !slices.Equal(first, again) {
		t.Error("the same seed gave other keys")
	}
	seen, raw := map[string]bool{}, 0
	for _, key := range first {
		if _, ok := hostile.Raw(key); ok {
			raw++
		}
		seen[key] = true
	}
	if len(seen) != 1000 || raw < 500 {
		t.Errorf("%d different keys, %d with a raw character", len(seen), raw)
	}
}

func TestRawAndShows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\x1b[2J": "\x1b", "a\nb": "\n", "\u009bx": "\u009b", "\x7f": "\x7f", "a\xff": "\xff", "\u2028": "\u2028", "é \u202e \ufffd \\n": "",
	} {
		if got, ok := hostile.Raw(text); got != want || ok != (want != "") {
			t.Errorf("Raw(%q) is %q, %v", text, got, ok)
		}
	}
	if part, ok := hostile.Shows("name=1b16b1df jane.doe@exa…", "jane.doe@example.com"); !ok || part != "jane.doe" {
		t.Errorf("got %q, %v", part, ok)
	}
	if part, ok := hostile.Shows("name=1b16b1df538b", "jane.doe@example.com"); ok {
		t.Errorf("got %q", part)
	}
}

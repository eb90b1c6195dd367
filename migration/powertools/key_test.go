package powertools

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestID compares the ids with those that the real packages write.
func TestID(t *testing.T) {
	t.Parallel()
	for file, language := range map[string]Language{"keys-python.txt": Python, "keys-typescript.txt": TypeScript} {
		b := expect.Value(os.ReadFile("testdata/" + file))(t)
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if len(lines) < 60 {
			t.Fatalf("%s has only %d lines", file, len(lines))
		}
		for _, line := range lines {
			want, part, _ := strings.Cut(line, " ")
			t.Run(file+" "+part, func(t *testing.T) {
				t.Parallel()
				table := Table[json.RawMessage]{Language: language, Prefix: "orders", Part: func(part json.RawMessage) any { return part }}
				got, err := table.ID(json.RawMessage(part))
				if want = strings.TrimPrefix(want, "-"); got != want || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			})
		}
	}
}

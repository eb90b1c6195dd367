package invoke

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestMessagesHaveALimit: a message that no queue takes is not delivered.
func TestMessagesHaveALimit(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{1 << 20: "", 1<<20 + 1: "SQS accepts at most 1 MB", 5 << 20: "the message m has 5.0 MB"} {
		name := filepath.Join(t.TempDir(), "m.json")
		text := `{"messageId":"m","eventSource":"aws:sqs","body":"` + strings.Repeat("x", size) + `"}`
		expect.Must(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := readEvents([]string{name}, false); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
	}
}

package main

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestEventsAreCheckedFirst: no function is started for a file that is not an
// event.
func TestEventsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		args   []string
		within string
	}{
		"broken":    {"{\n  \"Records\": [\n    {\"a\": 1,}\n  ]\n}", nil, ":3:13: "},
		"cut":       {"{\"Records\": [", nil, ":1:14: "},
		"two":       {"{}\n{}", nil, ":2:1: "},
		"empty":     {"", nil, "is empty"},
		"blank":     {" \n", nil, "is empty"},
		"large":     {`"` + strings.Repeat("x", 7<<20) + `"`, nil, "6 MB"},
		"not async": {`"` + strings.Repeat("x", 2<<20) + `"`, []string{"--async"}, "1 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := file(t, "event.json", c.text)
			r := invoked(t, "exit", append(c.args, name)...)
			r.Expect(t, 1, name, c.within)
			if strings.Contains(r.String(), "no table name") {
				t.Errorf("the function was started\n%s", r)
			}
		})
	}
	invoked(t, "exit", t.TempDir()).Expect(t, 1, "is a directory")
	invoked(t, "exit", "-", "-").Expect(t, 1, "standard input")
}

func TestEventFromStandardInput(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, "invoke", os.Args[0], "-")
	in := expect.Value(os.Open(s3Event(t, "cat.png")))(t)
	t.Cleanup(func() { _ = in.Close() })
	c.Stdin = in
	execute(t, c).Expect(t, 0, "ran", "standard input")
}

// TestEventFromWindows: PowerShell redirects to files in UTF-16, and marks
// those in UTF-8.
func TestEventFromWindows(t *testing.T) {
	t.Parallel()
	text := expect.Value(os.ReadFile(s3Event(t, "grün 🐈.png")))(t)
	units := utf16.Encode([]rune("\ufeff" + string(text)))
	little, big := []byte(nil), []byte(nil)
	for _, u := range units {
		little, big = binary.LittleEndian.AppendUint16(little, u), binary.BigEndian.AppendUint16(big, u)
	}
	want := command(t, nil, "explain", file(t, "event.json", string(text)))
	want.Expect(t, 0, "S3Object", "png")
	for name, event := range map[string]string{"mark": "\ufeff" + string(text), "little": string(little), "big": string(big)} {
		got := command(t, nil, "explain", file(t, name, event))
		if _, rest, _ := strings.Cut(got.Stdout, "\n"); got.Status != 0 || !strings.HasSuffix(want.Stdout, rest) {
			t.Errorf("%s: status %d, %s", name, got.Status, got)
		}
	}
	command(t, nil, "explain", file(t, "half", string(little[:len(little)-3]))).Expect(t, 64, "unexpected end of JSON")
}

package main

import (
	"os"
	"strings"
	"testing"
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
		"mark":      {"\ufeff{}", nil, "byte order mark"},
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
	in, err := os.Open(s3Event(t, "cat.png"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	c.Stdin = in
	execute(t, c).Expect(t, 0, "ran", "standard input")
}

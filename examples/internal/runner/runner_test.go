package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const root = "../.."

// Every folder with an event is in the table of examples and in the README.
func TestNoExampleIsLeftOut(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "*/event.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(examples) {
		t.Errorf("%d folders with an event.json, but %d examples in the table", len(files), len(examples))
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			if !slices.ContainsFunc(examples, func(x example) bool { return x.name == name }) {
				t.Error("it is not in the table of examples")
			}
			if !bytes.Contains(readme, []byte("]("+name+"/main.go)")) {
				t.Error("it is not in README.md")
			}
		})
	}
}

// What the table replaces in an event is there.
func TestEdits(t *testing.T) {
	for _, x := range examples {
		event, err := os.ReadFile(filepath.Join(root, x.name, "event.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range slices.Concat(x.others, x.wrong) {
			t.Run(x.name+"/"+d.what, func(t *testing.T) {
				for pair := range slices.Chunk(d.edits, 2) {
					if !bytes.Contains(event, []byte(pair[0])) {
						t.Errorf("event.json does not contain %s", pair[0])
					}
				}
			})
		}
	}
}

// What is taken out of an example is there, once.
func TestProtections(t *testing.T) {
	for _, x := range examples {
		files, err := x.code(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range x.without {
			t.Run(x.name+"/"+p.what, func(t *testing.T) {
				for pair := range slices.Chunk(p.edits, 2) {
					times := 0
					for _, text := range files {
						times += strings.Count(text, pair[0])
					}
					if times != 1 {
						t.Errorf("%q is there %d times", pair[0], times)
					}
				}
			})
		}
	}
}

// The key functions are tested with these events.
func TestEventsAreThoseOfTheKeyFunctions(t *testing.T) {
	for name, original := range map[string]string{
		"s3upload": "s3-put", "nothingtodo": "s3-put", "schedule": "eventbridge-scheduler", "api": "apigateway-http",
		"snsfanout": "sns", "nested": "eventbridge", "unittest": "eventbridge",
	} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(root, "../keyfuncs/testdata", original+".json"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(root, name, "event.json"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("event.json is not keyfuncs/testdata/%s.json", original)
			}
		})
	}
}

func TestGrouped(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"groups interleave", "jane 1,omar 2,jane 3", "jane 1,jane 3,omar 2", true},
		{"order within a group", "jane 3,omar 2,jane 1", "jane 1,jane 3,omar 2", false},
		{"no order without groups", "1018,1017", "1017,1018", true},
		{"once and twice", "jane 1,jane 1", "jane 1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if same := slices.Equal(grouped(strings.Split(c.a, ",")), grouped(strings.Split(c.b, ","))); same != c.same {
				t.Errorf("%q and %q: same %v, want %v", c.a, c.b, same, c.same)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	const (
		first, second, third = `{"eventSource":"aws:sqs","messageId":"a-0001"}`, `{"eventSource":"aws:sqs","messageId":"a-0002"}`, `{"eventSource":"aws:sqs","messageId":"a-0003"}`
		queue                = `{"Records":[` + first + `,` + second + `,` + third + `]}`

		last   = `{"eventSource":"aws:kinesis","kinesis":{"sequenceNumber":"0002"}}`
		stream = `{"Records":[{"eventSource":"aws:kinesis","kinesis":{"sequenceNumber":"0001"}},` + last + `]}`
	)
	succeeded := func(payload string) locallambda.Result {
		return locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(payload)}
	}
	for _, c := range []struct {
		name, batch string
		result      locallambda.Result
		label, rest string
	}{
		{"error", queue, locallambda.Result{Outcome: locallambda.Failed, ErrorType: "HeldError"}, "HeldError", queue},
		{"nothing", queue, succeeded(`null`), ok, ""},
		{"nothing back", queue, succeeded(`{"batchItemFailures":[]}`), ok, ""},
		{
			"messages back", queue, succeeded(`{"batchItemFailures":[{"itemIdentifier":"a-0001"},{"itemIdentifier":"a-0003"}]}`),
			"back: …0001 …0003", `{"Records":[` + first + `,` + third + `]}`,
		},
		{
			"a record back", stream, succeeded(`{"batchItemFailures":[{"itemIdentifier":"0002"}]}`),
			"back: …0002", `{"Records":[` + last + `]}`,
		},
		{"HTTP", "{}", succeeded(`{"statusCode":409,"body":"x"}`), "status 409", ""},
		{"streamed response", "{}", succeeded(`{"statusCode":200}` + "\x00\x00\x00\x00\x00\x00\x00\x00a,b"), "status 200", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := label(c.result); got != c.label {
				t.Errorf("label %q, want %q", got, c.label)
			}
			if got := rest([]byte(c.batch), c.result); string(got) != c.rest {
				t.Errorf("again %s, want %s", got, c.rest)
			}
		})
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExamples(t *testing.T) {
	b, err := build(t.Context(), examples)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.remove)
	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) {
			r := play(t.Context(), b, x)
			t.Log(strings.Join(r.lines, "\n"))
			for _, s := range r.surprises {
				t.Error(s)
			}
			if t.Failed() {
				t.Log(strings.Join(r.printed, "\n"))
			}
		})
	}
}

// Every folder with an event is an example that is run, and told of in the README.
func TestNoExampleIsLeftOut(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../*/event.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(examples) {
		t.Errorf("%d folders with an event.json, but %d examples in the table", len(files), len(examples))
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if !slices.ContainsFunc(examples, func(x example) bool { return x.name == name }) {
			t.Errorf("%s is not in the table of examples", name)
		}
		if !bytes.Contains(readme, []byte("]("+name+"/main.go)")) {
			t.Errorf("%s is not in README.md", name)
		}
	}
}

// The key functions are tested with these events.
func TestEventsAreThoseOfTheKeyFunctions(t *testing.T) {
	for name, original := range map[string]string{
		"s3upload": "s3-put", "schedule": "eventbridge-scheduler", "api": "apigateway-http",
		"snsfanout": "sns", "nested": "eventbridge", "unittest": "eventbridge",
	} {
		want, err := os.ReadFile("../../../keyfuncs/testdata/" + original + ".json")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../" + name + "/event.json")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s/event.json is not keyfuncs/testdata/%s.json", name, original)
		}
	}
}

func TestByGroup(t *testing.T) {
	for _, c := range []struct {
		a, b    string
		ordered bool
		same    bool
	}{
		{"jane 1,omar 2,jane 3", "jane 1,jane 3,omar 2", true, true},
		{"jane 3,omar 2,jane 1", "jane 1,jane 3,omar 2", true, false},
		{"jane 3,omar 2,jane 1", "jane 1,jane 3,omar 2", false, true},
		{"jane 1,jane 1", "jane 1", false, false},
	} {
		a, b := byGroup(strings.Split(c.a, ","), c.ordered), byGroup(strings.Split(c.b, ","), c.ordered)
		if (a == b) != c.same {
			t.Errorf("%q and %q, ordered %v: same %v, want %v", c.a, c.b, c.ordered, a == b, c.same)
		}
	}
}

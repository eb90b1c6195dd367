package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: each of these pages has what it says, and the rest of the site is
// in order.
func TestCheck(t *testing.T) {
	t.Parallel()
	const blob = "https://github.example/a/blob/main"
	for _, c := range []struct{ page, want string }{
		{`<a href="docs/B.html#b"></a><a href="#a"></a><p id="a"><a href="` + blob + `/README.go#L3"></a><img src="p.png"><a href="https://example.com/">`, ""},
		{`<a href="` + blob + `/docs/B.md"></a><a href="` + blob + `/README.md">`, ""},
		{`<a href="docs/C.html">`, "C.html"},
		{`<a href="docs/B.html#c">`, "no such anchor"},
		{`<a href="#a">`, "no such anchor"},
		{`<a href="p.png#a">`, "no such anchor"},
		{`<a href="` + blob + `/main.go">`, "main.go"},
		{`<a href="https://github.example/a/tree/main/lock">`, "lock"},
		{`<a href="` + blob + `/NEW.md">`, "missing in hugo.yaml"},
		{`<img src="q.png">`, "q.png"},
		{`<picture><source srcset="q.png">`, "q.png"},
		{`<script src="https://example.com/s.js">`, "loads https://example.com/s.js"},
		{`<p id="a"><p id="a">`, "two anchors are called a"},
		{`<img src="heavy.png">`, "at most 300000"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"site/index.html": c.page, "site/docs/B.html": `<p id="b"><a href="../index.html">`, "site/p.png": "p",
				"site/heavy.png": strings.Repeat("p", maxWeight), "README.go": "", "README.md": "", "docs/B.md": "", "NEW.md": "",
			} {
				name = filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := check(filepath.Join(dir, "site"), dir, blob)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.problems, "\n"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%s: %q, want %q", c.page, got, c.want)
			}
		})
	}
}

// TestNoPages: a site that was not built has no broken links either.
func TestNoPages(t *testing.T) {
	t.Parallel()
	if _, err := check(t.TempDir(), ".", ""); err == nil {
		t.Error("an empty folder passes")
	}
}

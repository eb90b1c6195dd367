package docs

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAssistantsPage follows ASSISTANTS.md literally: it makes the program of
// every row, and runs the test of the page with the row's sample. One binary
// has all of them, because linking takes longer than compiling.
func TestAssistantsPage(t *testing.T) {
	t.Parallel()
	text := read(t, "ASSISTANTS.md")
	blocks := goBlocks(text)
	if len(blocks) != 4 {
		t.Fatalf("the page has %d Go blocks, want two programs, a test, and the line of it that HTTP changes", len(blocks))
	}
	program, http, test, count := blocks[0], blocks[1], blocks[2], blocks[3]
	events, apis, _ := strings.Cut(text, "\nFor HTTP, ")
	files, samples := map[string]string{}, []string{}
	add := func(sample, main, test string) {
		folder := fmt.Sprintf("docs/assistants/row%d", len(samples))
		samples = append(samples, sample)
		files[folder+"/main.go"] = replace(t, main, `(?m)^package main$`, "package "+filepath.Base(folder))
		test = replace(t, test, `(?m)^package main$`, "package "+filepath.Base(folder))
		files[folder+"/test.go"] = replace(t, test, `"event\.json"`, fmt.Sprintf("%q", "../keyfuncs/testdata/"+sample))
	}
	for row := range slices.Chunk(cells(events, "record", "argument", "sample"), 3) {
		main := replace(t, program, `(?m)^type record = .*`, "type record = "+row[0])
		add(row[2], replace(t, main, `lambda\.NewHandler\(.*\)`, "lambda.NewHandler("+row[1]+")"), test)
	}
	for row := range slices.Chunk(cells(apis, "record", "response", "sample"), 3) {
		main := replace(t, http, `(?m)^type record = .*`, "type record = "+row[0])
		main = replace(t, main, `(?m)^type response = .*`, "type response = "+row[1])
		add(row[2], main, replace(t, test, `(?m)^\tcount := .*\n`, "\t"+count))
	}
	webhook := regexp.MustCompile("`(keyfuncs\\.HTTPBody\\[record\\].*)`").FindStringSubmatch(apis)
	if webhook == nil {
		t.Fatal("the page has no key function for a webhook")
	}
	main := strings.ReplaceAll(http, "keyfuncs.IdempotencyKey[record]", webhook[1])
	files["docs/assistants/webhook_test.go"] = "package assistants\n\nimport _ \"github.com/lambdalock/lambdalock/docs/assistants/webhook\"\n"
	files["docs/assistants/webhook/main.go"] = replace(t, main, `(?m)^package main$`, "package webhook")
	if len(samples) < 15 {
		t.Fatalf("the tables have %d rows", len(samples))
	}
	files["docs/assistants/all_test.go"] = everyRow(samples)
	binary := filepath.Join(t.TempDir(), "rows")
	goTool(t, files, "test", "-vet=off", "-c", "-o", binary, "./docs/assistants")
	if out, err := exec.CommandContext(t.Context(), binary, "-test.timeout=1m").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// everyRow returns a test of the packages row0, row1 and so on.
func everyRow(samples []string) string {
	var imports, tests strings.Builder
	for i, sample := range samples {
		fmt.Fprintf(&imports, "import \"github.com/lambdalock/lambdalock/docs/assistants/row%d\"\n", i)
		fmt.Fprintf(&tests, "\tt.Run(%q, row%d.TestDeliveredTwice)\n", sample, i)
	}
	return "package assistants\n\nimport \"testing\"\n" + imports.String() + "func TestRows(t *testing.T) {\n" + tests.String() + "}\n"
}

// TestAssistantsReadBodies checks that the bodies of the HTTP samples are text,
// as gateways deliver JSON: a handler of the page reads r.Body.
func TestAssistantsReadBodies(t *testing.T) {
	t.Parallel()
	_, apis, _ := strings.Cut(read(t, "ASSISTANTS.md"), "\nFor HTTP, ")
	for _, sample := range cells(apis, "sample") {
		var e struct{ Body string }
		if err := json.Unmarshal([]byte(read(t, "../keyfuncs/testdata/"+sample)), &e); err != nil || !json.Valid([]byte(e.Body)) {
			t.Errorf("%s: the body is %q, want JSON (%v)", sample, e.Body, err)
		}
	}
}

// TestAssistantsGetTheKeyOfTheSource compares the key functions with those of
// SOURCES.md. Some others would pass TestAssistantsPage, such as SQSMessage for
// a FIFO queue, which keeps no order.
func TestAssistantsGetTheKeyOfTheSource(t *testing.T) {
	t.Parallel()
	text, sources := read(t, "ASSISTANTS.md"), read(t, "SOURCES.md")
	argument := regexp.MustCompile("(?m)^\\| ([^|]+) \\| `[^`]+` \\| `middleware\\.(\\w+)\\((.*), handle, opts\\.\\.\\.\\)`")
	rows := argument.FindAllStringSubmatch(text, -1)
	if len(rows) < 11 {
		t.Errorf("found %d rows", len(rows))
	}
	for _, m := range rows {
		source, key := m[1], strings.ReplaceAll(m[3], "keyfuncs.", "")
		if m[2] == "EachSQSBody" { // SOURCES.md gives the key of the message
			key = "SQSBody(" + key + ")"
		}
		if strings.HasSuffix(source, "for an id in the body") {
			continue // no source's own id
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(source) + ` \|.*`).FindString(sources)
		if !strings.Contains(row, "`"+key+"`") {
			t.Errorf("%s: the key is %s, but SOURCES.md has %q", source, key, row)
		}
	}
}

// replace replaces what the pattern matches, which must be in the text once.
func replace(t *testing.T, text, pattern, by string) string {
	t.Helper()
	p := regexp.MustCompile(pattern)
	if n := len(p.FindAllString(text, -1)); n != 1 {
		t.Fatalf("%s matches %d times, want once, in\n%s", pattern, n, text)
	}
	return p.ReplaceAllLiteralString(text, by)
}

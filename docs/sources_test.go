package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exported returns the exported functions and types of the packages of key
// functions and of the wrappers of single records.
func exported(t *testing.T) []string {
	t.Helper()
	var names []string
	declared := regexp.MustCompile(`(?m)^func ([A-Z]\w*)`)
	for _, pattern := range []string{"../keyfuncs/*.go", "../keyfuncs/services/*.go", "../keyfuncs/jmespath/*.go", "../middleware/records.go", "../middleware/body.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, file := range files {
			for _, m := range declared.FindAllStringSubmatch(read(t, file), -1) {
				if !strings.HasSuffix(file, "_test.go") {
					names = append(names, m[1])
				}
			}
		}
	}
	return names
}

// cells returns the code in the columns of these names, in all tables of a
// document.
func cells(text string, columns ...string) []string {
	code := regexp.MustCompile("`([^`]+)`")
	var found []string
	var header []string // of the table that the line is in
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if header == nil {
			header = row
			continue
		}
		for i, cell := range row {
			if i < len(header) && slices.Contains(columns, header[i]) {
				for _, m := range code.FindAllStringSubmatch(cell, -1) {
					found = append(found, m[1])
				}
			}
		}
	}
	return found
}

// TestEverySourceIsListed: people look for a source by name, and find all there
// is.
func TestEverySourceIsListed(t *testing.T) {
	t.Parallel()
	table, names := read(t, "SOURCES.md")+read(t, "GUIDE.md"), exported(t)
	for _, name := range names {
		if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").MatchString(table) {
			t.Errorf("SOURCES.md and GUIDE.md say nothing of %s", name)
		}
	}
	for _, name := range cells(table, "function", "wrapper") {
		if !slices.Contains(names, strings.TrimPrefix(name, "services.")) {
			t.Errorf("SOURCES.md or GUIDE.md has %s, which does not exist", name)
		}
	}
}

// standIns are what the code in the tables leaves to the reader.
const standIns = `
type Order struct{ ID string }

var (
	byID, byCustomer, byTenant, byVersion, byItem, byEventID, inner Func[Order]
	secret = make([]byte, 16)
)

func schedule(Order) string        { panic("") }
func scheduledTime(Order) string   { panic("") }
func hookExecutionID(Order) string { panic("") }
func deduplicationID(events.SQSMessage) string { panic("") }
func eventID(events.AutoScalingEvent) string { panic("") }
func partitionKey(events.KinesisEventRecord) string { panic("") }
func sequenceNumber(awsevents.CustomBusEvent) string { panic("") }
func topicAndKey(events.KafkaRecord) string { panic("") }
func topicOf(Order) awsevents.IoTMessage { panic("") }
func contextOf(Order) awsevents.StepFunctionsContext { panic("") }
`

// TestFragmentsCompile: what people copy from SOURCES.md is Go.
func TestFragmentsCompile(t *testing.T) {
	t.Parallel()
	text := read(t, "SOURCES.md")
	const module = "github.com/lambdalock/lambdalock"
	imports := `import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"` + module + `/keyfuncs"
	. "` + module + `/keyfuncs"
	"` + module + `/keyfuncs/awsevents"
	"` + module + `/keyfuncs/jmespath"
	"` + module + `/keyfuncs/services"
	"` + module + `/middleware"
)

var (
	_ context.Context
	_ = errors.New
	_ cfn.Event
	_ events.S3Event
	_ = lambda.Start
	_ = keyfuncs.ErrIgnore
	_ = ErrIgnore
	_ awsevents.IoTMessage
	_ = jmespath.Payload
	_ = services.CodePipelineJob
	_ = middleware.FailOpen
)
`
	var table strings.Builder
	expressions := cells(text, "for one record", "for the whole event", "write")
	for _, e := range expressions {
		fmt.Fprintf(&table, "var _ = %s\n", e)
	}
	fragments := []string{"package fragments\n" + imports + standIns + table.String()}
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
		code := strings.ReplaceAll(m[1], "{ … }", "{ return nil }")
		code = regexp.MustCompile(`(?m)^lambda\.Start.*$`).ReplaceAllString(code, "func main() { $0 }")
		if !strings.Contains(code, "func handle(") {
			code += "\nfunc handle(context.Context, cfn.Event) (string, map[string]any, error) { panic(0) }\n"
		}
		fragments = append(fragments, "package fragments\n"+imports+code)
	}
	if len(expressions) < 70 || len(fragments) != 7 {
		t.Errorf("found %d expressions and %d blocks", len(expressions), len(fragments)-1)
	}
	compile(t, fragments)
}

// compile checks that each text is a Go package of this module.
func compile(t *testing.T, texts []string) {
	t.Helper()
	fragments := map[string]string{}
	var args []string
	for i, text := range texts {
		folder := fmt.Sprintf("docs/fragment%d", i)
		fragments[folder+"/fragment.go"] = text
		args = append(args, "./"+folder)
	}
	goTool(t, fragments, "build", args...)
}

package docs

import (
	"encoding/json"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// importable are the packages that a block may use without importing them.
var importable = map[string]string{
	"awsevents":   "github.com/lambdalock/lambdalock/keyfuncs/awsevents",
	"batching":    "github.com/lambdalock/lambdalock/stores/dynamostore/batching",
	"cfn":         "github.com/aws/aws-lambda-go/cfn",
	"context":     "context",
	"dynamostore": "github.com/lambdalock/lambdalock/stores/dynamostore",
	"emf":         "github.com/lambdalock/lambdalock/telemetry/emf",
	"errors":      "errors",
	"events":      "github.com/aws/aws-lambda-go/events",
	"fmt":         "fmt",
	"jmespath":    "github.com/lambdalock/lambdalock/keyfuncs/jmespath",
	"keyfuncs":    "github.com/lambdalock/lambdalock/keyfuncs",
	"lambda":      "github.com/aws/aws-lambda-go/lambda",
	"lock":        "github.com/lambdalock/lambdalock/lock",
	"log":         "log",
	"memstore":    "github.com/lambdalock/lambdalock/stores/memstore",
	"middleware":  "github.com/lambdalock/lambdalock/middleware",
	"os":          "os",
	"slog":        "log/slog",
	"time":        "time",
}

// TestGoBlocksCompile compiles every Go block of the README, of this folder and
// of the recipes with the code of this checkout. A block is a whole file,
// compiles once its imports are added, or quotes a file that compiles. The
// overlay puts the blocks into the root module, so that nothing is downloaded
// that the module does not need anyway.
func TestGoBlocksCompile(t *testing.T) {
	t.Parallel()
	blocks := map[string]string{}
	var args []string
	code := repositoryCode(t)
	for name, text := range documents(t) {
		if filepath.Dir(name) != "../docs" && !slices.Contains([]string{"../README.md", "../examples/README.md"}, name) {
			continue
		}
		for i, block := range goBlocks(text) {
			where := fmt.Sprintf("%s-block%d", strings.TrimSuffix(filepath.Base(name), ".md"), i+1)
			block = strings.ReplaceAll(block, "{ … }", `{ panic("omitted") }`)
			if formatted, err := format.Source([]byte(block)); err == nil && string(formatted) != block {
				t.Errorf("%s is not formatted as gofmt does it", where)
			}
			if strings.Contains(block, `"github.com/aws/aws-cdk-go/`) {
				if name != "../docs/START.md" {
					t.Errorf("%s uses the CDK, which the root module does not require: only .ci/rehearse can build it, and that follows START.md", where)
				}
				continue
			}
			if name == "../docs/ASSISTANTS.md" || strings.Contains(code, withoutIndentation(block)) {
				continue // TestAssistantsPage runs the former
			}
			source, err := wholeFile(block)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			blocks["docs/"+where+"/block.go"] = source
			args = append(args, "./docs/"+where)
		}
	}
	if len(blocks) == 0 {
		t.Fatal("the documents have no Go blocks: is goBlocks right?")
	}
	goTool(t, blocks, "build", args...)
}

// goTool runs a go command in the root folder as if it had these files, too,
// whose paths start there.
func goTool(t *testing.T, files map[string]string, command string, args ...string) {
	t.Helper()
	root := expect.Value(filepath.Abs(".."))(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		expect.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for path, text := range files {
		overlay.Replace[filepath.Join(root, path)] = write(strings.ReplaceAll(path, "/", "-"), text)
	}
	b := expect.Value(json.Marshal(overlay))(t)
	args = append([]string{command, "-overlay", write("overlay.json", string(b))}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", command, err, out)
	}
}

// goBlocks returns the Go code blocks of a document.
func goBlocks(text string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// section returns the text under a heading of the second level.
func section(text, heading string) string {
	_, after, _ := strings.Cut(text, "\n## "+heading+"\n")
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

// wholeFile completes a block to a file: statements get a function around them,
// and the packages used are imported.
func wholeFile(block string) (string, error) {
	if clause := regexp.MustCompile(`(?m)^package \w+$`); clause.MatchString(block) {
		return clause.ReplaceAllString(block, "package block"), nil // a command would be linked, too
	}
	declarations := block
	if at := regexp.MustCompile(`(?m)^(func|type|var|const) `).FindStringIndex(block); at == nil || at[0] > 0 {
		end := len(block)
		if at != nil {
			end = at[0]
		}
		declarations = "func _() {\n" + block[:end] + "}\n" + block[end:]
	}
	file, err := parser.ParseFile(token.NewFileSet(), "block.go", "package block\n"+declarations, 0)
	if err != nil {
		return "", err
	}
	var imports []string
	for _, unresolved := range file.Unresolved {
		if path, ok := importable[unresolved.Name]; ok && !slices.Contains(imports, path) {
			imports = append(imports, path)
		}
	}
	for i, path := range imports {
		imports[i] = fmt.Sprintf("import %q\n", path)
	}
	return "package block\n" + strings.Join(imports, "") + declarations, nil
}

// repositoryCode returns the Go code of all modules, line by line, as
// withoutIndentation leaves it.
func repositoryCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	for _, name := range files(t, ".go") {
		code.WriteString(withoutIndentation(read(t, name)))
	}
	return code.String()
}

func withoutIndentation(code string) string {
	return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(code, "")
}

// files returns the files of the repository with this extension, without those
// that git ignores.
func files(t *testing.T, extension string) []string {
	t.Helper()
	names, err := tree()
	if err != nil || len(names[extension]) == 0 {
		t.Fatalf("no files %s: %v", extension, err)
	}
	return names[extension]
}

// tree returns all of them, by extension.
var tree = sync.OnceValues(func() (map[string][]string, error) {
	names := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"bin", "cdk.out", "dist", "node_modules"}, base)):
			return filepath.SkipDir
		case !d.IsDir():
			names[filepath.Ext(path)] = append(names[filepath.Ext(path)], path)
		}
		return nil
	})
	return names, err
})

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/lambdalock/lambdalock/examples/"

// built is where the executables are, and the sources they were built from.
type built struct{ bin, source string }

// build builds the examples as they are deployed.
func build(ctx context.Context, chosen []example) (built, error) {
	source, err := goTool(ctx, "list", "-m", "-f", "{{.Dir}}", strings.TrimSuffix(module, "/"))
	if err != nil {
		return built{}, err
	}
	bin, err := os.MkdirTemp("", "lambdalock-examples")
	if err != nil {
		return built{}, err
	}
	b := built{bin: bin, source: strings.TrimSpace(source)}
	args := []string{"build", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", bin + string(filepath.Separator)}
	for _, x := range chosen {
		args = append(args, module+x.name)
	}
	if _, err := goTool(ctx, args...); err != nil {
		b.remove()
		return built{}, err
	}
	return b, nil
}

func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, problems.String())
	}
	return string(out), nil
}

func (b built) remove() { _ = os.RemoveAll(b.bin) }

func (b built) event(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(b.source, name, "event.json"))
}

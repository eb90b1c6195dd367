package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// runTool runs a fetching tool in dir. Its error carries the tool's output.
func runTool(ctx context.Context, dir, name string, args ...string) error {
	output := &tail{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = output, output
	// The tools start children that would keep the output open once killed.
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	// The system ties the child to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("gave up after %v", fetchLimit)
	}
	return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
}

// haveTool says in plain words that a tool is missing and how to get it.
func haveTool(name, advice string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s not found: %s", name, advice)
	}
	return nil
}

package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// npmAdvice says how to get npm.
const npmAdvice = "install Node.js, which includes npm, or put npm on the PATH"

// npmInstall installs a package from npm in dir.
func npmInstall(ctx context.Context, dir, pinned string) error {
	return runTool(ctx, dir, nil, "npm", "install", "--prefix", ".", "--no-save", "--ignore-scripts",
		"--no-audit", "--no-fund", pinned)
}

// runTool runs a tool that fetches into dir, with additions to this process's
// environment. Its error has the tool's output.
func runTool(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	output := &tail{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = output, output
	// The tools start children, which would keep the output open after a kill.
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	// The system kills the child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
}

// haveTool returns an error that says how to get a tool, if it is missing.
func haveTool(name, advice string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s not found: %s", name, advice)
	}
	return nil
}

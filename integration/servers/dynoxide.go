package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	dynoxidePackage = "@dynoxide/linux-x64"
	dynoxideVersion = "1.2.1"
	// dynoxideSHA256 is the checksum of the binary in that version's package.
	dynoxideSHA256 = "be909b7910d3fb552e85db10ef3c8ebae4bd35fee0f26dffdb6dfa5cc656426e"
)

var dynoxide = product{
	name:    "dynoxide",
	version: dynoxideVersion,
	folder:  "dynoxide-" + dynoxideVersion,
	check:   onLinuxAMD64,
	fetch:   fetchDynoxide,
	command: func(dir, port, _ string) *exec.Cmd {
		return exec.Command(dynoxideBinary(dir), "--host", "127.0.0.1", "--port", port)
	},
}

// Dynoxide starts an in-memory dynoxide, a DynamoDB-compatible server, for the
// length of the test. It comes from npm and runs on linux/amd64.
func Dynoxide(tb testing.TB) Server {
	tb.Helper()
	return run(tb, &dynoxide)
}

func dynoxideBinary(dir string) string {
	return filepath.Join(dir, "node_modules", filepath.FromSlash(dynoxidePackage), "dynoxide")
}

func fetchDynoxide(ctx context.Context, dir string) error {
	if err := haveTool("npm", npmAdvice); err != nil {
		return err
	}
	if err := npmInstall(ctx, dir, dynoxidePackage+"@"+dynoxideVersion); err != nil {
		return err
	}
	return checkSum(dynoxideBinary(dir), dynoxideSHA256)
}

// checkSum returns an error if a file is not the one pinned here.
func checkSum(path, want string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("%s: SHA-256 is %s, want %s", filepath.Base(path), got, want)
	}
	return nil
}

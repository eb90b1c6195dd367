package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

const (
	lambdaEmulatorModule  = "github.com/aws/aws-lambda-runtime-interface-emulator"
	lambdaEmulatorVersion = "0.0.0-20261030222936-bef5c4ba774d"
)

var lambdaEmulator = product{
	name:    "Lambda Runtime Interface Emulator",
	version: lambdaEmulatorVersion,
	folder:  "aws-lambda-rie-" + lambdaEmulatorVersion,
	check:   checkLambdaEmulator,
	fetch:   fetchLambdaEmulator,
	command: lambdaEmulatorCommand,
}

// LambdaEmulator starts AWS's Runtime Interface Emulator, which runs one
// bootstrap as Lambda does, for the length of the test. The variables are of
// the emulator, which passes them on. It is built with go install, and runs on
// Linux only.
func LambdaEmulator(tb testing.TB, variables []string, bootstrap string) Server {
	tb.Helper()
	return runWith(tb, &lambdaEmulator, variables, bootstrap)
}

// managedLambdaEmulator is the same program in its other form. It looks for the
// bootstrap in folders of a container only, and starts it as another user, both
// whatever its arguments say. So it gets a folder /var of its own, which only
// root can give it.
var managedLambdaEmulator = product{
	name:    lambdaEmulator.name + ", managed",
	version: lambdaEmulatorVersion,
	folder:  lambdaEmulator.folder,
	check:   checkManagedLambdaEmulator,
	fetch:   fetchLambdaEmulator,
	command: func(dir, port, data string) *exec.Cmd {
		return withOwnVar(`for bootstrap; do :; done
			mkdir /var/task && touch /var/task/bootstrap && mount --bind "$bootstrap" /var/task/bootstrap && exec "$@"`,
			lambdaEmulatorCommand(dir, port, data).Args...)
	},
	optional: true,
	ends:     true,
}

// ManagedLambdaEmulator is like [LambdaEmulator], as a Lambda Managed Instance
// whose environment takes as many invocations at the same time as
// AWS_LAMBDA_MAX_CONCURRENCY says. It needs root, without which the test is
// skipped even if LAMBDALOCK_INTEGRATION=required is set.
func ManagedLambdaEmulator(tb testing.TB, variables []string, bootstrap string) Server {
	tb.Helper()
	return runWith(tb, &managedLambdaEmulator, variables, bootstrap)
}

func checkLambdaEmulator() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("runs on Linux only, and this machine has %s", runtime.GOOS)
	}
	return haveTool("go", "put the go command on the PATH")
}

func checkManagedLambdaEmulator() error {
	if err := checkLambdaEmulator(); err != nil {
		return err
	}
	if output, err := withOwnVar("true").CombinedOutput(); err != nil {
		return fmt.Errorf("needs root, to give it a folder /var of its own: %w\n%s", err, output)
	}
	return nil
}

// withOwnVar returns a script with arguments that has an empty folder /var,
// which only it and what it starts see.
func withOwnVar(script string, args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", "mount -t tmpfs none /var && " + script, "sh"}, args...)...)
}

func fetchLambdaEmulator(ctx context.Context, dir string) error {
	environment := []string{"GOBIN=" + dir, "GOFLAGS=", "CGO_ENABLED=0"}
	return runTool(ctx, dir, environment, "go", "install", lambdaEmulatorModule+"/cmd/aws-lambda-rie@v"+lambdaEmulatorVersion)
}

func lambdaEmulatorCommand(dir, port, _ string) *exec.Cmd {
	return exec.Command(filepath.Join(dir, "aws-lambda-rie"), "--log-level", "error",
		"--runtime-interface-emulator-address", "127.0.0.1:"+port, "--runtime-api-address", "127.0.0.1:"+besides(port))
}

// besides returns a second port for the server that got this one. It is below
// those of all servers. The emulator ends if it is taken, and is started again.
func besides(port string) string {
	n, _ := strconv.Atoi(port) // it is one of freePort
	return strconv.Itoa(n - ports)
}

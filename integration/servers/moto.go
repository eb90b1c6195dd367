package servers

import (
	"context"
	_ "embed" // for what moto lacks
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const motoVersion = "5.2.5"

// motoPackages are moto, with what its Lambda, DynamoDB and CloudFormation and
// its server need, and what translates templates of SAM, in the version of
// sam-local/requirements.txt. The extra "server" would double them.
var motoPackages = []string{
	"moto[awslambda,dynamodb]==" + motoVersion, "flask==3.1.3", "flask-cors==6.0.5", "openapi-spec-validator==0.9.0", "aws-sam-translator==1.115.0",
}

//go:embed moto_server.py
var motoServer string

var (
	moto = motoProduct("-m", "moto.server")
	// motoStacks takes a second longer to start.
	motoStacks = motoProduct("-c", motoServer)
)

// motoProduct returns moto, as Python runs it with these arguments.
func motoProduct(run ...string) product {
	return product{
		name:    "moto",
		version: motoVersion,
		folder:  "moto-" + motoVersion + "-cloudformation",
		check: func() error {
			return haveTool("python3", "install Python 3 with its module venv (python3-venv), or put python3 on the PATH")
		},
		fetch: fetchMoto,
		command: func(dir, port, data string) *exec.Cmd {
			cmd := exec.Command(motoPython(dir), slices.Concat(run, []string{"--host", "127.0.0.1", "--port", port})...)
			cmd.Dir = data
			return cmd
		},
	}
}

// Moto starts a moto, which has the API of AWS's services, such as Lambda, SQS,
// CloudWatch and DynamoDB, in memory, for the length of the test. It takes any
// credentials and checks no permission. It comes from PyPI and needs Python 3.
//
// Its conditional writes are not atomic: of several writers at the same time,
// more than one may be told that it won.
func Moto(tb testing.TB) Server {
	tb.Helper()
	return run(tb, &moto)
}

// MotoStacks starts a moto whose CloudFormation knows all that the templates of
// this repository have, but for custom resources, aliases and policies of
// queues and buckets. It translates those of SAM.
func MotoStacks(tb testing.TB) Server {
	tb.Helper()
	return run(tb, &motoStacks)
}

// motoPython returns the interpreter that sees the packages in dir.
func motoPython(dir string) string { return filepath.Join(dir, "bin", "python3") }

// fetchMoto uses no script of the virtual environment, such as its pip: their
// first lines name dir, which is renamed.
func fetchMoto(ctx context.Context, dir string) error {
	if err := runTool(ctx, dir, nil, "python3", "-m", "venv", "."); err != nil {
		return err
	}
	install := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}
	return runTool(ctx, dir, nil, motoPython(dir), append(install, motoPackages...)...)
}

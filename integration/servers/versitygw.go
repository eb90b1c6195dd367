package servers

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	versityGWModule  = "github.com/versity/versitygw/cmd/versitygw"
	versityGWVersion = "1.8.0"
)

// AccessKey, SecretKey and Region are what [VersityGW] accepts.
const (
	AccessKey = "lambdalock"
	SecretKey = "lambdalock-secret"
	Region    = "eu-central-1"
)

var (
	versityGW       = versityGWProduct("versitygw")
	versityGWNoMeta = versityGWProduct("versitygw --nometa", "--nometa")
)

// VersityGW starts a versitygw, an S3-compatible server that keeps its objects
// in files, for the length of the test. It takes requests of AccessKey in
// Region. It is built with go install, which takes a minute or two once, and
// needs a file system with extended attributes.
func VersityGW(tb testing.TB) Server {
	tb.Helper()
	return run(tb, versityGW)
}

// VersityGWNoMeta is a [VersityGW] that keeps no ETags and therefore ignores
// the conditions of a write: locks on it would exclude nobody.
func VersityGWNoMeta(tb testing.TB) Server {
	tb.Helper()
	return run(tb, versityGWNoMeta)
}

func versityGWProduct(name string, flags ...string) *product {
	return &product{
		name:    name,
		version: versityGWVersion,
		folder:  "versitygw-" + versityGWVersion,
		check:   checkVersityGW,
		fetch:   fetchVersityGW,
		command: func(dir, port, data string) *exec.Cmd {
			args := []string{"--port", "127.0.0.1:" + port, "--access", AccessKey, "--secret", SecretKey, "--region", Region, "--quiet", "posix"}
			return exec.Command(filepath.Join(dir, "versitygw"), append(append(args, flags...), data)...)
		},
	}
}

func checkVersityGW() error {
	if err := haveTool("go", "put the go command on the PATH"); err != nil {
		return err
	}
	root, err := serversFolder()
	if err != nil {
		return err
	}
	return haveAttributes(root)
}

func fetchVersityGW(ctx context.Context, dir string) error {
	environment := []string{"GOBIN=" + dir, "GOFLAGS=", "CGO_ENABLED=0"}
	return runTool(ctx, dir, environment, "go", "install", versityGWModule+"@v"+versityGWVersion)
}

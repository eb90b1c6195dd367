package servers

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	dynamoDBLocalVersion  = "3.3.1"
	mavenDependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
)

//go:embed dynamodblocal.pom.xml
var dynamoDBLocalPOM []byte

var dynamoDBLocal = product{
	name:    "DynamoDB Local",
	version: dynamoDBLocalVersion,
	folder:  "dynamodb-local-" + dynamoDBLocalVersion,
	check:   checkDynamoDBLocal,
	fetch:   fetchDynamoDBLocal,
	command: dynamoDBLocalCommand,
}

// DynamoDBLocal starts an in-memory DynamoDB Local for the length of the test.
// It comes from Maven and needs Java 17 or newer on linux/amd64. It listens on
// every interface, because it cannot be told to bind to loopback only.
func DynamoDBLocal(tb testing.TB) Server {
	tb.Helper()
	return run(tb, &dynamoDBLocal)
}

func checkDynamoDBLocal() error {
	if err := onLinuxAMD64(); err != nil {
		return err
	}
	return haveJava17()
}

func fetchDynamoDBLocal(ctx context.Context, dir string) error {
	if err := haveTool("mvn", "install Maven, or put mvn on the PATH"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), dynamoDBLocalPOM, 0o644); err != nil {
		return err
	}
	return runTool(ctx, dir, nil, "mvn", "--batch-mode", "--quiet", "--strict-checksums",
		"-Dstyle.color=never", mavenDependencyPlugin+":copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory=lib",
		"-Ddynamodb.local.version="+dynamoDBLocalVersion)
}

func dynamoDBLocalCommand(dir, port, _ string) *exec.Cmd {
	cmd := exec.Command("java", "-Djava.library.path=lib", "-cp", filepath.Join("lib", "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", port)
	cmd.Dir = dir
	return cmd
}

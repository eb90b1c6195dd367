package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/localtable"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// The test binary is the command, and the function that the command invokes.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		lambda.Start(middleware.WithLock(keyfuncs.S3Object, function))
	case os.Getenv("LAMBDALOCK_TEST_COMMAND") != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

func function(_ context.Context, e events.S3Event) (string, error) {
	if key := e.Records[0].S3.Object.Key; key == "bad.png" {
		return "", fmt.Errorf("cannot read\n%s", key)
	}
	return "resized", nil
}

// command runs lambdalock as a user does.
func command(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), append([]string{"LAMBDALOCK_TEST_COMMAND=1", "LOCK_TABLE_NAME=", "AWS_ENDPOINT_URL_DYNAMODB="}, env...)...)
	c.Dir = t.TempDir()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

func event(t *testing.T, key string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "event.json")
	body := fmt.Sprintf(`{"Records":[{"s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":"01"}}}]}`, key)
	if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	good, bad := event(t, "cat.png"), event(t, "bad.png")
	for name, c := range map[string]struct {
		args   []string
		ok     bool
		within []string
	}{
		"one":        {[]string{good}, true, []string{"succeeded", `"resized"`, "LOCK_TABLE_NAME is not set"}},
		"contention": {[]string{"-n", "4", "-c", "8", "--async", "--scale", "600", "--shuffle", good}, true, []string{"succeeded", `"resized"`, `""`}},
		"in one":     {[]string{"--concurrency", "8", "-c", "8", good}, true, []string{"succeeded"}},
		"failing":    {[]string{good, bad}, false, []string{"cannot read bad.png", "no delivery succeeded of: " + bad}},
		"no file":    {[]string{"nowhere.json"}, false, []string{"nowhere.json"}},
		"no events":  {nil, false, []string{"<events>"}},
		"none":       {[]string{"-n", "0", good}, false, []string{"above zero"}},
		"too long":   {[]string{"--timeout", "16m", good}, false, []string{"15 minutes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, nil, append([]string{"invoke", os.Args[0]}, c.args...)...)
			if (err == nil) != c.ok {
				t.Errorf("%v\n%s", err, out)
			}
			for _, want := range c.within {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if n := strings.Count(out, `"resized"`); c.ok && n != 1 {
				t.Errorf("the event ran %d times\n%s", n, out)
			}
		})
	}
	out, err := command(t, nil, "invoke", event(t, "x"), good)
	if err == nil || !strings.Contains(out, "go build") {
		t.Errorf("a bootstrap that is no program: %v\n%s", err, out)
	}
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	table, err := localtable.Start(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	env := append(table.Env, "LOCK_TABLE_NAME=", "AWS_PROFILE=", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere")
	if out, err := command(t, env, "create-table"); err == nil || !strings.Contains(out, "LOCK_TABLE_NAME") {
		t.Errorf("without a name: %v\n%s", err, out)
	}
	for range 2 {
		if out, err := command(t, env, "create-table", "orders-locks"); err != nil || !strings.Contains(out, "Table orders-locks is ready") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if out, err := command(t, append(env, "LOCK_TABLE_NAME=by-variable"), "create-table"); err != nil || !strings.Contains(out, "by-variable") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := command(t, append(env, "AWS_REGION="), "create-table", "x"); err == nil || !strings.Contains(out, "AWS_REGION") {
		t.Errorf("without a Region: %v\n%s", err, out)
	}
}

func TestDemoRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	if out, err := command(t, nil, "demo", "-n", "3"); err == nil || !strings.Contains(out, "at least 4") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := command(t, nil, "demo", "--svg", "/nowhere/demo.svg"); err == nil || !strings.Contains(out, "/nowhere/demo.svg") {
		t.Errorf("%v\n%s", err, out)
	}
}

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

var update = flag.Bool("update", false, "write testdata/template.json")

// TestMain ends the node process of the CDK, which all tests share.
func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("skipped: node is needed to synthesise a CDK app:", err)
		if os.Getenv("LAMBDALOCK_INTEGRATION") == "required" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// synthesise builds the app with a bootstrap that never changes, so that the
// hash of its asset never changes either.
func synthesise(t *testing.T) awscdk.Stack {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bootstrap"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{Context: &map[string]any{"bootstrapDir": dir}})
	return newStack(app, "LambdalockApp", bootstrapDir(app))
}

func TestTemplate(t *testing.T) {
	const golden = "testdata/template.json"
	template := *assertions.Template_FromStack(synthesise(t), nil).ToJSON()
	for _, r := range template["Resources"].(map[string]any) {
		// The CDK adds a function, whose code changes with the version of the CDK.
		properties, _ := r.(map[string]any)["Properties"].(map[string]any)
		if code, _ := properties["Code"].(map[string]any); code["ZipFile"] != nil {
			code["ZipFile"] = "of the CDK"
		}
	}
	got, err := json.MarshalIndent(template, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(regexp.MustCompile(`\n(?: {5,}| {4}([}\]]))`).ReplaceAll(got, []byte("$1")), '\n') // a line for each property
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the template differs from %s; to see how, run go test ./app -update and git diff", golden)
	}
}

// TestNoMessages: the app is an example, so the checks must find nothing in it.
func TestNoMessages(t *testing.T) {
	notes := assertions.Annotations_FromStack(synthesise(t))
	notes.HasNoWarning(jsii.String("*"), assertions.Match_AnyValue())
	notes.HasNoError(jsii.String("*"), assertions.Match_AnyValue())
}

func TestBootstrapDir(t *testing.T) {
	if dir := bootstrapDir(awscdk.NewApp(nil)); dir != "function/dist" {
		t.Errorf("without context: %s", dir)
	}
}

package infra_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// TestMain ends the node process of the CDK, which all tests share.
func TestMain(m *testing.M) {
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

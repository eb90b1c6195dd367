package keyfuncs_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestJMESPathIsApart: a function that uses no JSON path links no JMESPath
// library.
func TestJMESPathIsApart(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "../middleware").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "lambdalock/keyfuncs\n") {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.Contains(name, "jmespath") {
			t.Errorf("keyfuncs or middleware imports %s", name)
		}
	}
}

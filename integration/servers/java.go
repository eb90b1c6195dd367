package servers

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// haveJava17 returns an error that says how to get Java 17 or newer, if it is
// missing.
func haveJava17() error {
	const advice = "install Java 17 or newer, or put its java on the PATH"
	if err := haveTool("java", advice); err != nil {
		return err
	}
	output, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("java -version: %w: %s\n%s", err, advice, output)
	}
	match := javaVersion.FindSubmatch(output)
	if match == nil {
		return fmt.Errorf("java -version names no version: %s\n%s", advice, output)
	}
	if major, err := strconv.Atoi(string(match[1])); err != nil || major < 17 {
		return fmt.Errorf("java is too old: %s\n%s", advice, output)
	}
	return nil
}

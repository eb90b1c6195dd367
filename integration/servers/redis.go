package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redisMajor is the oldest major version that the tests run on.
const redisMajor = 7

var (
	redis  = keyValueProduct("redis-server")
	valkey = optional(keyValueProduct("valkey-server"))
)

func optional(p *product) *product {
	p.optional = true
	return p
}

func keyValueProduct(name string) *product {
	return &product{
		name:      name,
		folder:    name,
		installed: func(dir string) (string, error) { return keyValueVersion(name, dir) },
		check:     func() error { return haveAPT(name) },
		fetch:     func(ctx context.Context, dir string) error { return fetchDebian(ctx, dir, name) },
		command:   func(dir, port, data string) *exec.Cmd { return keyValueCommand(name, dir, port, data) },
		ready:     answersPing,
		scheme:    "redis",
	}
}

// Redis starts a redis-server for the length of the test: the machine's own, if
// it is version 7 or newer, otherwise that of the Debian package. Unless the
// arguments say otherwise, it writes nothing to disk and never evicts a key.
// Its Endpoint begins with "redis://".
func Redis(tb testing.TB, args ...string) Server {
	tb.Helper()
	return run(tb, redis, args...)
}

// Valkey is like [Redis], with a valkey-server. Debian has it from version 13
// on, so a test may be skipped even if LAMBDALOCK_INTEGRATION=required is set.
func Valkey(tb testing.TB, args ...string) Server {
	tb.Helper()
	return run(tb, valkey, args...)
}

var serverVersion = regexp.MustCompile(`v=(\d+)([.\d]*)`)

// keyValueVersion returns the version of the server in dir, or of the machine's
// own if dir is empty. The error says that there is none, or that it is too
// old.
func keyValueVersion(name, dir string) (string, error) {
	output, err := keyValue(name, dir, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w\n%s", name, err, output)
	}
	match := serverVersion.FindSubmatch(output)
	if match == nil {
		return "", fmt.Errorf("%s --version names no version: %s", name, output)
	}
	if major, err := strconv.Atoi(string(match[1])); err != nil || major < redisMajor {
		return "", fmt.Errorf("%s is older than version %d: %s", name, redisMajor, output)
	}
	return string(match[1]) + string(match[2]), nil
}

func keyValueCommand(name, dir, port, data string) *exec.Cmd {
	return keyValue(name, dir, "--bind", "127.0.0.1", "--port", port, "--dir", data,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
}

// keyValue returns a command of the server that was unpacked into dir, or of
// the machine's own if dir is empty.
func keyValue(name, dir string, args ...string) *exec.Cmd {
	if dir == "" {
		return exec.Command(name, args...)
	}
	cmd := exec.Command(filepath.Join(dir, "usr", "bin", name), args...)
	// The pattern is a constant, so it is well formed.
	libraries, _ := filepath.Glob(filepath.Join(dir, "usr", "lib", "*-linux-gnu*"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	return cmd
}

// answersPing reports whether the server at the address takes commands.
func answersPing(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, len("+PONG"))
	_, err = io.ReadFull(conn, answer)
	return err == nil && string(answer) == "+PONG"
}

func haveAPT(name string) error {
	advice := fmt.Sprintf("install %s %d or newer, or put it on the PATH", name, redisMajor)
	if err := haveTool("apt-get", advice); err != nil {
		return err
	}
	return haveTool("dpkg", advice)
}

var toInstall = regexp.MustCompile(`(?m)^Inst (\S+)`)

// fetchDebian unpacks a Debian package into dir, with the packages that it
// needs and this machine lacks. Nothing is installed, so it needs no root.
func fetchDebian(ctx context.Context, dir, name string) error {
	plan, err := exec.CommandContext(ctx, "apt-get", "--simulate", "--no-install-recommends", "install", name).Output()
	if err != nil {
		return fmt.Errorf("apt-get knows no package %s: install %s by other means, or run apt-get update", name, name)
	}
	download := []string{"download"}
	for _, match := range toInstall.FindAllSubmatch(plan, -1) {
		download = append(download, string(match[1]))
	}
	if len(download) == 1 {
		return fmt.Errorf("package %s is installed, and has no %s of version %d or newer", name, name, redisMajor)
	}
	if err := runTool(ctx, dir, nil, "apt-get", download...); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	for _, p := range packages {
		if err := runTool(ctx, dir, nil, "dpkg", "--extract", p, "."); err != nil {
			return err
		}
	}
	return err
}

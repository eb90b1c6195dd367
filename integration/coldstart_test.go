package integration_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// BenchmarkColdStart measures the time from the start of a process to its first
// lock.
func BenchmarkColdStart(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	dir := b.TempDir()
	raw, ours := build(b, dir, "raw"), build(b, dir, "lambdalock")
	all := []*starter{
		{name: "raw SDK", binary: raw},
		{name: "WithLock", binary: ours},
		// Lambda is recognised by this variable; then the connection is opened
		// during INIT, at the price of a request that changes nothing.
		{name: "WithLock, warmed in INIT", binary: ours, env: []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"}},
	}
	runs := 30
	if testing.Short() {
		runs = 5
	}
	for _, p := range all {
		p.start(b, s, dir) // warms the page cache
	}
	for b.Loop() {
		for i := range runs {
			for j := range all {
				p := all[(i+j)%len(all)]
				wall, cpu := p.start(b, s, dir)
				p.wall, p.cpu = append(p.wall, wall), append(p.cpu, cpu)
			}
		}
	}
	f := newFigures("Cold start: process start to first lock", "", "p50 ms", "p90 ms", "p50 over raw ms", "CPU p50 ms", "binary MB")
	for _, p := range all {
		slices.Sort(p.wall)
		f.add(p.name, ms(quantile(p.wall, 0.5)), ms(quantile(p.wall, 0.9)), ms(median(p.wall)-median(all[0].wall)), ms(median(p.cpu)),
			fmt.Sprintf("%.2f", float64(size(b, p.binary))/1e6))
	}
	b.ReportMetric(float64(median(all[1].wall)-median(all[0].wall))/1e6, "ms-over-raw")
}

// starter is a program whose start is measured.
type starter struct {
	name, binary string
	env          []string
	wall, cpu    []time.Duration
}

func build(b *testing.B, dir, name string) string {
	b.Helper()
	binary := filepath.Join(dir, name)
	cmd := exec.CommandContext(b.Context(), "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./coldstart/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return binary
}

// start runs the program once, with nothing of this process's own AWS settings.
func (p *starter) start(b *testing.B, s servers.Server, home string) (wall, cpu time.Duration) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), p.binary, "coldstart/"+rand.Text())
	cmd.Env = append([]string{
		"HOME=" + home, "AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_ENDPOINT_URL_DYNAMODB=" + s.Endpoint, "LOCK_TABLE_NAME=" + table, "AWS_LAMBDA_FUNCTION_NAME=coldstart",
	}, p.env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	expect.Must(b, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	wall = time.Since(began)
	if err != nil || line != "locked\n" {
		b.Fatalf("%s said %q: %v", p.name, line, err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%s: %v", p.name, err)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func size(b *testing.B, path string) int64 {
	b.Helper()
	info := expect.Value(os.Stat(path))(b)
	return info.Size()
}

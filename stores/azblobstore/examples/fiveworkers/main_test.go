package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fakeblob"
)

// TestMain lets the test's own program be a worker.
func TestMain(m *testing.M) {
	if os.Getenv("LAMBDALOCK_WORKER") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const connection = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=%s;"

// TestTakeoverAfterKill runs five processes, kills the one that works, and
// checks what all of them print. LAMBDALOCK_AZURITE may have the endpoint of an
// Azurite: then the first worker is killed after 16 s, so that it must have
// renewed its lease of 15 s. Without it, the service is a fake whose clock can
// be moved.
func TestTakeoverAfterKill(t *testing.T) {
	endpoint, expire := os.Getenv("LAMBDALOCK_AZURITE"), func() {}
	pace, last := "1800ms", 9
	if endpoint == "" {
		pace, last = "500ms", 2
		fake := fakeblob.New()
		server := httptest.NewServer(fake)
		defer server.Close()
		endpoint, expire = server.URL+"/devstoreaccount1", func() { fake.Advance(15 * time.Second) }
	}
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", fmt.Sprintf(connection, endpoint))
	t.Setenv("LAMBDALOCK_WORKER", "1")
	upload(t, "fiveworkers", "ledger")

	lines := make(chan string, 100)
	workers := map[string]*exec.Cmd{}
	for i := range 5 {
		name := fmt.Sprint("worker ", i+1)
		workers[name] = start(t, name, pace, lines)
	}
	got, first := untilAllWait(t, lines, last)
	expect.Must(t, workers[first].Process.Kill())
	expire()
	var second string
	for left := 4; left > 0; { // until the others have ended
		line := next(t, lines, got)
		got = append(got, line)
		if owner, ok := strings.CutSuffix(line, " has done step 10 of 10"); ok {
			second = owner
			left--
		} else if strings.HasSuffix(line, " finds the work done") {
			left--
		}
	}
	check(t, got, first, second)
}

// untilAllWait reads until one worker has done its last step and the four
// others wait, and returns the name of the first.
func untilAllWait(t *testing.T, lines <-chan string, last int) (got []string, first string) {
	t.Helper()
	for waiting := 0; waiting < 4 || first == ""; {
		line := next(t, lines, got)
		got = append(got, line)
		if strings.HasSuffix(line, " waits: another worker has the blob") {
			waiting++
		} else if name, ok := strings.CutSuffix(line, fmt.Sprintf(" has done step %d of 10", last)); ok {
			first = name
		}
	}
	return got, first
}

// check compares all that was printed. The first worker may have been killed
// before it could print its last step.
func check(t *testing.T, got []string, first, second string) {
	t.Helper()
	done := 0
	var want []string
	for _, line := range got {
		if strings.HasPrefix(line, first) {
			done++
			want = append(want, fmt.Sprintf("%s has done step %d of 10", first, done))
		}
	}
	begin := done + 1
	if !slices.Contains(got, fmt.Sprintf("%s has done step %d of 10", second, begin)) {
		begin++
	}
	for step := begin; step <= 10; step++ {
		want = append(want, fmt.Sprintf("%s has done step %d of 10", second, step))
	}
	for i := range 5 {
		name := fmt.Sprint("worker ", i+1)
		if name != first {
			want = append(want, name+" waits: another worker has the blob")
		}
		if name != first && name != second {
			want = append(want, name+" finds the work done")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if second == first || done >= 10 || !slices.Equal(got, want) {
		t.Errorf("the workers printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func upload(t *testing.T, containerName, blobName string) {
	client := expect.Value(container.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), containerName, nil))(t)
	if _, err := client.Create(t.Context(), nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		t.Fatal(err)
	}
	expect.Value(client.NewBlockBlobClient(blobName).Upload(t.Context(), streaming.NopCloser(strings.NewReader("")), nil))(t)
}

// start starts a worker whose lines go to the channel.
func start(t *testing.T, name, pace string, lines chan<- string) *exec.Cmd {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // ends after the test, in its cleanup
	cmd := exec.CommandContext(ctx, os.Args[0], "fiveworkers", "ledger", name, pace)
	cmd.Stderr = os.Stderr
	out := expect.Value(cmd.StdoutPipe())(t)
	expect.Must(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { cancel(); <-done })
	return cmd
}

func next(t *testing.T, lines <-chan string, before []string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(time.Minute):
		t.Fatalf("no line within a minute after %q", before)
		return ""
	}
}

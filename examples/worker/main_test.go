//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const row = "worker/nightly"

func TestMain(m *testing.M) {
	if os.Getenv("IS_WORKER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// hosts are workers that share a lock table.
type hosts struct {
	t     *testing.T
	table *fakedynamo.Server
	url   string

	reports chan report

	mu      sync.Mutex
	claims  int           // how many requests there were for the row
	holds   bool          // the release of the lock waits until the end of the test
	atWork  chan struct{} // receives when a release waits
	refused chan struct{} // receives for each request after that
	end     chan struct{}
}

// report is a line that a host printed when it had built the report of a day.
type report struct {
	host *exec.Cmd
	line string
}

func newHosts(t *testing.T, holds bool) *hosts {
	h := &hosts{
		t: t, table: fakedynamo.New(), reports: make(chan report, 100), holds: holds,
		atWork: make(chan struct{}, 1), refused: make(chan struct{}), end: make(chan struct{}),
	}
	server := httptest.NewServer(h.table)
	h.url = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(h.end) })
	if err := dynamostore.EnsureTable(t.Context(), h.client(), "locks"); err != nil {
		t.Fatal(err)
	}
	h.table.OnRequest(h.request)
	return h
}

func (h *hosts) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: &h.url, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
}

// request is called for each request to the table. The second one for the row
// is the release, if no other host asked in between.
func (h *hosts) request(r fakedynamo.Request) fakedynamo.Fault {
	if r.Key != row {
		return fakedynamo.None
	}
	h.mu.Lock()
	h.claims++
	first := h.holds && h.claims == 2
	h.mu.Unlock()
	if first {
		h.atWork <- struct{}{}
		<-h.end
		return fakedynamo.DropBefore
	}
	select {
	case h.refused <- struct{}{}:
	default:
	}
	return fakedynamo.None
}

func (h *hosts) start() *exec.Cmd {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "IS_WORKER=1", "ASK_EVERY=10ms", "LOCK_TABLE_NAME=locks", "AWS_ENDPOINT_URL_DYNAMODB="+h.url,
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=")
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if _, text, found := strings.Cut(s.Text(), "report built"); found {
				h.reports <- report{c, text}
			}
		}
	}()
	return c
}

// asked waits until the hosts have asked n times more.
func (h *hosts) asked(n int) {
	for range n {
		<-h.refused
	}
}

// quiet checks that nobody has built the report once more. A test may run at
// midnight: then there is one of another day.
func (h *hosts) quiet(what string, before report) {
	h.t.Helper()
	for {
		select {
		case r := <-h.reports:
			if r.line == before.line {
				h.t.Errorf("%s: pid %d built it again", what, r.host.Process.Pid)
			}
		default:
			return
		}
	}
}

// leaseEnds changes when the lease of the lock ends.
func (h *hosts) leaseEnds(at string) {
	h.t.Helper()
	_, err := h.client().UpdateItem(h.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: row}},
		UpdateExpression:          aws.String("SET heldUntil = :at"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":at": &types.AttributeValueMemberS{Value: at}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// stop ends a host as ECS does.
func (h *hosts) stop(c *exec.Cmd) {
	h.t.Helper()
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		h.t.Errorf("after SIGTERM: %v", err)
	}
}

// TestOneOfTwoHosts: of two hosts that ask all the time, one builds the report,
// and no host builds it again.
func TestOneOfTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t, false)
	a, b := h.start(), h.start()
	built := <-h.reports
	h.asked(20)
	h.stop(a)
	c := h.start()
	h.asked(20)
	h.stop(b)
	h.stop(c)
	h.quiet("once it is built", built)
}

// TestHostIsKilled: the host that builds the report dies before that is
// recorded, and the other one builds it when the lease has ended.
func TestHostIsKilled(t *testing.T) { // F19
	t.Parallel()
	h := newHosts(t, true)
	first := h.start()
	built := <-h.reports
	<-h.atWork
	h.leaseEnds("2099-01-01T00:00:00.000000Z")
	second := h.start()
	h.asked(20)
	_ = first.Process.Kill()
	_ = first.Wait() // it was killed
	h.asked(20)
	h.quiet("while the lease lasts", built)
	h.leaseEnds("2026-01-01T00:00:00.000000Z")
	if built = <-h.reports; built.host != second {
		t.Error("the report was not built by the second host")
	}
	h.asked(20)
	h.stop(second)
	h.quiet("once it is built", built)
}

// TestStoppedAtWork: a host is stopped while it builds the report, and cannot
// tell how far it came. With OnInterrupted, that must be known to the next one.
func TestStoppedAtWork(t *testing.T) { // F19
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var asked *lock.InterruptedError
	locker, err := lock.New(memstore.New(), &lock.Options{
		Observe: func(context.Context, lock.Observation) { stop() }, // once it has the lock
		OnInterrupted: func(_ context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
			asked = i
			return &lock.Completion{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := nightly(ctx, locker, now); !errors.Is(err, context.Canceled) {
		t.Errorf("the host that was stopped returned %v", err)
	}
	if err := nightly(t.Context(), locker, now); err != nil || asked == nil {
		t.Errorf("the next one returned %v, and was asked about %v", err, asked)
	}
}

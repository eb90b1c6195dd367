//go:build unix

package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

const (
	deadGroups  = 20
	redriveKill = 8 // times
)

// deadLetters returns how many messages TestRedrive plays: moto needs minutes
// for a thousand.
func deadLetters() int {
	if testing.Short() {
		return 150
	}
	return 1000
}

// TestRedrive kills lambdalock redrive at requests of chance while it empties a
// dead-letter queue, a third of whose messages were completed, and runs it
// again. Then a function handles what was sent back: every message runs once,
// and those of a group of a FIFO queue in their order.
func TestRedrive(t *testing.T) {
	t.Parallel() // it waits most of the time
	command := buildCommand(t)
	for name, suffix := range map[string]string{"standard": "", "FIFO": ".fifo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRedriveTest(t, command, suffix)
			r.fill()
			r.empty()
			r.handle()
			t.Logf("%d requests, %d messages were sent twice", r.requests, r.twice)
		})
	}
}

// empty runs the command, kills it, and runs it again, until it says that no
// message stays.
func (r *redriveTest) empty() {
	r.t.Helper()
	seed := testSeed(r.t)
	r.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range redriveKill {
		killed := r.run(1+random.IntN(deadLetters()/4)) != nil
		r.letTimePass()
		if !killed { // the queue was empty before
			break
		}
	}
	if err := r.run(0); err != nil {
		r.t.Fatalf("the last run: %v", err)
	}
}

// redriveTest is a queue, its dead-letter queue, and the locks.
type redriveTest struct {
	t            *testing.T
	client       *sqs.Client
	source, dead string // URLs
	path, suffix string // of the command, and of the names of the queues
	proxy        *httptest.Server
	locker       *lock.Locker
	store        string
	functions    string                                             // URL of Lambda
	args         []string                                           // of the command
	failed       func(e *types.SendMessageBatchRequestEntry, i int) // nil: messages of a queue
	runs         map[string]int                                     // of each message
	twice        int                                                // messages that were sent twice

	mu       sync.Mutex
	command  *exec.Cmd
	requests int
	killAt   int             // request of the command; 0: none
	receipts map[string]bool // that the command got
}

func newRedriveTest(t *testing.T, path, suffix string) *redriveTest {
	moto := servers.Moto(t)
	memory := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: memory.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	store := expect.Value(redisstore.New(client))(t)
	locker := expect.Value(lock.New(store, &lock.Options{Namespace: "orders", Logger: slog.New(slog.DiscardHandler)}))(t)
	r := &redriveTest{
		t: t, path: path, suffix: suffix, locker: locker, store: "redis://" + memory.Addr(), runs: map[string]int{}, receipts: map[string]bool{},
		client: sqs.New(sqs.Options{Region: servers.Region, BaseEndpoint: aws.String(moto.Endpoint), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}),
	}
	r.proxy = httptest.NewServer(r.through(moto.Endpoint))
	t.Cleanup(r.proxy.Close)
	r.source, r.dead = r.queue("orders"), r.queue("dead")
	r.args = []string{"--to", r.source, r.dead}
	return r
}

func (r *redriveTest) queue(name string) string {
	in := &sqs.CreateQueueInput{QueueName: aws.String(name + r.suffix), Attributes: map[string]string{}}
	if r.suffix != "" {
		in.Attributes["FifoQueue"] = "true"
	}
	out := expect.Value(r.client.CreateQueue(r.t.Context(), in))(r.t)
	return *out.QueueUrl
}

// deadLetter is what a message is about.
type deadLetter struct {
	Order string `json:"order"`
	Group int    `json:"group"`
	Place int    `json:"place"` // in the group
}

// fill puts the messages into the dead-letter queue. A third was completed, and
// the others have failed.
func (r *redriveTest) fill() {
	r.t.Helper()
	in := &sqs.SendMessageBatchInput{QueueUrl: &r.dead}
	for i := range deadLetters() {
		m := deadLetter{fmt.Sprint("order-", i), i % deadGroups, i / deadGroups}
		text, _ := json.Marshal(m)
		e := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(string(text))}
		if r.suffix != "" {
			e.MessageGroupId, e.MessageDeduplicationId = aws.String(fmt.Sprint(m.Group)), &m.Order
		}
		if r.failed != nil {
			r.failed(&e, i)
		}
		in.Entries = append(in.Entries, e)
		if len(in.Entries) == 10 {
			if out, err := r.client.SendMessageBatch(r.t.Context(), in); err != nil || len(out.Failed) > 0 {
				r.t.Fatalf("%v, %v", err, out)
			}
			in.Entries = nil
		}
		lk := expect.Value(r.locker.Acquire(r.t.Context(), lock.Key{Name: m.Order, Event: m.Order}))(r.t)
		end := lk.Release
		if i%3 == 0 {
			end, r.runs[m.Order] = lk.Complete, 1
		}
		expect.Must(r.t, end())
	}
}

// through passes requests on, and kills the command at one of them: before its
// answer, so that the command does not learn that it was applied.
func (r *redriveTest) through(endpoint string) http.HandlerFunc {
	return func(w http.ResponseWriter, in *http.Request) {
		out, err := http.NewRequestWithContext(context.WithoutCancel(in.Context()), in.Method, endpoint+in.URL.Path, in.Body)
		if err != nil {
			r.t.Error(err)
			return
		}
		out.Header, out.ContentLength = in.Header, in.ContentLength
		answer, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			r.t.Error(err)
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		if r.note(in.Header.Get("X-Amz-Target"), body) {
			return
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(body)
	}
}

// note keeps the receipts of an answer, and reports whether the command was
// killed.
func (r *redriveTest) note(target string, answer []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var received struct {
		Messages []struct{ ReceiptHandle string }
	}
	if strings.HasSuffix(target, ".ReceiveMessage") && json.Unmarshal(answer, &received) == nil {
		for _, m := range received.Messages {
			r.receipts[m.ReceiptHandle] = true
		}
	}
	r.requests++
	if r.killAt--; r.killAt == 0 {
		_ = r.command.Process.Kill()
		return true
	}
	return false
}

// run runs the command, until it ends or has made so many requests. The error
// is nil if no message stays.
func (r *redriveTest) run(requests int) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{"redrive", "--yes", "--namespace", "orders", "--name", "{{.order}}", "--event", "{{.order}}"}, r.args...)
	c := exec.CommandContext(ctx, r.path, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = io.Discard, &said
	c.Env = r.environment()
	r.mu.Lock()
	r.killAt, r.command = requests, c
	err := c.Start()
	r.mu.Unlock()
	if err != nil {
		r.t.Fatal(err)
	}
	err = c.Wait()
	if exit := new(exec.ExitError); requests > 0 && errors.As(err, &exit) && exit.Exited() {
		r.t.Fatalf("it failed: %v\n%s", err, said.String())
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}

// environment has the command ask the proxy.
func (r *redriveTest) environment() []string {
	return append(os.Environ(), "LAMBDALOCK_STORE="+r.store, "AWS_ENDPOINT_URL_SQS="+r.proxy.URL, "AWS_ENDPOINT_URL_LAMBDA="+r.functions, "AWS_REGION="+servers.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE="+os.DevNull)
}

// letTimePass makes visible what the killed command had received.
func (r *redriveTest) letTimePass() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for receipt := range r.receipts {
		_, _ = r.client.ChangeMessageVisibility(r.t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &r.dead, ReceiptHandle: &receipt}) // it may be deleted
	}
	clear(r.receipts)
}

// handle does what a function with the lock does with the messages of the
// queue, and checks that nothing was lost, repeated or disordered.
func (r *redriveTest) handle() {
	r.t.Helper()
	last := map[int]int{}
	for {
		out := expect.Value(r.client.ReceiveMessage(r.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &r.source, MaxNumberOfMessages: 10, VisibilityTimeout: 600}))(r.t)
		if len(out.Messages) == 0 {
			break
		}
		for _, got := range out.Messages {
			var m deadLetter
			expect.Must(r.t, json.Unmarshal([]byte(*got.Body), &m))
			r.deliver(&m)
			if at, ok := last[m.Group]; r.suffix != "" && ok && at >= m.Place {
				r.t.Errorf("group %d: place %d comes after %d", m.Group, m.Place, at)
			}
			last[m.Group] = m.Place
			if _, err := r.client.DeleteMessage(r.t.Context(), &sqs.DeleteMessageInput{QueueUrl: &r.source, ReceiptHandle: got.ReceiptHandle}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.checkRuns()
}

func (r *redriveTest) checkRuns() {
	r.t.Helper()
	for i := range deadLetters() {
		if n := r.runs[fmt.Sprint("order-", i)]; n != 1 {
			r.t.Errorf("order %d ran %d times", i, n)
		}
	}
}

func (r *redriveTest) deliver(m *deadLetter) {
	lk, err := r.locker.Acquire(r.t.Context(), lock.Key{Name: m.Order, Event: m.Order})
	if errors.As(err, new(*lock.CompletedError)) {
		r.twice++
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.runs[m.Order]++
	expect.Must(r.t, lk.Complete())
}

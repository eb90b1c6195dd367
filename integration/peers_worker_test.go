package integration_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// endpointVariable is where the SDKs of all languages look for the server:
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html.
const endpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

const (
	// askAgain is how soon a tool that does not wait is asked again, as the source
	// of an event delivers it again; and how often one that waits looks, if that
	// can be set.
	askAgain  = 50 * time.Millisecond
	askPeriod = 30 * time.Second
)

// peerAnswer is a line of a process that handles events with one of the tools:
// at first its runtime, then what it measured, in ms. Moments are since 1970.
type peerAnswer struct {
	Runtime string    `json:"runtime,omitempty"`
	Took    []float64 `json:"took,omitempty"`   // each delivery
	CPU     float64   `json:"cpu,omitempty"`    // of all of them
	Ran     int64     `json:"ran"`              // handlers
	Tries   int       `json:"tries"`            // calls of the tool
	Failed  string    `json:"failed,omitempty"` // why the last one did that failed
	Asked   float64   `json:"asked,omitempty"`  // when the last delivery began
	Began   float64   `json:"began,omitempty"`  // when the last handler began
	Ended   float64   `json:"ended,omitempty"`  // when it ended

	// These are of a case.
	Over   bool   `json:"over,omitempty"`   // its last line
	Result string `json:"result,omitempty"` // of the delivery
	Fence  int64  `json:"fence,omitempty"`  // of the handler that begins
	Asks   bool   `json:"asks,omitempty"`   // whether an interrupted run had its effect
}

func moment() float64 { return float64(time.Now().UnixNano()) / 1e6 }

// complaints gets what lambdalock says of requests without an answer.
var complaints = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// deliver handles the events of one delivery.
type deliver func(ctx context.Context, names []string) error

// goPeers make what calls the handler once for each event.
var goPeers = map[string]func(c *dynamodb.Client, lease time.Duration, handler func()) (deliver, error){
	"raw": func(c *dynamodb.Client, lease time.Duration, handler func()) (deliver, error) {
		return oneByOne(rawPeer(c, lease, handler)), nil
	},
	"raw_batch": func(c *dynamodb.Client, lease time.Duration, handler func()) (deliver, error) {
		cycle := rawPeer(c, lease, handler)
		return func(ctx context.Context, names []string) error {
			return inWorkers(middleware.DefaultConcurrency, func(id string) error { return cycle(ctx, id) })(sqsOf(names))
		}, nil
	},
	"lambdalock": func(c *dynamodb.Client, _ time.Duration, handler func()) (deliver, error) {
		h := middleware.WithLock(itself, func(context.Context, lock.Key) error { handler(); return nil },
			middleware.Store(dynamostore.New(c, table)), middleware.Logger(complaints))
		return oneByOne(func(ctx context.Context, name string) error { return h(ctx, lock.Key{Name: name, Event: name}) }), nil
	},
	"lambdalock_batch": func(c *dynamodb.Client, _ time.Duration, handler func()) (deliver, error) {
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { handler(); return nil },
			middleware.Store(dynamostore.New(c, table)), middleware.Logger(complaints))
		return func(ctx context.Context, names []string) error {
			r, err := h(ctx, sqsOf(names))
			if err == nil && len(r.BatchItemFailures) > 0 {
				err = fmt.Errorf("%d messages failed", len(r.BatchItemFailures))
			}
			return err
		}, nil
	},
	"lambdalock_lease": func(c *dynamodb.Client, lease time.Duration, handler func()) (deliver, error) {
		locker, err := lock.New(dynamostore.New(c, table), &lock.Options{
			Lease: lock.FixedLease(lease), Grace: 500 * time.Millisecond, MaxWait: askPeriod, Logger: discard,
		})
		return oneByOne(func(ctx context.Context, name string) error {
			return locker.Do(ctx, lock.Key{Name: name}, func(context.Context) error { handler(); return nil })
		}), err
	},
	"dynamolock": func(c *dynamodb.Client, lease time.Duration, handler func()) (deliver, error) {
		locks, err := dynamolock.New(c, table, dynamolock.WithPartitionKeyName("lock"),
			dynamolock.WithLeaseDuration(lease), dynamolock.WithHeartbeatPeriod(lease/4))
		return oneByOne(func(ctx context.Context, name string) error {
			held, err := locks.AcquireLockWithContext(ctx, name,
				dynamolock.WithRefreshPeriod(askAgain), dynamolock.WithAdditionalTimeToWaitForLock(askPeriod))
			if err != nil {
				return err
			}
			handler()
			_, err = locks.ReleaseLockWithContext(ctx, held)
			return err
		}), err
	},
}

func oneByOne(handle func(ctx context.Context, name string) error) deliver {
	return func(ctx context.Context, names []string) error {
		for _, name := range names {
			if err := handle(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
}

func rawPeer(c *dynamodb.Client, lease time.Duration, handler func()) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		nonce := rand.Text()
		if err := (rawLock{c}).acquire(ctx, name, nonce, lease); err != nil {
			return err
		}
		handler()
		return rawLock{c}.release(ctx, name, nonce)
	}
}

func sqsOf(names []string) (e events.SQSEvent) {
	for _, name := range names {
		e.Records = append(e.Records, events.SQSMessage{MessageId: name})
	}
	return e
}

// peerRun is what one line asks for.
type peerRun struct {
	work   time.Duration // of a handler
	in     *bufio.Scanner
	out    *json.Encoder
	mu     sync.Mutex
	answer peerAnswer
}

// playPeer speaks as peers/worker.py does.
func playPeer(task) error {
	ms, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	r := &peerRun{in: bufio.NewScanner(os.Stdin), out: json.NewEncoder(os.Stdout)}
	handle, err := r.open(os.Args[1], time.Duration(ms)*time.Millisecond)
	if err != nil {
		return err
	}
	if err := r.out.Encode(peerAnswer{Runtime: runtime.Version()}); err != nil {
		return err
	}
	for r.in.Scan() {
		if err := handle(r.in.Text()); err != nil {
			return err
		}
		if err := r.out.Encode(r.answer); err != nil {
			return err
		}
	}
	return nil
}

// open returns what handles a line with the tool.
func (r *peerRun) open(tool string, lease time.Duration) (func(line string) error, error) {
	if of := caseTools[tool]; of != nil {
		handle, err := of(r, lease)
		return func(line string) error { return r.handleCase(handle, line) }, err
	}
	deliver, err := goPeers[tool](newPeerClient(), lease, r.handler)
	return func(line string) error { return r.handle(deliver, line) }, err
}

// newPeerClient has the retries of the SDK, unlike newClient.
func newPeerClient() *dynamodb.Client {
	o := newClient(os.Getenv(endpointVariable), newTransport()).Options()
	o.Retryer = nil
	return dynamodb.New(o)
}

func (r *peerRun) handler() {
	r.mu.Lock()
	r.answer.Ran++
	r.answer.Began = moment()
	r.mu.Unlock()
	_ = delayFor(context.Background(), r.work)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer.Ended = moment()
}

// ask writes a line, and returns the one that comes back.
func (r *peerRun) ask(line peerAnswer) string {
	_ = r.out.Encode(line)
	r.in.Scan()
	return r.in.Text()
}

func (r *peerRun) handle(tool deliver, line string) error {
	var prefix string
	var deliveries, size, work int
	if _, err := fmt.Sscan(line, &prefix, &deliveries, &size, &work); err != nil {
		return err
	}
	r.work, r.answer = time.Duration(work)*time.Millisecond, peerAnswer{}
	ctx, cancel := context.WithTimeout(context.Background(), invocationTime)
	defer cancel()
	cpu := cpuTime()
	for i := range deliveries {
		names := make([]string, size)
		for n := range names {
			names[n] = fmt.Sprint(prefix, i, "/", n)
		}
		r.answer.Asked = moment()
		began := time.Now()
		r.insist(ctx, askPeriod, func() error { return tool(ctx, names) })
		r.answer.Took = append(r.answer.Took, time.Since(began).Seconds()*1e3)
	}
	r.answer.CPU = (cpuTime() - cpu).Seconds() * 1e3
	return nil
}

// insist delivers until the delivery succeeds, or its patience ends.
func (r *peerRun) insist(ctx context.Context, patience time.Duration, deliver func() error) {
	for until := time.Now().Add(patience); ; {
		r.answer.Tries++
		err := deliver()
		if r.answer.Failed = ""; err == nil {
			return
		}
		r.answer.Failed = err.Error()
		if time.Now().After(until) || delayFor(ctx, askAgain) != nil {
			return
		}
	}
}

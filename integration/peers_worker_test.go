package integration_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
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

// peerAnswer is a line of a process that handles events with one of the tools:
// at first its runtime, then what it measured.
type peerAnswer struct {
	Runtime string    `json:"runtime,omitempty"`
	Took    []float64 `json:"took,omitempty"` // each delivery, in ms
	CPU     float64   `json:"cpu,omitempty"`  // of all of them, in ms
	Ran     int64     `json:"ran"`            // handlers
}

// deliver handles the events of one delivery.
type deliver func(ctx context.Context, names []string) error

// goPeers make what calls the handler once for each event.
var goPeers = map[string]func(c *dynamodb.Client, handler func()) (deliver, error){
	"raw": func(c *dynamodb.Client, handler func()) (deliver, error) {
		return oneByOne(rawPeer(c, handler)), nil
	},
	"raw_batch": func(c *dynamodb.Client, handler func()) (deliver, error) {
		cycle := rawPeer(c, handler)
		return func(ctx context.Context, names []string) error {
			return inWorkers(middleware.DefaultConcurrency, func(id string) error { return cycle(ctx, id) })(sqsOf(names))
		}, nil
	},
	"lambdalock": func(c *dynamodb.Client, handler func()) (deliver, error) {
		h := middleware.WithLock(itself, func(context.Context, lock.Key) error { handler(); return nil },
			middleware.Store(dynamostore.New(c, table)), middleware.Logger(discard))
		return oneByOne(func(ctx context.Context, name string) error { return h(ctx, lock.Key{Name: name, Event: name}) }), nil
	},
	"lambdalock_batch": func(c *dynamodb.Client, handler func()) (deliver, error) {
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { handler(); return nil },
			middleware.Store(dynamostore.New(c, table)), middleware.Logger(discard))
		return func(ctx context.Context, names []string) error {
			r, err := h(ctx, sqsOf(names))
			if err == nil && len(r.BatchItemFailures) > 0 {
				err = fmt.Errorf("%d messages failed", len(r.BatchItemFailures))
			}
			return err
		}, nil
	},
	"dynamolock": func(c *dynamodb.Client, handler func()) (deliver, error) {
		locks, err := dynamolock.New(c, table, dynamolock.WithPartitionKeyName("lock"))
		return oneByOne(func(ctx context.Context, name string) error {
			held, err := locks.AcquireLockWithContext(ctx, name)
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

func rawPeer(c *dynamodb.Client, handler func()) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		nonce := rand.Text()
		if err := (rawLock{c}).acquire(ctx, name, nonce, time.Minute); err != nil {
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

// playPeer speaks as peers/worker.py does.
func playPeer(task) error {
	var ran atomic.Int64
	work := func() {}
	tool, err := goPeers[os.Args[1]](newClient(os.Getenv(endpointVariable), newTransport()), func() { ran.Add(1); work() })
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(peerAnswer{Runtime: runtime.Version()}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var prefix string
		var deliveries, size int
		if _, err := fmt.Sscan(in.Text(), &prefix, &deliveries, &size); err != nil {
			return err
		}
		if size > 1 {
			work = batchWork
		}
		ran.Store(0)
		a, err := handleDeliveries(tool, prefix, deliveries, size)
		if err != nil {
			return err
		}
		a.Ran = ran.Load()
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

func handleDeliveries(tool deliver, prefix string, deliveries, size int) (a peerAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), invocationTime)
	defer cancel()
	cpu := cpuTime()
	for i := range deliveries {
		names := make([]string, size)
		for n := range names {
			names[n] = fmt.Sprint(prefix, i, "/", n)
		}
		began := time.Now()
		if err := tool(ctx, names); err != nil {
			return a, err
		}
		a.Took = append(a.Took, time.Since(began).Seconds()*1e3)
	}
	a.CPU = (cpuTime() - cpu).Seconds() * 1e3
	return a, nil
}

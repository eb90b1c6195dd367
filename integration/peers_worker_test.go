package integration_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	Took    []float64 `json:"took,omitempty"` // each event, in ms
	CPU     float64   `json:"cpu,omitempty"`  // of all of them, in ms
	Ran     int       `json:"ran"`            // handlers
}

// goPeers make cycles, which call the handler.
var goPeers = map[string]func(c *dynamodb.Client, handler func()) (func(ctx context.Context, name string) error, error){
	"raw": func(c *dynamodb.Client, handler func()) (func(context.Context, string) error, error) {
		return func(ctx context.Context, name string) error {
			nonce := rand.Text()
			if err := (rawLock{c}).acquire(ctx, name, nonce, time.Minute); err != nil {
				return err
			}
			handler()
			return rawLock{c}.release(ctx, name, nonce)
		}, nil
	},
	"lambdalock": func(c *dynamodb.Client, handler func()) (func(context.Context, string) error, error) {
		h := middleware.WithLock(itself, func(context.Context, lock.Key) error { handler(); return nil },
			middleware.Store(dynamostore.New(c, table)), middleware.Logger(discard))
		return func(ctx context.Context, name string) error { return h(ctx, lock.Key{Name: name, Event: name}) }, nil
	},
	"dynamolock": func(c *dynamodb.Client, handler func()) (func(context.Context, string) error, error) {
		locks, err := dynamolock.New(c, table, dynamolock.WithPartitionKeyName("lock"))
		return func(ctx context.Context, name string) error {
			held, err := locks.AcquireLockWithContext(ctx, name)
			if err != nil {
				return err
			}
			handler()
			_, err = locks.ReleaseLockWithContext(ctx, held)
			return err
		}, err
	},
}

// playPeer speaks as peers/worker.py does.
func playPeer(task) error {
	ran := 0
	cycle, err := goPeers[os.Args[1]](newClient(os.Getenv(endpointVariable), newTransport()), func() { ran++ })
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(peerAnswer{Runtime: runtime.Version()}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var prefix string
		var count int
		if _, err := fmt.Sscan(in.Text(), &prefix, &count); err != nil {
			return err
		}
		ran = 0
		a, err := handleEvents(cycle, prefix, count)
		if err != nil {
			return err
		}
		a.Ran = ran
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

func handleEvents(cycle func(context.Context, string) error, prefix string, count int) (a peerAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), invocationTime)
	defer cancel()
	cpu := cpuTime()
	for i := range count {
		began := time.Now()
		if err := cycle(ctx, fmt.Sprint(prefix, i)); err != nil {
			return a, err
		}
		a.Took = append(a.Took, time.Since(began).Seconds()*1e3)
	}
	a.CPU = (cpuTime() - cpu).Seconds() * 1e3
	return a, nil
}

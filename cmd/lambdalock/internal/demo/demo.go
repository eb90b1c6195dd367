// Package demo shows on one machine what the locks do: a Lambda function in
// several execution environments, and the deliveries that hurt without locks.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Config says how to run the demo.
type Config struct {
	// Command is a program that calls Function when RoleVariable is set.
	Command []string
	// Environments is how many execution environments to run; at least 4.
	Environments int
	// Store is the URL of a lock store, as package storeurl takes it. Empty: a
	// table at the endpoint in AWS_ENDPOINT_URL_DYNAMODB, or else an embedded one.
	Store string
	// Progress is called with the title of each scenario as it begins.
	Progress func(title string)
}

const (
	tableName = "lambdalock-demo"
	// timeout of the function: the lease of a dead holder ends 2 s after it.
	timeout = 3 * time.Second
	// Scale is how many times shorter than Lambda's the waits before retries
	// are: 1 min becomes 2 s. Leases and handlers take their real time.
	Scale = 30
)

// run plays the scenarios with one function.
type run struct {
	bucket   string // a new one each time: the table may remember earlier demos
	progress func(string)
	platform *locallambda.Platform
	wg       sync.WaitGroup
	begun    chan int // environment of each handler that begins

	mu     sync.Mutex
	said   []string // what the function printed besides notes
	scenes []*scene
}

// scene is a scenario that was played.
type scene struct {
	scenario
	zero       time.Time
	notes      map[int][]note // by environment
	deliveries []*delivery
}

// delivery is an event that S3 sent, and each attempt to have it handled.
type delivery struct {
	upload
	attempts []locallambda.Result
}

// upload is an S3 event of the demo.
type upload struct {
	object, version string
	// lane names it in the picture; empty: it is one of several deliveries.
	lane string
	// stale: a later upload was handled first, and the key asks to skip this
	// one.
	stale bool
}

// Run runs all scenarios, without a lock and with it at the same time, in about
// 20 seconds.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	locks, err := cfg.locks(ctx)
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	notes, err := os.MkdirTemp("", "lambdalock-demo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(notes) }()
	function := locallambda.Config{
		Command: cfg.Command, Env: append(locks.Env, RoleVariable+"="+notes), Credentials: locks.Credentials,
		Environments: max(4, cfg.Environments), Timeout: timeout, Function: "thumbnails",
	}
	bare := function
	bare.Env = append(slices.Clone(function.Env), unprotectedVariable+"=1")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	without, with := newRun(func(string) {}), newRun(cfg.Progress)
	var wg sync.WaitGroup
	for r, function := range map[*run]locallambda.Config{without: bare, with: function} {
		wg.Go(func() {
			if err := r.play(ctx, function); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return compare(without, with), nil
}

func newRun(progress func(string)) *run {
	return &run{bucket: "pictures-" + strings.ToLower(rand.Text()), progress: progress, begun: make(chan int, 64)}
}

// play starts the function, plays the scenarios with it and ends it.
func (r *run) play(ctx context.Context, function locallambda.Config) error {
	function.Logs = r.log
	platform, err := locallambda.Start(ctx, function)
	if err != nil {
		return err
	}
	r.platform = platform
	for _, s := range scenarios {
		if ctx.Err() != nil {
			break
		}
		r.progress(s.title)
		for len(r.begun) > 0 {
			<-r.begun // of the scene before
		}
		r.mu.Lock()
		r.scenes = append(r.scenes, &scene{scenario: s, zero: time.Now(), notes: map[int][]note{}})
		r.mu.Unlock()
		s.play(ctx, r)
		r.wg.Wait()
	}
	if err := platform.Close(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// locks returns what the function needs to find its locks.
func (cfg *Config) locks(ctx context.Context) (*localtable.Table, error) {
	if cfg.Store == "" {
		return lockTable(ctx)
	}
	store, err := storeurl.Open(ctx, cfg.Store)
	if err != nil {
		return nil, err
	}
	if c, ok := store.(driver.Checker); ok {
		if err := c.Check(ctx); err != nil {
			return nil, err
		}
	}
	env := []string{storeVariable + "=" + cfg.Store}
	for _, region := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		env = append(env, region+"="+os.Getenv(region)) // as here: a profile may have another one
	}
	return &localtable.Table{Env: env}, nil
}

// lockTable returns a table at the endpoint that the environment names, or else
// an embedded one.
func lockTable(ctx context.Context) (*localtable.Table, error) {
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" {
		return localtable.Start(ctx, tableName)
	}
	client, _, err := storeurl.DynamoDB(ctx, "dynamodb://"+tableName)
	if err != nil {
		return nil, err
	}
	return localtable.InAccount(client, tableName), dynamostore.EnsureTable(ctx, client, tableName)
}

// log keeps what the function notes, and what it says besides.
func (r *run) log(env int, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n note
	text, ok := strings.CutPrefix(line, notePrefix)
	if !ok || json.Unmarshal([]byte(text), &n) != nil || len(r.scenes) == 0 {
		r.said = append(r.said, fmt.Sprintf("[%d] %s", env, line))
		return
	}
	now := r.scenes[len(r.scenes)-1]
	now.notes[env] = append(now.notes[env], n)
	if n.What == "begin" {
		r.begun <- env
	}
}

// deliver sends an event as Lambda does for S3, with shorter waits before its
// two retries, and goes on at once. The channel is closed when all attempts are
// over.
func (r *run) deliver(ctx context.Context, u upload) <-chan struct{} {
	over, d := make(chan struct{}), &delivery{upload: u}
	now := r.scenes[len(r.scenes)-1]
	now.deliveries = append(now.deliveries, d)
	r.wg.Go(func() {
		defer close(over)
		d.attempts = r.platform.Deliver(ctx, u.event(r.bucket), locallambda.Redelivery{Scale: Scale, TooEarly: heldUp})
	})
	return over
}

// heldUp: a retry that is refused because of a lock says nothing, where a real
// wait would have outlasted that lock.
func heldUp(a locallambda.Result) bool { return a.ErrorType == "HeldError" }

// midHandler waits until a handler of the delivery is half done, and tells in
// which environment; 0 if none ever began.
func (r *run) midHandler(over <-chan struct{}) int {
	select {
	case env := <-r.begun:
		time.Sleep(workTime / 2)
		return env
	case <-over:
		return 0
	}
}

func (u upload) event(bucket string) []byte {
	return fmt.Appendf(nil, `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":"2026-11-21T08:15:30.123Z",`+
		`"eventName":"ObjectCreated:Put","responseElements":{"x-amz-request-id":"C3D13FE58DE4C810"},`+
		`"s3":{"s3SchemaVersion":"1.0","bucket":{"name":%q,"arn":"arn:aws:s3:::%[1]s"},"object":{"key":%[2]q,"size":1024,"sequencer":%[3]q}}}]}`,
		bucket, u.object, u.version)
}

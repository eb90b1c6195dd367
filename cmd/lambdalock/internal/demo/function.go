package demo

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// RoleVariable is set in the environment of a process that is to be the demo's
// Lambda function; its value is a folder for notes that outlive a crash.
const RoleVariable = "LAMBDALOCK_DEMO_FUNCTION"

// unprotectedVariable is set where the function is to run without a lock.
const unprotectedVariable = "LAMBDALOCK_DEMO_UNPROTECTED"

// storeVariable has the URL of the store where the function takes its locks;
// empty: its lock table.
const storeVariable = "LAMBDALOCK_DEMO_STORE"

// workTime is how long the handler works on an upload.
const workTime = 400 * time.Millisecond

// Function is the Lambda function of the demo: a handler of S3 uploads, wrapped
// with one line. It returns when its runtime is gone.
func Function() {
	if os.Getenv(unprotectedVariable) != "" {
		lambda.Start(handle)
		return
	}
	options := []middleware.Option{middleware.Observe(report)}
	if url := os.Getenv(storeVariable); url != "" {
		store, err := storeurl.Open(context.Background(), url)
		if err != nil {
			log.Fatal(err) // the demo has opened it before
		}
		options = append(options, middleware.Store(store))
	}
	lambda.Start(middleware.WithLock(key, handle, options...))
}

// key lets every upload run, but under latest/ only the newest of an object.
func key(ctx context.Context, e events.S3Event) (lock.Key, error) {
	if len(e.Records) == 1 && strings.HasPrefix(e.Records[0].S3.Object.Key, "latest/") {
		return keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord)(ctx, e)
	}
	return keyfuncs.S3Object(ctx, e)
}

func handle(ctx context.Context, e events.S3Event) error {
	lease, _ := lock.FromContext(ctx)
	upload := note{Fence: lease.Fence, Object: e.Records[0].S3.Object.Key, Version: e.Records[0].S3.Object.Sequencer}
	upload.print("begin")
	select {
	case <-time.After(workTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	upload.print("end")
	if strings.Contains(upload.Object, "fails-once") && firstTime(e.Records[0].S3.Bucket.Name) {
		return errors.New("disk full")
	}
	return nil
}

// firstTime is true once for each name, whichever environment asks.
func firstTime(name string) bool {
	f, err := os.OpenFile(filepath.Join(os.Getenv(RoleVariable), name), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// note is a line that the function prints, for the demo to read.
type note struct {
	What    string
	Time    time.Time
	Object  string `json:",omitempty"`
	Version string `json:",omitempty"`
	Fence   int64  `json:",omitempty"`
	// Until is when the lease ends.
	Until time.Time `json:",omitzero"`
}

// The outcomes of package lock that the report looks for among the notes.
const (
	tookOver = string(lock.OutcomeTakenOver)
	released = string(lock.OutcomeReleased)
	stale    = string(lock.OutcomeStale)
)

const notePrefix = "demo: "

func (n note) print(what string) {
	n.What, n.Time = what, time.Now()
	line, err := json.Marshal(n)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	// One write, so that lines of one process stay whole.
	_, _ = os.Stdout.Write(append(append([]byte(notePrefix), line...), '\n'))
}

func report(_ context.Context, o lock.Observation) {
	note{Fence: o.Fence, Until: o.Until}.print(string(o.Outcome))
}

// Command lambdalock is a Lambda function with a locked handler, to measure its
// cold start.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

type event struct{ ID string }

func main() {
	locked := middleware.WithLock(key, handle)
	if len(os.Args) < 2 {
		lambda.Start(locked)
		return
	}
	// As in Lambda, the invocation has a deadline.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := locked(ctx, event{ID: os.Args[1]}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func key(_ context.Context, e event) (lock.Key, error) { return lock.Key{Name: e.ID}, nil }

func handle(context.Context, event) error {
	fmt.Println("locked")
	return nil
}

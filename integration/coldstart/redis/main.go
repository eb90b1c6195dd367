// Command redis is a Lambda function with a handler that is locked in Redis, to
// measure its size.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

type event struct{ ID string }

func main() {
	store, err := redisstore.New(redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDRESS")}))
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(middleware.WithLock(key, handle, middleware.Store(store)))
}

func key(_ context.Context, e event) (lock.Key, error) { return lock.Key{Name: e.ID}, nil }

func handle(context.Context, event) error {
	fmt.Println("locked")
	return nil
}

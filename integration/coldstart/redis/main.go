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
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDRESS"), DialerRetries: 1})
	// Add a tracer's hooks before New: the store's requests skip later ones.
	store, err := redisstore.New(client)
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
